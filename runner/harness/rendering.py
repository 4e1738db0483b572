"""The challenge's tokenizer and chat template: the only ones that judge, whatever the submission brings."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from runner.harness.faults import BadInput
from runner.harness.prompts import Prompt

_SPECIAL_NAMES = ("bos_token", "eos_token", "pad_token", "unk_token")


class ChallengeTokenizer:
    """Turn prompts into token ids and ids into text. Read from a folder with `tokenizer.json` and a chat template."""

    def __init__(self, folder: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
            config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
            self._template = _environment().from_string(_template_text(folder, config))
        except Exception as fault:  # noqa: BLE001 - the library raises bare Exception for a broken file
            raise BadInput(f"the tokenizer in {folder} cannot be read: {fault}") from None
        self._specials = {name: _special(config.get(name)) for name in _SPECIAL_NAMES}
        self.vocabulary_size = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())

    def prompt_ids(self, prompt: Prompt) -> list[int]:
        """Return the ids that stand for `prompt`: its text as one user turn, or its own ids."""
        if prompt.text is None:
            return list(prompt.token_ids or ())
        messages = [{"role": "user", "content": prompt.text}]
        text = self._template.render(messages=messages, add_generation_prompt=True, **self._specials)
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` without special tokens, as an OpenAI endpoint does."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def streamed_text(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text of `ids` as a server writes it that decodes token by token, on from the prompt's last.

        A prompt may end inside a character; its first half then stands in the answer's text.
        """
        stream = DecodeStream(ids=list(prompt_ids), skip_special_tokens=True)
        pieces = []
        for token_id in ids:
            try:
                pieces.append(stream.step(self._tokenizer, token_id) or "")
            except Exception:  # noqa: BLE001 - the library's bare word for bytes that undo what it has written
                stream = DecodeStream(skip_special_tokens=True)
                pieces.append(stream.step(self._tokenizer, token_id) or "")
        return "".join(pieces)

    def plain_ids(self) -> list[int]:
        """Return the ids of ordinary tokens, in order: neither special nor added."""
        added = set(self._tokenizer.get_added_tokens_decoder())
        return sorted(set(self._tokenizer.get_vocab(with_added_tokens=True).values()) - added)


def _template_text(folder: Path, config: dict[str, Any]) -> str:
    beside = folder / "chat_template.jinja"
    text = beside.read_text(encoding="utf-8") if beside.is_file() else config.get("chat_template")
    if not isinstance(text, str):
        raise BadInput("there is neither chat_template.jinja nor a chat_template in tokenizer_config.json")
    return text


def _special(value: object) -> str:
    return str(value["content"]) if isinstance(value, dict) else str(value or "")


def _environment() -> jinja2.Environment:
    """Return the dialect that chat templates are written in."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = datetime.datetime.now(datetime.UTC).strftime
    return environment


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
