"""Time the stack's kernels against what vLLM runs in their place, at Gemma 4 E4B's shapes; correctness comes first.

    python kernel_times.py OUT.json [--seconds N] [--only PART]

Each figure is the median of graph replays over rotated buffers larger than the L2 together, in microseconds a call.
The ceiling is a copy of four gigabytes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from argmaxes import argmaxes
from pruned_heads import agreement
from timing import DEVICE, L2_BYTES, VOCABULARY, median_us, timed
from vllm import _custom_ops as ops
from vllm.model_executor.layers.quantization.utils import marlin_utils as marlin
from vllm.scalar_type import scalar_types

from paddock_stack.kernels import pruned_head
from paddock_stack.kernels.int4 import Int4Rows, dequantized
from paddock_stack.skinny.product import laid, multiply, plain

KEPT = 12_288

PRODUCTS = {
    "e4b": {
        "qkv": (3072, 2560),
        "o": (2560, 2048),
        "gate_up": (20480, 2560),
        "down": (2560, 10240),
        "ple_gate": (256, 2560),
        "ple_projection": (2560, 256),
        "head": (VOCABULARY, 2560),
        "head_kept": (KEPT, 2560),
    },
    "wide": {
        "qkv": (7680, 6784),
        "o": (6784, 5120),
        "gate_up": (54272, 6784),
        "down": (6784, 27136),
        "ple_gate": (640, 6784),
        "ple_projection": (6784, 640),
        "head": (VOCABULARY, 6784),
    },
}


def main() -> None:
    """Measure everything, print a line each, and write it all to OUT."""
    options = argparse.ArgumentParser()
    options.add_argument("out", type=Path)
    options.add_argument("--seconds", type=float, default=300.0)
    options.add_argument("--only", default="", help="parts whose name begins so")
    given = options.parse_args()
    ends = time.monotonic() + given.seconds
    torch.manual_seed(0)
    figures: dict[str, Any] = {"copy_TB_per_s": round(ceiling(), 3)}
    print(figures, flush=True)
    parts: list[tuple[str, Callable[..., Any]]] = [("argmax", argmaxes), ("head", heads)]
    for shape, products in PRODUCTS.items():
        parts += [(f"{shape} {name}", lambda size=size: product(*size)) for name, size in products.items()]
    for name, part in parts:
        if name.startswith(given.only) and time.monotonic() < ends:
            figures[name] = part()
            print(name, json.dumps(figures[name]), flush=True)
            torch.cuda.empty_cache()
    given.out.write_text(json.dumps(figures, indent=1))


def ceiling() -> float:
    """Return the rate, in TB/s, at which four gigabytes are copied, read and written bytes together.

    Not in a graph: there it is a node of its own kind, which takes half as long again.
    """
    much = torch.zeros(2, 2 << 30, dtype=torch.bfloat16, device=DEVICE)
    return float(much.numel() * 2 / median_us(lambda: much[1].copy_(much[0]), 50) / 1e6)


def product(rows: int, columns: int) -> dict[str, Any]:
    """Compare our products with Marlin and cuBLAS for weights of `rows` x `columns`, one and eight tokens."""
    figures: dict[str, Any] = {"rows": rows, "columns": columns}
    for group in (32, 128):
        size = rows * columns // 2 + rows * columns // group * 2
        copies = max(2, min(24, 4 * L2_BYTES // size + 1))
        weights = [_random(rows, columns, group) for _ in range(copies)]
        ours, theirs = [laid(each) for each in weights], [_marlin(each) for each in weights]
        part: dict[str, Any] = {"MB": round(size / 1e6, 2)}
        for tokens in (1, 8):
            x = torch.randn(tokens, columns, device=DEVICE).bfloat16()
            part[f"error_{tokens}"] = _error(multiply(x, ours[0]), weights[0], x)
            part[f"ours_{tokens}"] = timed([lambda each=each, x=x: multiply(x, each) for each in ours])
            part[f"marlin_{tokens}"] = timed([lambda each=each, x=x: each(x) for each in theirs])
        part["alike"] = _alike(lambda x, w=ours[0]: multiply(x, w), x)
        figures[f"g{group}"] = part
        del weights, ours, theirs
    return figures | {"bf16": _in_bf16(rows, columns)}


def _in_bf16(rows: int, columns: int) -> dict[str, Any]:
    """Compare the bf16 product and cuBLAS."""
    copies = max(2, min(24, 4 * L2_BYTES // (2 * rows * columns) + 1))
    weights = [torch.randn(rows, columns, device=DEVICE, dtype=torch.bfloat16) for _ in range(copies)]
    figures: dict[str, Any] = {"MB": round(2 * rows * columns / 1e6, 2)}
    for tokens in (1, 8):
        x = torch.randn(tokens, columns, device=DEVICE).bfloat16()
        wanted = x.float() @ weights[0][:4096].float().T
        got = multiply(x, plain(weights[0]))
        figures[f"error_{tokens}"] = _distance(got[:, :4096], wanted)
        figures[f"ours_{tokens}"] = timed([lambda w=w, x=x: multiply(x, plain(w)) for w in weights])
        figures[f"cublas_{tokens}"] = timed([lambda w=w, x=x: torch.nn.functional.linear(x, w) for w in weights])
    figures["alike"] = _alike(lambda x: multiply(x, plain(weights[0])), x)
    figures["cublas_alike"] = _alike(lambda x: torch.nn.functional.linear(x, weights[0]), x)
    return figures


def _alike(way: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> int:
    """Return how many of the eight tokens `x` have the same bits alone as among the eight and among the first four."""
    alone = torch.cat([way(row) for row in x.split(1)])
    return int(((way(x) == alone).all(1) & (torch.cat([way(half) for half in x.split(4)]) == alone).all(1)).sum())


def heads() -> dict[str, Any]:
    """Compare whole heads and one of 12,288 rows, from the last hidden state to the token."""
    full = [torch.randn(VOCABULARY, 2560, device=DEVICE, dtype=torch.bfloat16) * 0.02 for _ in range(2)]
    keep = torch.randperm(VOCABULARY, device=DEVICE)[:KEPT].sort().values
    kept = [each[keep].contiguous() for each in full] * 4
    int4_full = laid(_random(VOCABULARY, 2560, 32))
    int4_kept = [_random(KEPT, 2560, 32) for _ in range(16)]
    laid_kept = [laid(each) for each in int4_kept]
    states = torch.randn(4096, 2560, device=DEVICE).bfloat16()
    figures: dict[str, Any] = {
        "bf16": agreement(states, kept[0], keep, VOCABULARY),
        "int4": agreement(states, int4_kept[0], keep, VOCABULARY),
    }
    for tokens in (1, 8):
        x = states[:tokens]
        figures[f"tokens_{tokens}"] = {
            "full_bf16": timed([lambda w=w, x=x: _capped(torch.nn.functional.linear(x, w)).argmax(-1) for w in full]),
            "full_int4": timed([lambda x=x: _capped(multiply(x, int4_full)).argmax(-1)] * 2),
            "kept_bf16_scattered": timed([lambda w=w, x=x: _scattered(x, w, keep).argmax(-1) for w in kept]),
            "kept_bf16_fused_logits": timed(
                [lambda w=w, x=x: pruned_head.logits(x, w, keep, VOCABULARY, 30.0).argmax(-1) for w in kept]
            ),
            "kept_bf16_fused_argmax": timed([lambda w=w, x=x: pruned_head.argmax(x, w, keep) for w in kept]),
            "kept_int4_fused_argmax": timed([lambda w=w, x=x: pruned_head.argmax(x, w, keep) for w in int4_kept]),
            "kept_int4_product_argmax": timed([lambda w=w, x=x: keep[multiply(x, w).argmax(-1)] for w in laid_kept]),
            "product_full_bf16": timed([lambda w=w, x=x: torch.nn.functional.linear(x, w) for w in full]),
            "product_kept_bf16": timed([lambda w=w, x=x: torch.nn.functional.linear(x, w) for w in kept]),
        }
    return figures


def _capped(logits: torch.Tensor) -> torch.Tensor:
    return torch.tanh(logits / 30.0) * 30.0


def _scattered(x: torch.Tensor, head: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return pruned_head.scatter_rows(_capped(torch.nn.functional.linear(x, head)), keep, VOCABULARY)


def _random(rows: int, columns: int, group: int) -> Int4Rows:
    packed = torch.randint(-(2**31), 2**31 - 1, (rows, columns // 8), dtype=torch.int32, device=DEVICE)
    scales = torch.rand(rows, columns // group, device=DEVICE) * 0.01 + 0.001
    return Int4Rows(packed, scales.bfloat16())


def _error(y: torch.Tensor, weights: Int4Rows, x: torch.Tensor) -> float:
    """Return |y - reference| / |reference| over the first rows."""
    some = Int4Rows(weights.packed[:4096], weights.scales[:4096])
    return _distance(y[:, :4096], x.float() @ dequantized(some).T)


def _distance(y: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(f"{(y.float() - wanted).norm() / wanted.norm():.2e}")


def _marlin(weights: Int4Rows) -> Callable[[torch.Tensor], torch.Tensor]:
    rows, columns = weights.rows, weights.columns
    none = marlin.marlin_make_empty_g_idx(DEVICE)
    words = ops.gptq_marlin_repack(weights.packed.t().contiguous(), none, columns, rows, 4)
    scales = marlin.marlin_permute_scales(weights.scales.t().contiguous(), columns, rows, weights.group_size)
    workspace = marlin.marlin_make_workspace_new(DEVICE)
    return lambda x: marlin.apply_gptq_marlin_linear(
        input=x,
        weight=words,
        weight_scale=scales,
        weight_zp=none,
        g_idx=none,
        g_idx_sort_indices=none,
        workspace=workspace,
        wtype=scalar_types.uint4b8,
        output_size_per_partition=rows,
        input_size_per_partition=columns,
        is_k_full=True,
    )


if __name__ == "__main__":
    main()
