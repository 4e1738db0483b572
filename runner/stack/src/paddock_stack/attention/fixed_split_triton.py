"""The two Triton kernels of the fixed split: attend within segments, then merge a row's segments.

No bit of a row may depend on the rows beside it. Hence one shape of program for one token and for eight; keys that a
row does not see weigh exactly nothing in it; and a merge that starts at the row's own first segment.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from paddock_stack.attention.fixed_split_plan import TOKENS, Cut, cut_for, rows, slots
from paddock_stack.attention.fixed_split_scratch import Scratch
from paddock_stack.attention.fixed_split_twin import Paged

MERGED: int = 16  # segments read at once
WIDTH: int = 128  # columns of a head that one program merges


@triton.jit
def attend_segments(
    query,  # [num_tokens, heads, head], strided
    keys,  # [blocks, block_size, kv_heads, head], strided
    values,  # the same
    table,  # [sequences, blocks of the longest] int32
    lengths,  # [sequences] int32, the query tokens included
    starts,  # [sequences + 1] int32, where the query tokens of each begin
    part_mixed,  # [num_tokens, heads, slots, head] float32
    part_most,  # [num_tokens, heads, slots] float32
    part_total,  # the same
    scale,
    query_stride,
    query_head_stride,
    key_block_stride,
    key_stride,
    key_head_stride,
    value_block_stride,
    value_stride,
    value_head_stride,
    table_stride,
    group: tl.constexpr,
    head: tl.constexpr,
    block_size: tl.constexpr,
    window: tl.constexpr,
    segment: tl.constexpr,
    tile: tl.constexpr,
    rows: tl.constexpr,
    slots: tl.constexpr,
):
    """Write the softmax over one segment, unfinished, of all rows of one sequence that share a key head."""
    slot = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = tl.program_id(2)
    start = tl.load(starts + sequence)
    count = tl.load(starts + sequence + 1) - start
    length = tl.load(lengths + sequence)
    context = length - count
    low = tl.maximum(context - window + 1, 0) if window > 0 else 0  # the first key that any row sees
    first = (low // segment + slot) * segment
    if first >= length:
        return
    row = tl.arange(0, rows)
    token = row // group
    query_head = kv_head * group + row % group
    position = context + token
    is_row = token < count
    column = tl.arange(0, head)
    asked = tl.load(
        query + (start + token)[:, None] * query_stride + query_head[:, None] * query_head_stride + column[None, :],
        mask=is_row[:, None],
        other=0.0,
    )
    most = tl.full((rows,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((rows,), dtype=tl.float32)
    mixed = tl.zeros((rows, head), dtype=tl.float32)
    for part in range(segment // tile):
        place = first + part * tile + tl.arange(0, tile)
        is_key = (place < length) & (place >= low)  # a block before the window may have been given away
        block = tl.load(table + sequence * table_stride + place // block_size, mask=is_key, other=0).to(tl.int64)
        key_at = block * key_block_stride + (place % block_size) * key_stride + kv_head * key_head_stride
        value_at = block * value_block_stride + (place % block_size) * value_stride + kv_head * value_head_stride
        key = tl.load(keys + key_at[None, :] + column[:, None], mask=is_key[None, :], other=0.0)
        value = tl.load(values + value_at[:, None] + column[None, :], mask=is_key[:, None], other=0.0)
        is_seen = is_row[:, None] & (place[None, :] <= position[:, None])
        if window > 0:
            is_seen = is_seen & (position[:, None] - place[None, :] < window)
        score = tl.where(is_seen, tl.dot(asked, key) * scale, float("-inf"))
        higher = tl.maximum(most, tl.max(score, axis=1))
        finite = tl.where(higher > float("-inf"), higher, 0.0)
        weight = tl.exp(score - finite[:, None])
        fade = tl.exp(most - finite)
        total = total * fade + tl.sum(weight, axis=1)
        mixed = mixed * fade[:, None] + tl.dot(weight.to(value.dtype), value)
        most = higher
    heads = tl.num_programs(1) * group
    cell = ((start + token) * heads + query_head).to(tl.int64) * slots + slot
    tl.store(part_most + cell, most, mask=is_row)
    tl.store(part_total + cell, total, mask=is_row)
    tl.store(part_mixed + cell[:, None] * head + column[None, :], mixed, mask=is_row[:, None])


@triton.jit
def merge_segments(
    part_mixed,  # [num_tokens, heads, slots, head] float32
    part_most,  # [num_tokens, heads, slots] float32
    part_total,  # the same
    lengths,  # [sequences] int32, the query tokens included
    starts,  # [sequences + 1] int32
    output,  # [num_tokens, heads, head], strided
    output_stride,
    output_head_stride,
    head: tl.constexpr,
    width: tl.constexpr,
    window: tl.constexpr,
    segment: tl.constexpr,
    slots: tl.constexpr,
    padded: tl.constexpr,
    merged: tl.constexpr,
):
    """Write `width` columns of one row: its segments in ascending order, `merged` at a time, from its own first one.

    Every one of them holds a key that the row sees; those that only its neighbours see are not read.
    """
    token = tl.program_id(0)
    query_head = tl.program_id(1)
    sequence = tl.program_id(2) // (head // width)
    column = tl.program_id(2) % (head // width) * width + tl.arange(0, width)
    start = tl.load(starts + sequence)
    count = tl.load(starts + sequence + 1) - start
    if token >= count:
        return
    context = tl.load(lengths + sequence) - count
    position = context + token
    lowest = tl.maximum(context - window + 1, 0) // segment if window > 0 else 0
    own = tl.maximum(position - window + 1, 0) // segment if window > 0 else 0
    # While graphs are captured a sequence may be shorter than its query: such a row has no key and no segment.
    many = tl.where(position >= 0, position // segment - own + 1, 0)
    cell = ((start + token) * tl.num_programs(1) + query_head).to(tl.int64) * slots + own - lowest
    slot = tl.arange(0, padded)
    top = tl.max(tl.load(part_most + cell + slot, mask=slot < many, other=float("-inf")), axis=0)
    top = tl.where(top > float("-inf"), top, 0.0)
    total = 0.0
    mixed = tl.zeros((width,), dtype=tl.float32)
    for begin in range(0, many, merged):
        each = begin + tl.arange(0, merged)
        is_own = each < many
        weight = tl.exp(tl.load(part_most + cell + each, mask=is_own, other=float("-inf")) - top)
        total += tl.sum(weight * tl.load(part_total + cell + each, mask=is_own, other=0.0), axis=0)
        some = tl.load(part_mixed + (cell + each)[:, None] * head + column[None, :], mask=is_own[:, None], other=0.0)
        mixed += tl.sum(weight[:, None] * some, axis=0)
    result = mixed / tl.where(total > 0.0, total, 1.0)
    place = (start + token) * output_stride + query_head * output_head_stride + column
    tl.store(output + place, result.to(output.dtype.element_ty))


def launch(
    query: torch.Tensor,
    paged: Paged,
    output: torch.Tensor,
    room: Scratch,
    *,
    window: int,
    longest: int,
    longest_query: int = TOKENS,
    cut: Cut | None = None,
) -> None:
    """Write into `output` the attention of `query`, both [num_tokens, heads, head] with columns side by side.

    `longest` is the most keys that a sequence may ever have: no length is read on the host, so both launches can be
    captured in a graph. `longest_query` says only how many programs merge. `room` must hold num_tokens * heads *
    slots results. Rows past the last start are left as they are.
    """
    heads, head = query.shape[1], query.shape[2]
    kv_heads, sequences = paged.keys.shape[2], paged.lengths.shape[0]
    chosen = cut or cut_for(head)
    many = slots(chosen, window, longest)
    attend_segments[(many, kv_heads, sequences)](
        query,
        paged.keys,
        paged.values,
        paged.table,
        paged.lengths,
        paged.starts,
        *room,
        1.0,
        *query.stride()[:2],
        *paged.keys.stride()[:3],
        *paged.values.stride()[:3],
        paged.table.stride(0),
        group=heads // kv_heads,
        head=head,
        block_size=paged.keys.shape[1],
        window=window,
        segment=chosen.segment,
        tile=chosen.tile,
        rows=rows(heads // kv_heads),
        slots=many,
        num_warps=chosen.warps,
        num_stages=1,
    )
    width = min(head, WIDTH)
    merge_segments[(longest_query, heads, sequences * (head // width))](
        *room,
        paged.lengths,
        paged.starts,
        output,
        *output.stride()[:2],
        head=head,
        width=width,
        window=window,
        segment=chosen.segment,
        slots=many,
        padded=triton.next_power_of_2(many),
        merged=MERGED,
        num_warps=4,
    )
