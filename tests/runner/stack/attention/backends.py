"""Tasks of the zygote that put the fixed split's backend into the installed vLLM: which batches it takes, what it
refuses, what it hands over to the kernels, and, with these interpreted, what it answers from a cache of vLLM's making.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import torch
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheLayout,
    KVCacheTensor,
    compute_layout_strides,
    create_kv_cache_views,
)

from paddock_stack.attention.fixed_split_twin import Paged, reference
from paddock_stack.refusals import Refused
from paddock_stack.shapes.source import Seen, SourceTree
from tests.runner.stack.attention.caches import paged, queries

TRITON_ATTN = "vllm.v1.attention.backends.triton_attn"
TENSORS = ("seq_lens", "mm_prefix_range_tensor")
CACHES = {"0.23": (5, 2, 16, 2, 256), "0.32": (5, 2, 16, 512)}  # of E4B's sliding layers, five blocks of 16 tokens
E4B = {"num_heads": 8, "head_size": 256, "scale": 1.0, "num_kv_heads": 2, "sliding_window": 512}


def refused_by_its_guard(unsaid: str) -> None:
    """Import the backend beside a vLLM like the installed one that nowhere mentions `unsaid`."""
    found = SourceTree.find

    def find(tree: SourceTree, place: str) -> Seen | None:
        seen = found(tree, place)
        return seen and replace(seen, words=seen.words - {unsaid})

    with mock.patch.object(SourceTree, "find", find):
        import paddock_stack.attention.fixed_split  # noqa: F401


def refusals(given: dict[str, Any]) -> str:
    """Build the attention of a layer with `given` in place of E4B's; return the sentence that refuses it."""
    try:
        _impl(**given)
    except Refused as fault:
        return str(fault)
    return ""


def paths(longest_query: int, told: dict[str, Any], release: str = "0.32") -> list[Any]:
    """Run a batch whose metadata has `told` over a cache as `release` lays it out.

    Return whether vLLM took it, or what the kernels were handed: the shape of the keys, where keys and values lie at
    the second token of the third block, and the rest.
    """
    impl = _impl()
    kernels = ModuleType("paddock_stack.attention.fixed_split_triton")
    kernels.launch = mock.Mock()  # type: ignore[attr-defined]
    metadata = SimpleNamespace(
        num_actual_tokens=longest_query,
        max_query_len=longest_query,
        query_start_loc=torch.tensor([0, longest_query]),
        seq_lens=torch.tensor([40]),
        block_table=torch.zeros(1, 4),
        mm_prefix_range_tensor=None,
        fixed_split=(_builder([impl]).room, 4096),
    )
    metadata.__dict__.update({name: torch.tensor(each) if name in TENSORS else each for name, each in told.items()})
    query = torch.zeros(16, 8, 256)
    with (
        mock.patch.dict(sys.modules, {kernels.__name__: kernels}),
        mock.patch(f"{TRITON_ATTN}.TritonAttentionImpl.forward") as stock,
    ):
        cache = torch.arange(5 * 2 * 16 * 512.0).view(CACHES[release])
        impl.forward(None, query, query, query, cache, metadata, torch.zeros(16, 8, 256))
    if stock.called:
        assert not kernels.launch.called
        return ["vLLM"]
    given, named = kernels.launch.call_args
    halves = [given[1].keys, given[1].values]
    return ["fixed split", list(halves[0].shape), [int(each[2, 1, 1, 3]) for each in halves], named]


def builders(sequences: int) -> dict[str, Any]:
    """Build metadata for a sliding and a full layer; return the sizes of the scratch and vLLM's own buffers."""
    builder = _builder([_impl(), _impl(sliding_window=None)], sequences=sequences)
    return {
        "rooms": [each.numel() for each in builder.room],
        "vllms": [builder.softmax_segm_output, builder.softmax_segm_max, builder.softmax_segm_expsum],
    }


def names() -> list[str]:
    """Return what the backend calls itself and its parts."""
    backend = _module().FixedSplitBackend
    return [backend.get_name(), backend.get_impl_cls().__name__, backend.get_builder_cls().__name__]


def answers_from_vllms_own_cache(path: str, window: int | None) -> None:
    """Attend over caches that vLLM laid out, each of its ways, with metadata that it built; the kernels interpreted.

    Caches and queries are float32, since the interpreter has no bfloat16.
    """
    sys.path.append(path)
    case, query = paged([57, 21], [8, 1], 32, torch.float32, kv_heads=2), queries(9, 32, torch.float32, kv_heads=2)
    meant = reference(query, case, window or 0)
    impl = _impl(head_size=32, sliding_window=window)
    metadata = _builder([impl], sequences=2).build(0, _batch(case))
    for layout in KVCacheLayout:
        output = torch.full((9, 8, 32), float("nan"))
        impl.forward(None, query, query, query, _cache(case, layout), metadata, output)
        assert torch.allclose(output, meant, atol=1e-4), layout


def _batch(case: Paged) -> CommonAttentionMetadata:
    return CommonAttentionMetadata(
        query_start_loc=case.starts,
        query_start_loc_cpu=case.starts,
        seq_lens=case.lengths,
        num_reqs=len(case.lengths),
        num_actual_tokens=int(case.starts[-1]),
        max_query_len=int(case.starts.diff().max()),
        max_seq_len=int(case.lengths.max()),
        block_table_tensor=case.table,
        slot_mapping=torch.zeros(int(case.starts[-1]), dtype=torch.int64),
    )


def _cache(case: Paged, layout: KVCacheLayout) -> torch.Tensor:
    """Return a layer's cache that holds the keys and values of `case`, second of three whose others are NaN."""
    blocks, block, heads, head = case.keys.shape
    spec = FullAttentionSpec(block_size=block, num_kv_heads=heads, head_size=head, dtype=case.keys.dtype)
    layer_stride, block_stride, *_ = compute_layout_strides(spec, blocks, 3, layout)
    names = ["first", "second", "third"]
    size = 3 * blocks * spec.page_size_bytes
    raw = torch.full((size // 4,), float("nan")).view(torch.int8)
    tensor = KVCacheTensor(size=size, layers=names, layer_stride=layer_stride, block_stride=block_stride)
    cache = create_kv_cache_views(raw, spec, blocks, layout, tensor)[1]
    cache.copy_(torch.cat([case.keys, case.values], dim=-1).transpose(1, 2))  # [blocks, heads, block_size, 2 * head]
    return cache


def _module() -> Any:
    from paddock_stack.attention import fixed_split

    return fixed_split


def _impl(**given: Any) -> Any:
    told = {**E4B, "alibi_slopes": None, "kv_cache_dtype": "auto", **given}
    return _module().FixedSplitImpl(**told)


def builder_with(dtype: str, is_fast_prefill: bool) -> None:
    """Build metadata over a cache of `dtype`, with or without vLLM's shortcut for prefills of layers that share one."""
    _builder([_impl()], dtype=getattr(torch, dtype), is_fast_prefill=is_fast_prefill)


def _builder(
    impls: list[Any], sequences: int = 1, dtype: torch.dtype = torch.bfloat16, *, is_fast_prefill: bool = False
) -> Any:
    from tests.runner.stack.plugin.registering import config_of

    config = config_of({f"layers.{index}": SimpleNamespace(impl=impl) for index, impl in enumerate(impls)})
    config.model_config.max_model_len = 4096
    config.scheduler_config.max_num_seqs = sequences
    config.cache_config.kv_sharing_fast_prefill = is_fast_prefill
    spec = SimpleNamespace(block_size=16, dtype=dtype)
    layers = config.compilation_config.static_forward_context
    with mock.patch(f"{TRITON_ATTN}.get_num_attention_heads_from_layers", return_value=8):
        return _module().FixedSplitMetadataBuilder(spec, list(layers), config, torch.device("cpu"))
