"""Time the stack's kernels against what vLLM runs in their place, at Gemma 4 E4B's shapes; correctness comes first.

    python kernel_times.py OUT.json [--seconds N]

Each figure is the median of graph replays over rotated buffers larger than the L2 together, in microseconds a call.
The read ceiling is a maximum over eight gigabytes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from vllm import _custom_ops as ops
from vllm.model_executor.layers.quantization.utils import marlin_utils as marlin
from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder
from vllm.scalar_type import scalar_types

from paddock_stack.kernels import pruned_head
from paddock_stack.kernels.int4 import Int4Rows, dequantized
from paddock_stack.plugin import rebindings
from paddock_stack.skinny.product import laid, multiply

DEVICE = torch.device("cuda")
L2_BYTES = 60 << 20
VOCABULARY, KEPT = 262_144, 12_288

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
    given = options.parse_args()
    ends = time.monotonic() + given.seconds
    torch.manual_seed(0)
    figures: dict[str, Any] = {"read_TB_per_s": round(ceiling(), 3)}
    print(figures, flush=True)
    parts: list[tuple[str, Callable[..., Any]]] = [("argmax", argmaxes), ("head", heads)]
    for shape, products in PRODUCTS.items():
        parts += [(f"{shape} {name}", lambda size=size: product(*size)) for name, size in products.items()]
    for name, part in parts:
        if time.monotonic() < ends:
            figures[name] = part()
            print(name, json.dumps(figures[name]), flush=True)
            torch.cuda.empty_cache()
    given.out.write_text(json.dumps(figures, indent=1))


def timed(calls: Sequence[Callable[..., Any]], replays: int = 50) -> float:
    """Return the median microseconds of one of `calls`, captured together in one graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    graph.replay()
    spans: list[float] = []
    for _ in range(replays):
        began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        began.record()
        graph.replay()
        ended.record()
        ended.synchronize()
        spans.append(began.elapsed_time(ended) * 1e3 / len(calls))
    return round(statistics.median(spans), 2)


def ceiling() -> float:
    """Return the rate, in TB/s, at which eight gigabytes are read."""
    much = torch.zeros(4 << 30, dtype=torch.bfloat16, device=DEVICE)
    return float(much.numel() * 2 / timed([lambda: much.amax()], replays=10) / 1e6)


def product(rows: int, columns: int) -> dict[str, Any]:
    """Compare the int4 product, Marlin and cuBLAS in bf16 for weights of `rows` x `columns`, one and eight tokens."""
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
        figures[f"g{group}"] = part
        del weights, ours, theirs
    plain = [torch.randn(rows, columns, device=DEVICE, dtype=torch.bfloat16) for _ in range(2)]
    x = torch.randn(1, columns, device=DEVICE).bfloat16()
    figures["bf16_1"] = timed([lambda each=each: torch.nn.functional.linear(x, each) for each in plain])
    return figures


def argmaxes() -> dict[str, Any]:
    """Compare the drafter's choice of a token: vLLM's, and the fused one with and without our choice of centroids."""
    figures: dict[str, Any] = {}
    for k in (32, 48):
        embedder = Gemma4MTPMaskedEmbedder(256, VOCABULARY, 2048, k).to(DEVICE, torch.bfloat16)
        embedder.token_ordering.copy_(torch.randperm(VOCABULARY))
        head = torch.randn(VOCABULARY, 256, device=DEVICE).bfloat16()
        states = torch.randn(100_000, 256, device=DEVICE).bfloat16()
        ways = {
            "stock": Gemma4MTPMaskedEmbedder.get_top_tokens,
            "fused": rebindings.fused_top_tokens,
            "fused_choice": rebindings.fused_choice_top_tokens,
        }
        rows = states[:24].split(1)
        figures[f"k{k}"] = {
            name: {
                "same_of_100000": _same(way, ways["stock"], embedder, states, head),
                "us": timed([partial(way, embedder, row, head) for row in rows]),
            }
            for name, way in ways.items()
        }
    return figures


def _same(way: Any, stock: Any, embedder: Any, states: torch.Tensor, head: torch.Tensor) -> int:
    """Return for how many of `states` two ways choose the same token."""
    return sum(int((way(embedder, some, head) == stock(embedder, some, head)).sum()) for some in states.split(500))


def heads() -> dict[str, Any]:
    """Compare whole heads and one of 12,288 rows, from the last hidden state to the token."""
    full = [torch.randn(VOCABULARY, 2560, device=DEVICE, dtype=torch.bfloat16) * 0.02 for _ in range(2)]
    keep = torch.randperm(VOCABULARY, device=DEVICE)[:KEPT].sort().values
    kept = [each[keep].contiguous() for each in full] * 4
    int4_full = laid(_random(VOCABULARY, 2560, 32))
    int4_kept = [_random(KEPT, 2560, 32) for _ in range(16)]
    laid_kept = [laid(each) for each in int4_kept]
    figures: dict[str, Any] = {}
    for tokens in (1, 8):
        x = torch.randn(tokens, 2560, device=DEVICE).bfloat16()
        wanted = pruned_head.reference_logits(x, kept[0], keep, VOCABULARY, 30.0).argmax(-1)
        got = pruned_head.argmax(x, kept[0], keep)
        figures[f"tokens_{tokens}"] = {
            "same_as_reference": int((wanted == got).sum()),
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
    wanted = x.float() @ dequantized(some).T
    return float(f"{(y[:, :4096].float() - wanted).norm() / wanted.norm():.2e}")


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
