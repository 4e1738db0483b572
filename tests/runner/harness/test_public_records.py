"""Our totals are those of the public harness, on records that it left itself."""

import gzip
import json
from pathlib import Path

import pytest

from runner.harness.decoding import Decoded, Timed
from runner.harness.prompts import Prompt
from runner.harness.records import benchmark_record, token_sha256
from runner.harness.replies import Completion
from runner.harness.selection import Chosen

RUNS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "runs"
WHOLE = sorted(RUNS.glob("*/benchmark.jsonl"))

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not WHOLE, reason=f"THE PUBLIC RECORDS ARE ABSENT: no benchmark.jsonl under {RUNS}"),
]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: str(path.parent.name))
def test_totals_recomputed_from_a_public_benchmark_are_its_own(path: Path) -> None:
    public = json.loads(path.read_text().splitlines()[0])
    timed = [
        Timed(Chosen(Prompt(id=str(n)), (0,) * prompt, n), Completion((0,) * output, "", None), latency)
        for n, (prompt, output, latency) in enumerate(
            zip(public["input_lens"], public["output_lens"], public["ttfts"], strict=True)
        )
    ]
    ours = benchmark_record(Decoded(timed, public["duration"]))
    for name in ("total_output_tokens", "total_input_tokens", "completed"):
        assert ours[name] == public[name]
    for name in ("output_throughput", "input_throughput", "request_throughput"):
        assert ours[name] == pytest.approx(public[name], rel=1e-12)
    for name in ("mean", "median", "std", "p99"):
        assert ours[f"{name}_e2e_latency_ms"] == pytest.approx(public[f"{name}_e2e_latency_ms"], rel=1e-6)


def test_digest_of_token_ids_is_that_of_the_public_harness() -> None:
    checked = 0
    for path in sorted(RUNS.glob("*/decode_outputs.jsonl.gz"))[:2]:
        for line in gzip.decompress(path.read_bytes()).decode().splitlines()[:20]:
            record = json.loads(line)
            assert token_sha256(record["completion_token_ids"]) == record["completion_token_sha256"]
            checked += 1
    assert checked
