"""Write the reference token records that a challenge's perplexity is measured on, from the reference model itself.

    .server-env/bin/python scripts/make_references.py --model FOLDER --prompts prompts/public.jsonl --out refs.jsonl

Targets are drawn at temperature 1, not decoded greedily: greedy text is what the model finds easiest, so its
perplexity is close to 1 for every model that is nearly right, and damage hardly shows. Drawn text has the entropy that
the model itself believes in, and every loss of precision raises its perplexity.

Each line: `{"id", "prompt_token_ids", "target_token_ids", "target_nll"}`, nats per token. Beside it lies
`<out>.summary.json` with the perplexity that the records themselves carry. Runs in the server environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from transformers import AutoModelForCausalLM

from runner.harness.prompts import read_prompts
from runner.harness.rendering import ChallengeTokenizer


@dataclass(frozen=True)
class Record:
    """A prompt, what the model drew after it, and how unlikely it found each token, in nats."""

    id: str
    prompt_token_ids: list[int]
    target_token_ids: list[int]
    target_nll: list[float]


def main() -> None:
    """Write the records and their summary."""
    options = _options()
    tokenizer = ChallengeTokenizer(options.tokenizer or options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=getattr(torch, options.dtype))
    model.eval().to(options.device)
    records = list(make_records(model, tokenizer, options))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("".join(json.dumps(vars(record), allow_nan=False) + "\n" for record in records))
    summary = {**totals(records), "dtype": options.dtype, "seed": options.seed, **sources(options)}
    text = json.dumps(summary, indent=1, sort_keys=True, allow_nan=False) + "\n"
    options.out.with_name(options.out.name + ".summary.json").write_text(text)
    print(json.dumps(summary))


def make_records(model: Any, tokenizer: ChallengeTokenizer, options: argparse.Namespace) -> Iterator[Record]:
    """Yield one record per prompt that is short enough, in the file's order, until there are `options.count`."""
    made = 0
    for prompt in read_prompts(options.prompts):
        ids = tokenizer.prompt_ids(prompt)
        if len(ids) <= options.max_prompt_tokens and made != options.count:
            made += 1
            target = draw(model, ids, options.target_tokens, f"{options.seed}:{prompt.id}")
            yield Record(prompt.id, ids, target, score(model, ids, target))


@torch.inference_mode()
def draw(model: Any, prompt_ids: list[int], count: int, key: str) -> list[int]:
    """Draw `count` tokens at temperature 1; `key` decides them all, whatever was drawn before."""
    generator = torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(key.encode()).digest()[:7]))
    drawn: list[int] = []
    step, cache = torch.tensor([prompt_ids], device=model.device), None
    for _ in range(count):
        reply = model(input_ids=step, past_key_values=cache, use_cache=True)
        cache = reply.past_key_values
        chances = reply.logits[0, -1].double().softmax(-1).cpu()
        drawn.append(int(torch.multinomial(chances, 1, generator=generator)))
        step = torch.tensor([drawn[-1:]], device=model.device)
    return drawn


@torch.inference_mode()
def score(model: Any, prompt_ids: list[int], target_ids: list[int]) -> list[float]:
    """Return the negative log-likelihood of each target token in nats, from one pass over the whole record."""
    ids = torch.tensor([[*prompt_ids, *target_ids]], device=model.device)
    before = model(input_ids=ids, use_cache=False).logits[0, len(prompt_ids) - 1 : -1].float()
    chosen = ids[0, len(prompt_ids) :].unsqueeze(1)
    nll: list[float] = (-before.log_softmax(-1).gather(1, chosen)).squeeze(1).tolist()
    return nll


def totals(records: list[Record]) -> dict[str, float]:
    """Return the perplexity that the records carry: exp(Σ nll ÷ Σ tokens)."""
    tokens = sum(len(record.target_nll) for record in records)
    nll = math.fsum(value for record in records for value in record.target_nll)
    return {"records": len(records), "tokens": tokens, "neg_log_likelihood": nll, "ppl": math.exp(nll / tokens)}


def sources(options: argparse.Namespace) -> dict[str, str]:
    """Return digests of what the records were made from."""
    weights = sorted(options.model.glob("*.safetensors"))
    return {"model_sha256": _sha256(*weights), "prompts_sha256": _sha256(options.prompts)}


def _sha256(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(1 << 22):
                digest.update(piece)
    return digest.hexdigest()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write reference token records.")
    parser.add_argument("--model", type=Path, required=True, help="folder of the reference checkpoint")
    parser.add_argument("--prompts", type=Path, required=True, help="any prompt file the harness reads")
    parser.add_argument("--out", type=Path, required=True, help="JSONL to write")
    parser.add_argument("--tokenizer", type=Path, help="folder of the challenge's tokenizer; default: the model's")
    parser.add_argument("--target-tokens", type=int, default=64, help="target tokens per record")
    parser.add_argument("--count", type=int, default=-1, help="how many records at most; default: all")
    parser.add_argument("--max-prompt-tokens", type=int, default=3000, help="leave longer prompts out")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
