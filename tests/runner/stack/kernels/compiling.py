"""Compile what the stack's Triton kernels launch at the model's shapes for GPUs that are not here.

    python compiling.py

Needs Triton and runs in a process of its own. Launches are caught, not run: their arguments, tensors without memory,
say what is compiled, as they do on a GPU. Prints a JSON object: the shared bytes of a program, a launch a key.
"""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from paddock_stack.attention import fixed_split_triton
from paddock_stack.attention.fixed_split_plan import TOKENS, Layer
from paddock_stack.attention.fixed_split_scratch import scratch
from paddock_stack.attention.fixed_split_twin import Paged
from paddock_stack.kernels import pruned_head_triton, sparse_argmax_triton
from paddock_stack.kernels.int4 import Int4Rows

NOWHERE = torch.device("meta")
TYPES = {torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.int32: "*i32", torch.int64: "*i64"}
OPTIONS = ("num_warps", "num_stages")
LONGEST, HIDDEN, VOCABULARY, KEPT = 4096, 2560, 262_144, 12_288


def empty(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return a tensor without memory."""
    return torch.empty(shape, dtype=dtype, device=NOWHERE)


def launches() -> None:
    """Launch everything at Gemma 4 E4B's shapes: attention of both kinds, the drafter's argmax, the pruned head."""
    for layer in (Layer(8, 2, 256, 512), Layer(8, 2, 512, 0)):
        attention(layer)
    for k in (32, 48):
        sparse_argmax_triton.launch_choice(empty(1, 2048), k)
        ordering = empty(2048, 128, dtype=torch.int64)
        sparse_argmax_triton.launch(empty(1, 256), empty(1, k, dtype=torch.int64), ordering, empty(VOCABULARY, 256))
    int4 = Int4Rows(empty(KEPT, HIDDEN // 8, dtype=torch.int32), empty(KEPT, HIDDEN // 32))
    for head in (empty(KEPT, HIDDEN), int4):
        kept, states = empty(KEPT, dtype=torch.int64), empty(TOKENS, HIDDEN)
        pruned_head_triton.launch_logits(states, head, kept, VOCABULARY, 30.0)
        pruned_head_triton.launch_argmax(states, head, kept)


def attention(layer: Layer) -> None:
    """Launch the fixed split over a cache that holds keys and values side by side."""
    pages = empty(LONGEST // 16, layer.kv_heads, 16, 2 * layer.head_size).transpose(1, 2).chunk(2, dim=-1)
    table, lengths, starts = (empty(*shape, dtype=torch.int32) for shape in ((1, LONGEST // 16), (1,), (2,)))
    fixed_split_triton.launch(
        empty(TOKENS, layer.heads, layer.head_size),
        Paged(*pages, table, lengths, starts),
        empty(TOKENS, layer.heads, layer.head_size),
        scratch(layer.cells(LONGEST) * TOKENS, layer.head_size, NOWHERE),
        window=layer.window,
        longest=LONGEST,
    )


def caught() -> list[tuple[JITFunction[Any], dict[str, Any], dict[str, int]]]:
    """Return what `launches` would run: each kernel, its arguments by name, its options."""
    seen: list[tuple[JITFunction[Any], dict[str, Any], dict[str, int]]] = []

    def run(kernel: JITFunction[Any], *given: Any, grid: Any, warmup: bool, **named: Any) -> None:
        options = {name: named.pop(name) for name in OPTIONS if name in named}
        seen.append((kernel, dict(zip(kernel.arg_names, given, strict=False)) | named, options))

    with mock.patch.object(JITFunction, "run", run):
        launches()
    return seen


def shared(kernel: JITFunction[Any], given: dict[str, Any], options: dict[str, int], capability: int) -> int:
    """Return the shared bytes of a program of `kernel`, compiled; what 16 divides is told so, as at a launch."""
    constants = {each.name: given[each.name] for each in kernel.params if each.is_constexpr}
    source = ASTSource(
        fn=kernel,
        signature={name: "constexpr" if name in constants else _type(given[name]) for name in kernel.arg_names},
        constexprs=constants,
        attrs={
            (index,): [["tt.divisibility", 16]]
            for index, name in enumerate(kernel.arg_names)
            if name not in constants and _is_aligned(given[name])
        },
    )
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    assert made.asm["cubin"]
    return int(made.metadata.shared)


def _type(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def _is_aligned(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (isinstance(value, int) and value % 16 == 0)


if __name__ == "__main__":
    told = {
        f"{index} {each[0].__name__}, sm_{capability}": shared(*each, capability)
        for index, each in enumerate(caught())
        for capability in (86, 90)
    }
    print(json.dumps(told))
