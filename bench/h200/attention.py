"""Hold the fixed split against fp32 attention and against itself, then time it beside vLLM's 2D and 3D kernels.

    python attention.py OUT.json [--seconds N] [--cuts]

The shapes are those of Gemma 4 E4B: eight query heads on two key heads, 256 wide in layers with a window of 512, 512
wide in the others. Correctness comes first: the largest error against fp32, and how many rows differ in a bit between
decoding one by one and verifying 2 to 8 at once, from caches as vLLM 0.23 lays them out and from keys and values side
by side, as 0.32 and later do. Then microseconds a call, the median of graph replays over caches larger than the L2
together. With `--cuts` other segments are timed as well.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from timing import DEVICE, L2_BYTES, timed
from vllm.v1.attention.ops.triton_unified_attention import unified_attention

from paddock_stack.attention.fixed_split import halves
from paddock_stack.attention.fixed_split_plan import TOKENS, Cut, cut_for, slots
from paddock_stack.attention.fixed_split_scratch import Scratch, scratch
from paddock_stack.attention.fixed_split_triton import launch
from paddock_stack.attention.fixed_split_twin import Paged, reference

HEADS, KV_HEADS, BLOCK, LONGEST = 8, 2, 16, 4096
KINDS = {"sliding": (256, 512), "full": (512, 0)}  # head, window
CONTEXTS = (256, 640, 2048, 4000)
# Edges of segments and of the window, and a few of no kind.
LENGTHS = (8, 9, 31, 32, 33, 39, 63, 64, 65, 71, 72, 100, 511, 512, 513, 519, 520, 521, 575, 576, 640, 1037, 2048, 4000)
SPLITS = 16  # of vLLM's 3D kernel
CUTS = tuple(
    Cut(segment, tile, warps)
    for segment in (32, 64, 128)
    for tile in (16, 32, 64)
    for warps in (4, 8)
    if segment >= tile
)
Call = Callable[[], torch.Tensor]


class Kind(NamedTuple):
    """One kind of layer."""

    head: int
    window: int

    def query(self, tokens: int) -> torch.Tensor:
        """Return random queries, cut out of a wider tensor as vLLM's are."""
        wide = torch.randn(tokens, HEADS + 2 * KV_HEADS, self.head, device=DEVICE) * self.head**-0.5
        return wide.bfloat16()[:, :HEADS]

    def room(self, cut: Cut | None = None) -> Scratch:
        """Return scratch for eight tokens."""
        return scratch(TOKENS * HEADS * slots(cut or cut_for(self.head), self.window, LONGEST), self.head, DEVICE)


def main() -> None:
    """Check, measure, print a line each and write it all to OUT."""
    options = argparse.ArgumentParser()
    options.add_argument("out", type=Path)
    options.add_argument("--seconds", type=float, default=300.0)
    options.add_argument("--cuts", action="store_true")
    given = options.parse_args()
    ends = time.monotonic() + given.seconds
    torch.manual_seed(0)
    parts: list[tuple[str, Callable[[], Any]]] = []
    for name, sizes in KINDS.items():
        parts.append((f"{name} correct", lambda kind=Kind(*sizes): correctness(kind)))
    for name, sizes in KINDS.items():
        for context in CONTEXTS:
            call = lambda kind=Kind(*sizes), context=context: speeds(kind, context, cuts=given.cuts)  # noqa: E731
            parts.append((f"{name} {context}", call))
    figures: dict[str, Any] = {}
    for name, part in parts:
        if time.monotonic() < ends:
            figures[name] = part()
            print(name, json.dumps(figures[name]), flush=True)
            given.out.write_text(json.dumps(figures, indent=1))
            torch.cuda.empty_cache()


def correctness(kind: Kind) -> dict[str, Any]:
    """Return errors against fp32 and the number of rows, of all lengths, that differ from those of eight together."""
    ways = {"fixed_split": (fixed, False), "fixed_split_beside": (fixed, True), "two_d": (stock, False)}
    told: dict[str, Any] = {}
    for name, (way, is_beside) in ways.items():
        error, differing, compared = 0.0, 0, 0
        for length in LENGTHS:
            case, query = paged(kind, length, TOKENS, is_beside=is_beside), kind.query(TOKENS)
            whole = answer(way, kind, query, case)
            error = max(error, float((whole.float() - reference(query, case, kind.window)).abs().max()))
            for count in range(1, TOKENS):
                for begin in range(TOKENS - count + 1):
                    some = slice(begin, begin + count)
                    fewer = shorter(case, length - TOKENS + some.stop, count)
                    differing += int((answer(way, kind, query[some], fewer) != whole[some]).flatten(1).any(1).sum())
                    compared += count
        told[name] = {"error": float(f"{error:.2e}"), "rows_that_differ": differing, "rows": compared}
    return told


def speeds(kind: Kind, context: int, *, cuts: bool) -> dict[str, float]:
    """Return microseconds a call at `context` keys, of one token and of eight."""
    size = min(context, kind.window or context) * KV_HEADS * kind.head * 4
    copies = max(4, min(96, 2 * L2_BYTES // size))
    told: dict[str, float] = {}
    for tokens in (1, TOKENS):
        query = kind.query(tokens)
        cases, beside = (
            [paged(kind, context, tokens, is_beside=each) for _ in range(copies)] for each in (False, True)
        )
        told[f"two_d_{tokens}"] = over(cases, stock, kind, query)
        if tokens == 1:
            told["three_d_1"] = over(cases, stock, kind, query, split_buffers(kind))
        for cut in (None, *(each for each in CUTS if cuts and fits(each, kind))):
            name = f"fixed_{tokens}" + (f" {cut.segment}/{cut.tile}/{cut.warps}" if cut else "")
            told[name] = over(cases, fixed, kind, query, kind.room(cut), cut)
        told[f"fixed_beside_{tokens}"] = over(beside, fixed, kind, query, kind.room())
    return told


def over(cases: list[Paged], way: Callable[..., Call], kind: Kind, query: torch.Tensor, *rest: Any) -> float:
    """Return microseconds a call of `way`, over all `cases` in turn, each with an output of its own."""
    return timed([way(kind, query, case, query.new_empty(query.shape), *rest) for case in cases])


def fits(cut: Cut, kind: Kind) -> bool:
    """Return whether a program's queries, keys and values fit the shared memory of sm_86."""
    return (TOKENS * HEADS // KV_HEADS + 2 * cut.tile) * kind.head * 2 <= 99 << 10


def answer(way: Callable[..., Call], kind: Kind, query: torch.Tensor, case: Paged) -> torch.Tensor:
    """Return what one call of `way` writes."""
    output = torch.full((query.shape[0], HEADS, kind.head), float("nan"), dtype=query.dtype, device=query.device)
    return way(kind, query, case, output)()


def fixed(
    kind: Kind,
    query: torch.Tensor,
    case: Paged,
    output: torch.Tensor,
    room: Scratch | None = None,
    cut: Cut | None = None,
) -> Call:
    """Return a call of the fixed split."""
    own, told = room or kind.room(cut), {"window": kind.window, "longest": LONGEST, "cut": cut}

    def call() -> torch.Tensor:
        launch(query, case, output, own, longest_query=query.shape[0], **told)
        return output

    return call


def split_buffers(kind: Kind) -> dict[str, Any]:
    """Return what makes vLLM take its 3D kernel, sized as its own builder does."""
    rows = 128 // KV_HEADS
    return {
        "seq_threshold_3D": rows,
        "num_par_softmax_segments": SPLITS,
        "softmax_segm_output": torch.empty(rows, HEADS, SPLITS, kind.head, device=DEVICE),
        "softmax_segm_max": torch.empty(rows, HEADS, SPLITS, device=DEVICE),
        "softmax_segm_expsum": torch.empty(rows, HEADS, SPLITS, device=DEVICE),
    }


def stock(
    kind: Kind, query: torch.Tensor, case: Paged, output: torch.Tensor, parts: dict[str, Any] | None = None
) -> Call:
    """Return a call of vLLM's unified attention: 2D, or 3D with `parts`."""

    def call() -> torch.Tensor:
        unified_attention(
            q=query,
            k=case.keys,
            v=case.values,
            out=output,
            cu_seqlens_q=case.starts,
            max_seqlen_q=query.shape[0],
            seqused_k=case.lengths,
            max_seqlen_k=LONGEST,
            softmax_scale=1.0,
            causal=True,
            window_size=(kind.window - 1, 0) if kind.window else (-1, -1),
            block_table=case.table,
            softcap=0,
            q_descale=None,
            k_descale=None,
            v_descale=None,
            **(parts or {}),
        )
        return output

    return call


def paged(kind: Kind, length: int, tokens: int, *, is_beside: bool = False) -> Paged:
    """Return one sequence of `length` random keys in shuffled pages, its last `tokens` asked about."""
    blocks = LONGEST // BLOCK
    page = (KV_HEADS, BLOCK, 2 * kind.head) if is_beside else (2, BLOCK, KV_HEADS, kind.head)
    cache = torch.randn(blocks + 1, *page, device=DEVICE, dtype=torch.bfloat16)
    table = (torch.randperm(blocks, device=DEVICE) + 1).int()[None]
    return Paged(*halves(cache), table, _whole([length]), _whole([0, tokens]))


def shorter(case: Paged, length: int, count: int) -> Paged:
    """Return the sequence of `case` before the keys from `length` on counted, its last `count` asked about."""
    return case._replace(lengths=_whole([length]), starts=_whole([0, count]))


def _whole(numbers: list[int]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32, device=DEVICE)


if __name__ == "__main__":
    main()
