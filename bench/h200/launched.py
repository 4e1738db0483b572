"""Serve bundled profiles as users do, with `paddock-stack serve`, on a small random checkpoint, and look at each.

    python bench/h200/launched.py FOLDER SECONDS PROFILE[:KEY=VALUE...] ... [--machine cpu]

The checkpoint has E4B's depth, kinds of layers, head sizes and towers at a small width, so that every bake, kernel and
graph of a profile is met; bakes are the launcher's own. All servers start together. Of each is printed, as JSON: the
seconds to readiness, the record (vLLM's resolutions, the warm-up, acceptance by position once it was stopped), and
whether the same prompts have the same answers twice. Servers of one kind of weights are compared: a profile that drafts
with the same one that doesn't (`int4-fast:speculation.tokens=0`). Logs and records stay in FOLDER.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEEP = {
    "hidden_size": 256,
    "intermediate_size": 1024,
    "hidden_size_per_layer_input": 128,
    "num_hidden_layers": 42,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 7,
    "num_kv_shared_layers": 18,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "global_head_dim": 512,
    "sliding_window": 512,
}
CENTROIDS = 64
KEPT = 1536  # of 2,048 tokens; the chat template needs its own
QUANTISED = ("int4-ar", "int4-mtp-2d", "int4-fast", "int4-headprune", "pruned-osoi5-repro")
# Several share the card, and what vLLM measures of its memory would be wrong beside others.
SHARED = ("engine.gpu-memory-utilization=0.05", "engine.kv-cache-memory-bytes=1073741824")
FIRST_PORT = 8100
TOKENS = 64


def main() -> None:
    """Write the checkpoints, serve, ask, stop, print."""
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("seconds", type=float)
    options.add_argument("profiles", nargs="+")
    options.add_argument("--machine", default="h200", choices=("h200", "cpu"))
    given = options.parse_args()
    on_cpu = given.machine == "cpu"
    write(given.folder, {} if on_cpu else DEEP, centroids=0 if on_cpu else CENTROIDS)
    ends = time.monotonic() + given.seconds
    servers = [Server(given.folder, name, number, given.machine) for number, name in enumerate(given.profiles)]
    try:
        awaited = servers
        while awaited and time.monotonic() < ends:
            time.sleep(0.5)
            awaited = [server for server in awaited if server.is_awaited()]
        for server in servers:
            server.ask()
    finally:
        for server in servers:
            server.stop()
        for server in servers:
            print("RESULT " + json.dumps(server.told()), flush=True)


def write(folder: Path, shape: dict[str, Any], *, centroids: int) -> None:
    """Write `plain`, `w4a16` and `drafter` below `folder`, and the keep-set that profiles look for."""
    from paddock_stack import cli
    from paddock_stack.bake.checkpoint import PROVENANCE
    from tests.runner.stack.serving import checkpoints

    folder.mkdir(parents=True, exist_ok=True)
    checkpoints.multimodal(str(folder / "plain"), **shape)
    checkpoints.add_unread_norms(str(folder / "plain"))
    checkpoints.text(str(folder / "text"), **shape)
    checkpoints.drafter(str(folder / "drafter"), str(folder / "text"), centroids=centroids, **shape)
    if shape:
        cli.main(["bake", "quantize", str(folder / "plain"), str(folder / "w4a16"), "--group-size", "32"])
        (folder / "w4a16" / PROVENANCE).unlink()  # a published checkpoint doesn't say how it was made either
    (folder / "keepset.json").write_text(json.dumps(list(range(KEPT))))


class Server:
    """One `paddock-stack serve` and what was seen of it."""

    def __init__(self, folder: Path, name: str, number: int, machine: str) -> None:
        self.name, self.port = name, FIRST_PORT + number
        self._ready_s: float | None = None
        self._answers: list[list[list[int]]] = []
        self._fault = ""
        self._began = time.monotonic()
        profile, _, said = name.partition(":")
        weights = "w4a16" if profile in QUANTISED and machine == "h200" else "plain"
        settings = [*(SHARED if machine == "h200" else ()), *filter(None, said.split(","))]
        words = ["-m", "paddock_stack.cli", "serve", profile, "--machine", machine]
        words += [
            "--weights",
            weights,
            "--drafter",
            "drafter",
            *(part for each in settings for part in ("--set", each)),
        ]
        self._log, cache = folder / f"{number}.log", folder / f"cache-{number}"
        self._record = cache / "serving-record.json"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                cwd=folder,
                env=_environment(self.port, cache),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def is_awaited(self) -> bool:
        """Return whether it is neither ready nor at its end; it is ready once strangers are answered."""
        if self._ready_s is not None or self._process.poll() is not None:
            return False
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5):
                self._ready_s = round(time.monotonic() - self._began, 1)
        except OSError:
            return True
        return False

    def ask(self) -> None:
        """Answer the same prompts twice, unless it fails to."""
        if self._ready_s is None:
            return
        try:
            self._answers = [[self._answer(seed) for seed in range(8)] for _ in range(2)]
        except (OSError, ValueError, KeyError) as fault:
            self._fault = str(fault)

    def stop(self) -> None:
        """Ask it to end as a runner does, and wait."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)

    def told(self) -> dict[str, Any]:
        """Return what was seen; the log's end where it never answered."""
        seen = {"name": self.name, "ready_s": self._ready_s, "status": self._process.wait()}
        if not self._answers:
            return {**seen, "fault": self._fault, "log": self._log.read_text(errors="replace")[-3000:]}
        once, again = self._answers
        record = json.loads(self._record.read_text())
        kept = ("resolved", "attention_kernel", "acceptance", "warm_up", "bake")
        digests = [hashlib.sha256(str(ids).encode()).hexdigest()[:8] for ids in once]
        return {**seen, "same": once == again, "answers": digests, **{key: record[key] for key in kept}}

    def _answer(self, seed: int) -> list[int]:
        draw = random.Random(seed)
        prompt = [2] + [draw.randrange(16, 1024) for _ in range(draw.randrange(20, 600))]
        asked = {"model": "small", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
        body = json.dumps({**asked, "return_token_ids": True}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions", body, headers)
        with urllib.request.urlopen(request, timeout=120) as reply:
            ids: list[int] = json.load(reply)["choices"][0]["token_ids"]
        return ids


def _environment(port: int, cache: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PADDOCK_", "VLLM_"))}
    passed = {name: os.environ[name] for name in ("VLLM_USE_FLASHINFER_SAMPLER",) if name in os.environ}
    told = {"HOST": "127.0.0.1", "PORT": str(port), "SERVED_MODEL_NAME": "small", "PADDOCK_STACK_CACHE": str(cache)}
    return {**kept, **passed, **told}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
