"""The shapes of the files that others read: the totals of a benchmark, decoded ids, perplexities, the summary."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Sequence
from typing import Any

from runner.harness import VERSION
from runner.harness.decoding import Decoded, Timed
from runner.harness.scoring import Perplexity, Scored, exp
from runner.harness.spec import Spec

Json = dict[str, Any]


def token_sha256(token_ids: Sequence[int]) -> str:
    """Return the hex SHA-256 of the ids in decimal, joined by commas."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()


def benchmark_record(decoded: Decoded) -> Json:
    """Return the totals under the names that SGLang's bench gives them, with one list entry per timed request."""
    timed, duration = decoded.timed, decoded.duration_s
    return {
        "backend": "paddock",
        "max_concurrency": 1,
        "duration": duration,
        "completed": len(timed),
        "total_input_tokens": decoded.input_tokens,
        "total_output_tokens": decoded.output_tokens,
        "request_throughput": len(timed) / duration,
        "input_throughput": decoded.input_tokens / duration,
        "output_throughput": decoded.output_tokens / duration,
        **latency_statistics([one.latency_s for one in timed]),
        "concurrency": math.fsum(one.latency_s for one in timed) / duration,
        "ids": [one.chosen.prompt.id for one in timed],
        "input_lens": [len(one.chosen.token_ids) for one in timed],
        "output_lens": [len(one.completion.token_ids) for one in timed],
        "e2e_latencies_s": [one.latency_s for one in timed],
        "errors": ["" for _ in timed],
    }


def latency_statistics(latencies_s: Sequence[float]) -> Json:
    """Return mean, median, standard deviation and 99th percentile, in milliseconds."""
    milliseconds = sorted(1000 * value for value in latencies_s)
    return {
        "mean_e2e_latency_ms": statistics.fmean(milliseconds),
        "median_e2e_latency_ms": statistics.median(milliseconds),
        "std_e2e_latency_ms": statistics.pstdev(milliseconds),
        "p99_e2e_latency_ms": _percentile(milliseconds, 0.99),
    }


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which `share` of `ordered` lies, between neighbours in proportion, as NumPy does."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def decode_record(index: int, one: Timed) -> Json:
    """Return what one timed request asked and received."""
    ids, prompt_ids = one.completion.token_ids, one.chosen.token_ids
    return {
        "id": one.chosen.prompt.id,
        "index": index,
        "dataset_index": one.chosen.dataset_index,
        "num_prompt_tokens": len(prompt_ids),
        "prompt_token_ids": list(prompt_ids),
        "prompt_token_sha256": token_sha256(prompt_ids),
        "num_completion_tokens": len(ids),
        "completion_token_ids": list(ids),
        "completion_token_sha256": token_sha256(ids),
        "token_id_source": "choices[0].token_ids",
        "reported_completion_tokens": one.completion.reported_tokens,
    }


def decode_summary(decoded: Decoded, spec: Spec) -> Json:
    """Return the totals of `decode_outputs.jsonl`."""
    return {
        "num_records": len(decoded.timed),
        "num_prompt_tokens": decoded.input_tokens,
        "num_completion_tokens": decoded.output_tokens,
        "output_len": spec.output_tokens,
        "duration_s": decoded.duration_s,
        "seed": spec.seed,
        "request_timeout_s": spec.request_timeout_s,
        "token_ids_required": True,
        "token_id_sources": {"choices[0].token_ids": len(decoded.timed)},
        "usage_disagreements": _usage_disagreements(decoded),
        "from_timed_replies": True,
    }


def ppl_record(one: Scored) -> Json:
    """Return one scored record; positions count from the start of its prompt."""
    first = len(one.reference.prompt_token_ids)
    return {
        "id": one.reference.id,
        "num_tokens": len(one.nll),
        "neg_log_likelihood": one.total_nll,
        "ppl": exp(one.total_nll / len(one.nll)),
        "score_start": first,
        "score_end": first + len(one.nll),
        "duration_s": one.duration_s,
    }


def ppl_summary(found: Perplexity, spec: Spec) -> Json:
    """Return the perplexity, what it was made from, and what the decoys showed."""
    return {
        "ppl": found.ppl,
        "mean_record_ppl": found.mean_record_ppl,
        "neg_log_likelihood": found.total_nll,
        "num_tokens": found.num_tokens,
        "num_records": len(found.records),
        "num_decoys": len(found.decoys),
        "decoy_gap_nats": found.decoy_gap,
        "ppl_cap": spec.ppl_cap,
        "within_cap": _is_within(found.ppl, spec.ppl_cap),
    }


def summary(decoded: Decoded, found: Perplexity | None, spec: Spec) -> Json:
    """Return the measurement in one record; `tps` and `total_tps` in tokens per second."""
    ppl = None if found is None else found.ppl
    tps = decoded.output_tokens / decoded.duration_s
    return {
        "run_id": spec.run_id,
        "hardware": spec.hardware,
        "harness_version": VERSION,
        "model": spec.served_model_name,
        "tps": tps,
        "output_tps": tps,
        "total_tps": (decoded.input_tokens + decoded.output_tokens) / decoded.duration_s,
        "ppl": ppl,
        "mean_record_ppl": None if found is None else found.mean_record_ppl,
        "ppl_num_tokens": 0 if found is None else found.num_tokens,
        "ppl_cap": spec.ppl_cap,
        "ppl_within_cap": None if ppl is None else _is_within(ppl, spec.ppl_cap),
        "completed": len(decoded.timed),
        "num_prompts": spec.num_prompts,
        "output_len": spec.output_tokens,
        "total_input_tokens": decoded.input_tokens,
        "total_output_tokens": decoded.output_tokens,
        "usage_disagreements": _usage_disagreements(decoded),
        "duration_s": decoded.duration_s,
        "request_throughput_req_s": len(decoded.timed) / decoded.duration_s,
        "max_concurrency": 1,
        "warmup_requests": spec.warmup_requests,
        "max_prompt_tokens": spec.max_prompt_tokens,
        "request_timeout_s": spec.request_timeout_s,
        "seed": spec.seed,
        **latency_statistics([one.latency_s for one in decoded.timed]),
    }


def _is_within(ppl: float, cap: float | None) -> bool | None:
    return None if cap is None else ppl <= cap


def _usage_disagreements(decoded: Decoded) -> int:
    """Return how many replies claimed another number of tokens than they carried."""
    return sum(one.completion.reported_tokens != len(one.completion.token_ids) for one in decoded.timed)
