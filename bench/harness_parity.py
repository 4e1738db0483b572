"""Our harness against `vllm bench serve` on a server that answers alike each time: the same tokens per second?

    python bench/harness_parity.py --server-env .server-env [--requests 8 --tokens 64 --delay 1.0]

Prints both figures and their ratio; exit status 1 when they differ by more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fixed_delay import MODEL, Answer, serving
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
LARGEST_DIFFERENCE = 0.01


def main() -> int:
    """Measure the same server with both and compare."""
    options = _options()
    options.server_env = options.server_env.absolute()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = options.tokenizer or _tiny_tokenizer(options.server_env, folder / "tiny")
        with serving(_answer(tokenizer, options)) as url:
            ours = harness_tps(url, tokenizer, folder, options)
            theirs = vllm_bench_tps(url, tokenizer, folder, options)
    ratio = ours / theirs
    print(f"harness            {ours:9.4f} tok/s")
    print(f"vllm bench serve   {theirs:9.4f} tok/s")
    print(
        f"ratio              {ratio:9.5f}  ({options.requests} requests x {options.tokens} tokens, {options.delay} s)"
    )
    return 0 if abs(ratio - 1) <= LARGEST_DIFFERENCE else 1


def harness_tps(url: str, tokenizer: Path, folder: Path, options: argparse.Namespace) -> float:
    """Return the tokens per second that our harness reports."""
    spec = {
        "base_url": url,
        "served_model_name": MODEL,
        "tokenizer": str(tokenizer),
        "prompts": str(ROOT / "prompts" / "public.jsonl"),
        "num_prompts": options.requests,
        "output_tokens": options.tokens,
        "warmup_requests": 1,
        "seed": 1,
        "max_prompt_tokens": 4096,
        "request_timeout_s": 60,
        "hardware": "none",
        "run_id": "parity",
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    command = [sys.executable, "-m", "runner.harness", "run", "--spec", folder / "spec.json", "--out", folder / "run"]
    _call(command)
    return float(_read(folder / "run" / "summary.json")["tps"])


def vllm_bench_tps(url: str, tokenizer: Path, folder: Path, options: argparse.Namespace) -> float:
    """Return the output throughput that `vllm bench serve` reports for as many requests at concurrency 1."""
    command: list[object] = [options.server_env / "bin" / "vllm", "bench", "serve", "--backend", "openai"]
    command += ["--base-url", url, "--endpoint", "/v1/completions", "--model", MODEL, "--tokenizer", tokenizer]
    command += ["--dataset-name", "random", "--random-input-len", 64, "--random-output-len", options.tokens]
    command += ["--num-prompts", options.requests, "--max-concurrency", 1, "--num-warmups", 1, "--ignore-eos"]
    command += ["--save-result", "--result-dir", folder, "--result-filename", "vllm.json", "--disable-tqdm"]
    _call(command)
    return float(_read(folder / "vllm.json")["output_throughput"])


def _answer(tokenizer: Path, options: argparse.Namespace) -> Answer:
    known = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    ids = known.encode("The quick answer is always the same. " * options.tokens, add_special_tokens=False).ids
    ids = ids[: options.tokens]
    return Answer(options.delay, ids, known.decode(ids))


def _tiny_tokenizer(server_env: Path, folder: Path) -> Path:
    _call([server_env / "bin" / "python", ROOT / "scripts" / "make_tiny_gemma.py", folder])
    return folder


def _call(command: list[Any]) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare our harness with vllm bench serve.")
    parser.add_argument("--server-env", type=Path, default=ROOT / ".server-env", help="environment that holds vLLM")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer; default: the tiny model's")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds per request")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
