"""The guard's cap: absolute in the race's file, or a factor over what the reference model itself scored."""

import math
from pathlib import Path

from runner.harness.faults import BadInput
from runner.harness.prompts import read_references
from storage.challenge import Guard


def guard_cap(guard: Guard, references: Path) -> float | None:
    """Return the cap on the guard, or None where neither the race nor the records give one."""
    if guard.cap is not None:
        return guard.cap
    found = reference_ppl(references)
    return None if found is None else guard.factor * found


def reference_ppl(path: Path) -> float | None:
    """Return exp(Σ nll ÷ Σ tokens) of the reference model over its own records, or None where they don't say."""
    if not path.is_file():
        return None
    try:
        records = read_references(path)
    except BadInput:
        return None
    if any(record.target_nll is None for record in records):
        return None
    nll = [value for record in records for value in record.target_nll or ()]
    ppl = math.exp(math.fsum(nll) / len(nll))
    return ppl if math.isfinite(ppl) and ppl > 0 else None
