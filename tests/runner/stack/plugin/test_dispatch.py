"""The predicate says which attention kernel vLLM launches, and that the 2D backend leaves only one."""

import ast
import math
from types import SimpleNamespace
from typing import Any

import pytest

from paddock_stack.attention.dispatch import DECODE_ONLY, VERIFY_TOO, Batch, Kernel, Release, chosen
from tests.runner.stack.conftest import SERVER_ENV

DECODE = Batch(sequences=1, query_len=1, query_tokens=1)
VERIFY_8 = Batch(sequences=1, query_len=8, query_tokens=8)
VERIFY_9 = Batch(sequences=1, query_len=9, query_tokens=9)
PREFILL = Batch(sequences=1, query_len=512, query_tokens=512)
TABLE = [
    # batch, release, scratch rows, threshold, kernel
    (DECODE, DECODE_ONLY, 64, 64, Kernel.THREE_D),
    (DECODE, VERIFY_TOO, 64, 64, Kernel.THREE_D),
    (VERIFY_8, DECODE_ONLY, 64, 64, Kernel.TWO_D),
    (VERIFY_8, VERIFY_TOO, 64, 64, Kernel.THREE_D),
    (VERIFY_9, VERIFY_TOO, 72, 64, Kernel.TWO_D),  # K = 8 loses split keys
    (VERIFY_8, VERIFY_TOO, 7, 64, Kernel.TWO_D),
    (VERIFY_8, VERIFY_TOO, 64, 1, Kernel.TWO_D),  # two blocks of queries: a sole capture size of 1 turns it off
    (VERIFY_8, VERIFY_TOO, 64, 2, Kernel.THREE_D),
    (PREFILL, DECODE_ONLY, 64, 64, Kernel.TWO_D),
    (Batch(sequences=65, query_len=1, query_tokens=65), DECODE_ONLY, 64, 64, Kernel.TWO_D),
    (Batch(sequences=64, query_len=1, query_tokens=64), DECODE_ONLY, 64, 64, Kernel.THREE_D),
    (Batch(sequences=1, query_len=1, query_tokens=1, batch_invariant=True), VERIFY_TOO, 64, 64, Kernel.TWO_D),
    (Batch(sequences=1, query_len=4, query_tokens=4, causal=False), VERIFY_TOO, 64, 64, Kernel.TWO_D),
]


@pytest.mark.parametrize(("batch", "release", "rows", "threshold", "kernel"), TABLE)
def test_dispatch(batch: Batch, release: Release, rows: int, threshold: int, kernel: Kernel) -> None:
    assert chosen(batch, release, scratch_rows=rows, sequence_threshold=threshold) is kernel


@pytest.mark.parametrize(("batch", "release"), [row[:2] for row in TABLE])
def test_without_segment_buffers_every_launch_is_2d(batch: Batch, release: Release) -> None:
    assert chosen(batch, release, scratch_rows=None, sequence_threshold=64) is Kernel.TWO_D


@pytest.mark.vllm
@pytest.mark.parametrize(("batch", "rows", "threshold"), [(row[0], row[2], row[3]) for row in TABLE])
@pytest.mark.parametrize("has_scratch", [True, False])
def test_predicate_is_the_installed_vllms_own_condition(
    batch: Batch, rows: int, threshold: int, has_scratch: bool
) -> None:
    meant = chosen(batch, DECODE_ONLY, scratch_rows=rows if has_scratch else None, sequence_threshold=threshold)
    assert _condition(batch, threshold, has_scratch=has_scratch) is (meant is Kernel.THREE_D)


def _condition(batch: Batch, threshold: int, *, has_scratch: bool) -> bool:
    """Evaluate the expression that `unified_attention` assigns to `use_3d`, read off its source."""
    path = next(SERVER_ENV.glob("lib/python3*/site-packages/vllm/v1/attention/ops/triton_unified_attention.py"), None)
    if path is None:
        pytest.skip(f"THE SERVER ENVIRONMENT IS ABSENT: {SERVER_ENV} (make server-env)")
    assigned = next(
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "use_3d"
    )
    buffer = object() if has_scratch else None
    names: dict[str, Any] = {
        **dict.fromkeys(("softmax_segm_output", "softmax_segm_max", "softmax_segm_expsum"), buffer),
        "seq_threshold_3D": threshold,
        "num_par_softmax_segments": 16,
        "max_seqlen_q": batch.query_len,
        "num_seqs": batch.sequences,
        "is_batch_invariant": batch.batch_invariant,
        "triton": SimpleNamespace(cdiv=lambda a, b: math.ceil(a / b)),
    }
    return bool(eval(compile(ast.Expression(assigned.value), str(path), "eval"), names))
