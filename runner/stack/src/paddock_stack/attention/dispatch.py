"""Say which kernel vLLM's unified attention launches for a batch: the 2D one, or the 3D one with split keys.

The 3D kernel splits the keys of a sequence into segments whose partial softmaxes are merged afterwards. Where it
begins a new segment depends on the length of the whole sequence, so a verified row and the same row decoded alone
may round differently. Our backends therefore never take it: one keeps every launch 2D, the other splits at fixed
positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kernel(StrEnum):
    """The two launch grids of unified attention."""

    TWO_D = "2D"
    THREE_D = "3D"


@dataclass(frozen=True)
class Batch:
    """What the dispatch looks at.

    `query_len` is the longest query of the batch, in tokens; `block_q` the rows of one program: 16 over the query heads
    that share a key head, so 4 for Gemma 4 E4B.
    """

    sequences: int
    query_len: int
    query_tokens: int
    block_q: int = 4
    batch_invariant: bool = False
    causal: bool = True


@dataclass(frozen=True)
class Release:
    """The limits of one vLLM release: the longest query that may still be split, and whether scratch is checked."""

    longest_split_query: int
    checks_scratch: bool


# Up to 0.32 only single-token queries are split; 0.33 splits up to eight rows, so that a verified draft of K <= 7 is.
DECODE_ONLY = Release(longest_split_query=1, checks_scratch=False)
VERIFY_TOO = Release(longest_split_query=8, checks_scratch=True)


def chosen(batch: Batch, release: Release, *, scratch_rows: int | None, sequence_threshold: int) -> Kernel:
    """Return the kernel that a vLLM of `release` launches for `batch`.

    `scratch_rows` is how many query tokens the segment buffers hold, None where there are none, as the 2D backend
    leaves it; `sequence_threshold` is vLLM's `seq_threshold_3D`. This mirrors the condition in `unified_attention`.
    """
    blocks = batch.sequences * -(-batch.query_len // batch.block_q)
    if scratch_rows is None or batch.batch_invariant or blocks > sequence_threshold:
        return Kernel.TWO_D
    if batch.query_len > 1 and (batch.query_len > release.longest_split_query or not batch.causal):
        return Kernel.TWO_D
    if release.checks_scratch and batch.query_tokens > scratch_rows:
        return Kernel.TWO_D
    return Kernel.THREE_D
