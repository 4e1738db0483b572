"""A small tokenizer, prompts and references that fit the bigram endpoint, and a way to run the harness against it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from runner.harness.__main__ import main
from tests.runner.harness.endpoint import VOCABULARY, Endpoint, continuation

OUTPUT_TOKENS = 12


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    words = {f"w{number}": number for number in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "w2", "eos_token": {"content": "w1"}}))
    template = "{{ bos_token }} {% for m in messages %}{{ m.content }} {% endfor %}{{ eos_token }}"
    (folder / "chat_template.jinja").write_text(template)
    return folder


@dataclass(frozen=True)
class Outcome:
    """What a caller of the harness sees."""

    status: int
    folder: Path
    progress: list[dict[str, Any]]
    stderr: str

    def read(self, name: str) -> Any:
        text = (self.folder / name).read_text()
        return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)

    @property
    def code(self) -> str:
        return str(self.read("failure.json")["code"])


@pytest.fixture
def spec(tmp_path: Path, tokenizer_folder: Path) -> dict[str, Any]:
    """A spec that lacks only its server."""
    prompts, references = tmp_path / "prompts.jsonl", tmp_path / "references.jsonl"
    prompts.write_text(
        "".join(json.dumps({"id": f"p{n}", "text": f"w{n + 3} w{n + 9} w{n + 5}"}) + "\n" for n in range(8))
    )
    records = [{"id": f"r{n}", "prompt_token_ids": [2, n], "target_token_ids": continuation(n, 10)} for n in range(6)]
    references.write_text("".join(json.dumps(record) + "\n" for record in records))
    return {
        "served_model_name": "m",
        "tokenizer": str(tokenizer_folder),
        "prompts": str(prompts),
        "references": str(references),
        "num_prompts": 5,
        "output_tokens": OUTPUT_TOKENS,
        "warmup_requests": 2,
        "seed": 7,
        "max_prompt_tokens": 64,
        "request_timeout_s": 20,
        "ppl_cap": 2.0,
        "hardware": "cpu",
        "run_id": "run_1",
    }


@pytest.fixture
def harness(tmp_path: Path, spec: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the harness once against an endpoint, or against an address where nobody listens."""

    def run(endpoint: Endpoint | None = None, **changes: Any) -> Outcome:
        where = {} if endpoint is None else {"base_url": endpoint.base_url}
        path, folder = tmp_path / "spec.json", tmp_path / "out"
        path.write_text(json.dumps(spec | where | changes))
        status = main(["run", "--spec", str(path), "--out", str(folder)])
        printed = capsys.readouterr()
        return Outcome(status, folder, [json.loads(line) for line in printed.out.splitlines()], printed.err)

    return run
