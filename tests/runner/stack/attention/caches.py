"""Tasks of the zygote that hold the fixed split's twin against fp32 attention, and its kernels against the twin.

Every task asserts and returns nothing. Caches are torn into pages in random order, and every slot that no sequence
owns is not a number: who reads one, and lets it count, is found.
"""

from __future__ import annotations

import sys

import torch

from paddock_stack.attention.fixed_split_plan import TOKENS, Cut, cut_for, slots
from paddock_stack.attention.fixed_split_scratch import scratch
from paddock_stack.attention.fixed_split_twin import Paged, reference, twin

GROUP, BLOCK = 4, 16
SMALL = Cut(segment=16, tile=16, warps=4)
TILED = Cut(segment=32, tile=16, warps=4)
# Around the edges of segments of 16 and 32 and of windows of 40 and 48, each with eight tokens at the end.
LENGTHS = (1, 2, 8, 15, 16, 17, 31, 32, 33, 40, 41, 47, 48, 49, 55, 56, 57, 63, 64, 65, 71, 72, 130)
WINDOWS = (0, 40, 48)


def paged(lengths: list[int], counts: list[int], head: int, dtype: torch.dtype, kv_heads: int = 1) -> Paged:
    """Return caches of random keys and values for sequences of `lengths`, whose last `counts` tokens are asked about.

    A key depends on its sequence and position alone.
    """
    draw = torch.Generator().manual_seed(0)
    widest = -(-max(lengths) // BLOCK)
    table = torch.randperm(len(lengths) * widest, generator=draw).view(len(lengths), widest) + 1
    caches = torch.full((len(lengths) * widest + 1, 2, BLOCK, kv_heads, head), float("nan"), dtype=dtype)
    for sequence, length in enumerate(lengths):
        place = torch.arange(length)
        written = torch.randn(4096, 2, kv_heads, head, generator=torch.Generator().manual_seed(sequence))
        caches[table[sequence][place // BLOCK], :, place % BLOCK] = written[:length].to(dtype)
    starts = torch.tensor([0, *torch.tensor(counts).cumsum(0).tolist()], dtype=torch.int32)
    keys, values = caches.unbind(1)
    return Paged(keys, values, table.int(), torch.tensor(lengths, dtype=torch.int32), starts)


def queries(count: int, head: int, dtype: torch.dtype, kv_heads: int = 1) -> torch.Tensor:
    """Return `count` query tokens, cut out of a wider tensor as vLLM cuts them out of the product of q, k and v."""
    heads = GROUP * kv_heads
    wide = torch.randn(count, heads + 2 * kv_heads, head, generator=torch.Generator().manual_seed(7)) * head**-0.5
    return wide.to(dtype)[:, :heads]


def twin_is_attention() -> None:
    """The twin is fp32 attention up to the rounding of weights and result."""
    for dtype, error in ((torch.float32, 1e-5), (torch.bfloat16, 0.02)):
        for window in WINDOWS:
            for length in LENGTHS:
                case = paged([length, 77], [min(length, TOKENS), 3], 32, dtype)
                query = queries(min(length, TOKENS) + 3, 32, dtype)
                told = twin(query, case, window, SMALL).float()
                assert torch.allclose(told, reference(query, case, window), rtol=error, atol=error), (length, window)


def reference_is_torchs() -> None:
    """The reference is torch's own attention under an explicit mask."""
    for window in WINDOWS:
        case, query = paged([57], [8], 32, torch.float32), queries(8, 32, torch.float32)
        keys, values = (
            each[case.table[0].long()].flatten(0, 1)[:57].repeat_interleave(GROUP, 1).transpose(0, 1)
            for each in (case.keys, case.values)
        )
        back = (torch.arange(8) + 49)[:, None] - torch.arange(57)[None, :]
        mask = (back >= 0) & (back < (window or 57))
        meant = torch.nn.functional.scaled_dot_product_attention(
            query.transpose(0, 1), keys, values, attn_mask=mask, scale=1.0
        )
        assert torch.allclose(reference(query, case, window).transpose(0, 1), meant, atol=1e-5)


def kernels_are_the_twin(path: str, lengths: list[int]) -> None:
    """The interpreted kernels return the twin's rows at every edge; bfloat16 is left out, the interpreter has none."""
    sys.path.append(path)
    for cut, window in ((SMALL, 0), (SMALL, 40), (TILED, 48)):
        for length in lengths:
            _hold(cut, [length], [min(length, TOKENS)], 32, window, torch.float32)
    _hold(SMALL, [65, 9], [3, 1], 32, 40, torch.float16, kv_heads=2)


def kernels_at_the_models_sizes(path: str) -> None:
    """The cuts that a GPU runs, of both kinds of layers, at short, windowed and long contexts."""
    sys.path.append(path)
    for head, window in ((256, 512), (512, 0)):
        for length in (8, 520, 1037, 4096):
            _hold(cut_for(head), [length], [8], head, window, torch.float32)


def rows_have_the_same_bits(path: str, lengths: list[int]) -> None:
    """A row is the same, bit for bit, decoded alone and verified with up to seven others, wherever it stands."""
    sys.path.append(path)
    for window in (0, 40):
        for last in lengths:
            query, case = queries(TOKENS, 32, torch.float32), paged([last], [TOKENS], 32, torch.float32)
            whole = _run(query, case, window, SMALL)
            for begin in range(TOKENS):
                for count in (1, TOKENS // 2) if len(lengths) > 2 else (1,):
                    some = slice(begin, min(begin + count, TOKENS))
                    fewer = _shorter(case, last - TOKENS + some.stop, some.stop - begin)
                    assert torch.equal(_run(query[some], fewer, window, SMALL), whole[some]), (window, last, some)


def padding_is_left_alone(path: str) -> None:
    """Rows and sequences that only fill a graph's batch up are not written; a sequence shorter than its query is 0."""
    sys.path.append(path)
    case = paged([40, 1], [8, 8], 32, torch.float32)
    real = case._replace(
        lengths=torch.tensor([40, 0], dtype=torch.int32), starts=torch.tensor([0, 8, 8], dtype=torch.int32)
    )
    query = queries(16, 32, torch.float32)
    told = _run(query, real, 40, SMALL)
    assert torch.allclose(told[:8], twin(query[:8], _first(real), 40, SMALL), atol=1e-5)
    assert told[8:].isnan().all()
    captured = _run(query[:8], _first(case)._replace(lengths=torch.tensor([1], dtype=torch.int32)), 40, SMALL)
    assert (captured[:7] == 0).all()
    assert captured[7].isfinite().all()


def _first(case: Paged) -> Paged:
    return case._replace(table=case.table[:1], lengths=case.lengths[:1], starts=case.starts[:2])


def _shorter(case: Paged, length: int, count: int) -> Paged:
    """Return the one sequence of `case` as it was when `length` keys were written; what follows is not a number."""
    keys, values = case.keys.clone(), case.values.clone()
    for place in range(length, int(case.lengths[0])):
        block = int(case.table[0][place // BLOCK])
        keys[block, place % BLOCK] = values[block, place % BLOCK] = float("nan")
    told = {"lengths": [length], "starts": [0, count]}
    return case._replace(
        keys=keys, values=values, **{name: torch.tensor(each, dtype=torch.int32) for name, each in told.items()}
    )


def _hold(
    cut: Cut, lengths: list[int], counts: list[int], head: int, window: int, dtype: torch.dtype, kv_heads: int = 1
) -> None:
    case, query = paged(lengths, counts, head, dtype, kv_heads), queries(sum(counts), head, dtype, kv_heads)
    error = 1e-4 if dtype == torch.float32 else 5e-3
    told, meant = _run(query, case, window, cut), twin(query, case, window, cut)
    assert torch.allclose(told, meant, rtol=error, atol=error), (cut, lengths, counts, window)


def _run(query: torch.Tensor, case: Paged, window: int, cut: Cut) -> torch.Tensor:
    """Return what the kernels write; scratch and output are not numbers before."""
    from paddock_stack.attention.fixed_split_triton import launch

    longest = max(case.table.shape[1] * BLOCK, 160)
    cells = query.shape[0] * query.shape[1] * slots(cut, window, longest)
    room = scratch(cells, query.shape[2], query.device)
    for each in room:
        each.fill_(float("nan"))
    output = torch.full_like(query.contiguous(), float("nan"))
    launch(
        query, case, output, room, window=window, longest=longest, cut=cut, longest_query=int(case.starts.diff().max())
    )
    return output
