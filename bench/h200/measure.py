"""Measure one configuration of vLLM in one process and print one line of JSON: ms a step, tokens/s, identity.

    python measure.py CHECKPOINTS NAME [--barrier FOLDER --turn I --of N] [--ids FOLDER] [--identity N]

Several of these may start together: with `--barrier` each builds its engine, waits until all N have, and they then
measure one at a time, in the order of their turns from 0. Prompts are of random ids, the weights those of seeded.py.
With `--ids` an engine without a drafter leaves its ids there, and one with a drafter (`+mtpK`) that finds those of its
plain twin drafts from them (oracle.py) and is compared with them: measure the plain twin first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from configurations import configuration
from oracle import Oracle, Stopwatch, compare, drafter_of, ids_file, read_ids
from probed import cost


def main() -> None:
    """Build the engine, wait for one's turn, measure, print."""
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("name")
    options.add_argument("--barrier", type=Path)
    options.add_argument("--turn", type=int, default=0)
    options.add_argument("--of", type=int, default=1)
    options.add_argument("--ids", type=Path, help="where plain engines leave what they generated")
    options.add_argument("--identity", type=int, default=0, help="prompts of 256 new tokens")
    options.add_argument("--passes", type=int, default=2, help="how often these are decoded")
    options.add_argument("--new-tokens", type=int, default=512)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--eager", action="store_true", help="no compilation, no CUDA graphs")
    options.add_argument("--own-cache", action="store_true", help="compile and choose kernels as on a new machine")
    options.add_argument("--profile", action="store_true", help="print where the time of 96 tokens goes")
    options.add_argument("--steptime", action="store_true", help="what the probe of steps costs")
    options.add_argument("--core-process", action="store_true", help="as a server has it; drafters can't be told then")
    given = options.parse_args()
    environment, engine = configuration(given.name, given.folder)
    os.environ.update(environment, VLLM_ENABLE_V1_MULTIPROCESSING=str(int(given.core_process)))
    if given.own_cache:
        cache = tempfile.mkdtemp()
        os.environ.update(VLLM_CACHE_ROOT=cache, TORCHINDUCTOR_CACHE_DIR=f"{cache}/inductor")
    probe = Path(tempfile.mkdtemp()) / "steptime.json" if given.steptime else None
    if probe:
        os.environ["PADDOCK_STEPTIME"] = str(probe)
    drafts = "speculative_config" in engine
    if given.ids and not drafts:
        ids_file(given.ids, given.name).unlink(missing_ok=True)  # an earlier run's are not this engine's
    llm, start_s = build(engine | ({"enforce_eager": True} if given.eager else {}))
    with turn(given.barrier, given.turn, given.of):
        plain = read_ids(ids_file(given.ids, given.name)) if given.ids and drafts else {}
        decoder = Decoder(llm, plain, drafts=drafts)
        result = {"name": given.name, "core_process": given.core_process, "start_s": start_s, "oracle": bool(plain)}
        result |= speed(decoder, given.new_tokens, given.runs)
        if given.identity:
            result["identity"] = identity(decoder, given.identity, given.passes)
        if probe:
            result["steptime"] = cost(lambda seed: decoder(seed, 256), probe)
        if given.profile:
            profile(decoder)
        if given.ids and not drafts:
            ids_file(given.ids, given.name).write_text(json.dumps(decoder.longest))
    print("RESULT " + json.dumps(result), flush=True)


def build(engine: dict[str, Any]) -> tuple[Any, float]:
    """Return vLLM's engine, and the seconds its start took."""
    began = time.monotonic()
    import seeded  # noqa: F401  (registers the load format)
    from vllm import LLM

    return LLM(**engine), round(time.monotonic() - began, 1)


class turn:  # noqa: N801  (a context manager read as a verb)
    """Hold everybody until all have started, then let one at a time through.

    Whoever ends without having started or measured is marked by together.py, so that nobody waits for it.
    """

    def __init__(self, folder: Path | None, number: int, of: int) -> None:
        self.folder, self.number, self.of = folder, number, of

    def __enter__(self) -> None:
        """Wait for the others' engines, and for one's turn."""
        if self.folder is None:
            return
        started(self.folder, self.number).touch()
        before = [measured(self.folder, number) for number in range(self.number)]
        awaited = [started(self.folder, number) for number in range(self.of)] + before
        while not all(mark.exists() for mark in awaited):
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        """Let the next one measure."""
        if self.folder is not None:
            measured(self.folder, self.number).touch()


def started(folder: Path, number: int) -> Path:
    """Return the mark that says that engine `number` has started."""
    return folder / f"started-{number}"


def measured(folder: Path, number: int) -> Path:
    """Return the mark that says that engine `number` has been measured."""
    return folder / f"measured-{number}"


def generate(llm: Any, prompt: list[int], tokens: int) -> tuple[float, list[int]]:
    """Return the seconds that `tokens` greedy tokens took, and their ids."""
    from vllm import SamplingParams

    wanted = SamplingParams(temperature=0.0, max_tokens=tokens, ignore_eos=True, detokenize=False)
    began = time.perf_counter()
    (output,) = llm.generate([{"prompt_token_ids": prompt}], wanted, use_tqdm=False)
    seconds = time.perf_counter() - began
    ids = list(output.outputs[0].token_ids)
    assert len(ids) == tokens, (len(ids), tokens)
    return seconds, ids


def prompt_of(seed: int, length: int = 256) -> list[int]:
    """Return a prompt of random ids."""
    draw = random.Random(seed)
    return [2] + [draw.randrange(1000, 4000) for _ in range(length - 1)]


class Decoder:
    """Decode seeded prompts on `llm`: keep the longest ids of each seed, and tell an oracle what `plain` gave."""

    def __init__(self, llm: Any, plain: dict[int, list[int]], *, drafts: bool) -> None:
        self.llm, self.plain = llm, plain
        self.longest: dict[int, list[int]] = {}
        self.watch = Stopwatch(drafter_of(llm)) if drafts else None
        self._oracle = Oracle(drafter_of(llm)) if plain else None

    def __call__(self, seed: int, tokens: int) -> tuple[float, list[int]]:
        """Return the seconds that `tokens` greedy tokens took, and their ids."""
        prompt = prompt_of(seed)
        if self._oracle:
            self._oracle.tell(prompt + self.plain.get(seed, []), seed)
        seconds, ids = generate(self.llm, prompt, tokens)
        if len(ids) > len(self.longest.get(seed, [])):
            self.longest[seed] = ids
        return seconds, ids


def speed(decoder: Decoder, tokens: int, runs: int) -> dict[str, Any]:
    """Return tokens/s end to end and ms a token without the prefill; medians, with the extremes of `runs`."""
    decoder(0, 64)
    first = statistics.median(decoder(seed, 1)[0] for seed in range(1, runs + 1))
    before = drafted(decoder.llm)
    if decoder.watch:
        decoder.watch.restart()
    timed = [decoder(seed, tokens) for seed in range(1, runs + 1)]
    seconds = [took for took, _ in timed]
    middle = statistics.median(seconds)
    after = drafted(decoder.llm)
    steps = after["drafts"] - before["drafts"]
    spec = {"tokens_a_step": round(1 + (after["accepted"] - before["accepted"]) / steps, 3)} if steps else {}
    if steps:
        spec["ms_a_step"] = round(sum(seconds) / steps * 1e3, 3)
    if decoder.watch:
        spec["draft_ms"] = round(decoder.watch.median_ms(), 3)
    return {
        "tokens_per_s": round(tokens / middle, 2),
        "range": [round(tokens / max(seconds), 2), round(tokens / min(seconds), 2)],
        "ms_a_token": round((middle - first) / (tokens - 1) * 1e3, 3),
        "first_token_ms": round(first * 1e3, 1),
        "distinct": statistics.median(len(set(ids)) for _, ids in timed),
        **spec,
    }


def profile(decoder: Decoder) -> None:
    """Print which operators and kernels the time of 96 tokens goes to, as torch's profiler sees them."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watched

    with watched(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        decoder(1, 96)
    for order in ("self_cuda_time_total", "self_cpu_time_total"):
        print(seen.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=80), flush=True)


def drafted(llm: Any) -> dict[str, float]:
    """Return how often a draft was made and how many of its tokens were accepted, so far."""
    names = {"vllm:spec_decode_num_drafts": "drafts", "vllm:spec_decode_num_accepted_tokens": "accepted"}
    counts = {"drafts": 0.0, "accepted": 0.0}
    for metric in llm.get_metrics():
        if metric.name in names:
            counts[names[metric.name]] = metric.value
    return counts


def identity(decoder: Decoder, prompts: int, passes: int) -> dict[str, Any]:
    """Return how many prompts give the same 256 tokens in each pass, and digests to compare engines with.

    `texts` is one of all prompts together.

    With an oracle, also of how many these are the plain twin's, and where the others first differ.
    """
    decoded = [[decoder(1000 + seed, 256)[1] for seed in range(prompts)] for _ in range(passes)]
    digests = [hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()[:16] for ids in decoded[0]]
    same = sum(all(again[index] == ids for again in decoded) for index, ids in enumerate(decoded[0]))
    against = compare(decoder.plain, dict(enumerate(decoded[0], 1000))) if decoder.plain else {}
    texts = hashlib.sha256(",".join(digests).encode()).hexdigest()[:16]
    return {"passes": passes, "same": same, "of": prompts, **against, "texts": texts, "digests": digests}


if __name__ == "__main__":
    main()
