"""Name the tokens without which a pruned head breaks: it could no longer end a turn, or write an unusual character.

They are read from tokenizer.json, the chat template and the configuration. A tokenizer isn't run here, so of a
template's literal text only the words that are tokens as they stand count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddock_stack.bake.text_config import is_multimodal
from paddock_stack.keepset import KeepSet
from paddock_stack.refusals import Refused

GROUPS = ("special", "bytes", "template", "multimodal")
Needed = dict[str, set[int]]
CONTROL_KEYS = ("bos_token_id", "eos_token_id", "pad_token_id")
MODAL_KEYS = ("boi_token_id", "eoi_token_id", "image_token_id", "video_token_id", "boa_token_id", "eoa_token_id",
              "eoa_token_index", "audio_token_id")  # fmt: skip
# The merges are nine tenths of Gemma's tokenizer.json and would take 150 MB as Python lists.
MERGES = re.compile(rb'"merges"\s*:\s*\[')
STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]]')
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")


def needed_tokens(folder: Path, config: Mapping[str, Any]) -> Needed:
    """Return the ids in each of `GROUPS` for the model in `folder`; raise `Refused` where its tokenizer is missing."""
    tokenizer = _read_tokenizer(folder / "tokenizer.json")
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    added = {token["content"]: token["id"] for token in tokenizer.get("added_tokens", [])}
    special = {token["id"] for token in tokenizer.get("added_tokens", []) if token.get("special")}
    generation = folder / "generation_config.json"
    parts = [config, config.get("text_config", {}), json.loads(generation.read_bytes()) if generation.exists() else {}]
    return {
        "special": special | _ids(parts, CONTROL_KEYS),
        "bytes": _byte_tokens(vocabulary),
        "template": _template_tokens(folder, vocabulary | added),
        "multimodal": _ids(parts[:1], MODAL_KEYS) if is_multimodal(config) else set(),
    }


def lacking(kept: KeepSet, needed: Needed, allowed: tuple[str, ...]) -> None:
    """Raise `Refused` where `kept` lacks needed tokens of a group that isn't `allowed`."""
    unknown = set(allowed) - set(GROUPS)
    if unknown:
        raise Refused(f"allow takes {', '.join(GROUPS)}, not {', '.join(sorted(unknown))}")
    for group in GROUPS:
        missing = sorted(token for token in needed[group] - set(kept.ids) if token < kept.full_vocab)
        if missing and group not in allowed:
            raise Refused(
                f"the keep-set lacks {len(missing)} of the {group} tokens, such as {missing[0]}; "
                f"compose-keepset --needed adds them, --allow {group} goes without"
            )


def _read_tokenizer(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(_without_merges(path.read_bytes()))
    except (OSError, ValueError) as fault:
        raise Refused(f"{path} can't be read, so the tokens a keep-set needs are unknown: {fault}") from fault
    if not isinstance(held.get("model", {}).get("vocab"), dict):
        raise Refused(f"{path} has no vocabulary in a form known here")
    return dict(held)


def _without_merges(text: bytes) -> bytes:
    found = MERGES.search(text)
    if found is None:
        return text
    depth = 1
    for token in STRING_OR_BRACKET.finditer(text, found.end()):
        depth += {b"[": 1, b"]": -1}.get(token[0], 0)
        if depth == 0:
            return text[: found.end()] + text[token.start() :]
    return text


def _ids(parts: list[Mapping[str, Any]], keys: tuple[str, ...]) -> set[int]:
    values = [part.get(key) for part in parts for key in keys]
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return {value for value in flat if isinstance(value, int)}


def _byte_tokens(vocabulary: dict[str, int]) -> set[int]:
    """Return the 256 tokens that stand for a byte each, as fallback or as a byte-level alphabet."""
    named = {index for token, index in vocabulary.items() if BYTE_TOKEN.fullmatch(token)}
    return named or {vocabulary[letter] for letter in _byte_alphabet() if letter in vocabulary}


def _byte_alphabet() -> Iterator[str]:
    """Yield the characters by which byte-level BPE, since GPT-2, writes the bytes 0 to 255."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    yield from map(chr, sorted(plain))
    yield from (chr(0x100 + number) for number in range(256 - len(plain)))


def _template_tokens(folder: Path, tokens: Mapping[str, int]) -> set[int]:
    path, settings = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    template = path.read_text(encoding="utf-8") if path.exists() else ""
    if not template and settings.exists():
        template = str(json.loads(settings.read_bytes()).get("chat_template") or "")
    literals = [one or two for one, two in LITERAL.findall(template)]
    words = {word for literal in literals for word in re.split(r"\s+|\\n|(<[^<>\s]+>)", literal) if word}
    return {tokens[word] for word in words if word in tokens}
