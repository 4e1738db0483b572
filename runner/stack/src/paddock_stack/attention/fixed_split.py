"""Attend over fixed segments of keys where up to eight tokens are decoded: `--attention-backend CUSTOM`.

Switched on by PADDOCK_ATTENTION=fixed_split. Batches with a longer query, or with prefix ranges of images, take vLLM's
2D kernel. Needs a GPU with Triton: on the CPU vLLM always takes its own backend.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend, TritonAttentionImpl

from paddock_stack.attention.fixed_split_plan import CannotSplit, Layer, is_ours, scratch_rows
from paddock_stack.attention.fixed_split_scratch import scratch
from paddock_stack.attention.fixed_split_twin import Paged
from paddock_stack.attention.two_d import TwoDMetadataBuilder
from paddock_stack.shapes.guard import require
from paddock_stack.shapes.needs import FIXED_SPLIT_ATTENTION

require(FIXED_SPLIT_ATTENTION)


class FixedSplitMetadataBuilder(TwoDMetadataBuilder):
    """Build the 2D backend's metadata, with scratch for the segments that is there before graphs are captured."""

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: Any) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        if kv_cache_spec.dtype != torch.bfloat16:
            raise CannotSplit(f"the fixed split reads keys and values in bfloat16, not {kv_cache_spec.dtype}")
        if vllm_config.cache_config.kv_sharing_fast_prefill:
            raise CannotSplit("the fixed split goes without kv_sharing_fast_prefill, which copies metadata without it")
        self._longest = vllm_config.model_config.max_model_len
        layers = [each.fixed_split for each in _impls(vllm_config, layer_names)]
        if not layers:
            raise CannotSplit(f"the fixed split finds no attention layer of its own among {', '.join(layer_names)}")
        cells = max(each.cells(self._longest) for each in layers)
        head_size = max(each.head_size for each in layers)
        rows = scratch_rows(cells, head_size, vllm_config.scheduler_config.max_num_seqs)
        self.room = scratch(rows, head_size, device)

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> Any:
        """Return vLLM's metadata with the scratch and the longest sequence hung on."""
        told = super().build(common_prefix_len, common_attn_metadata, fast_build)
        told.fixed_split = (self.room, self._longest)
        return told


class FixedSplitImpl(TritonAttentionImpl):  # type: ignore[misc]  # vLLM's types are not seen here
    """Triton attention whose rows of up to eight tokens are the same, bit for bit, in any company."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fixed_split = _layer(self)
        self.fixed_split.check()

    def forward(
        self,
        layer: Any,
        query: Any,
        key: Any,
        value: Any,
        kv_cache: Any,
        attn_metadata: Any,
        output: Any,
        output_scale: Any = None,
        output_block_scale: Any = None,
    ) -> Any:
        """Write the attention of `query` into `output`; arguments as vLLM's."""
        if attn_metadata is None or not is_ours(attn_metadata.max_query_len, is_plain=_is_plain(attn_metadata)):
            return super().forward(
                layer, query, key, value, kv_cache, attn_metadata, output, output_scale, output_block_scale
            )
        if output_scale is not None or output_block_scale is not None:
            raise CannotSplit("the fixed split writes bfloat16 and cannot quantise what it writes")
        self._attend(query, kv_cache, attn_metadata, output)
        return output

    def _attend(self, query: Any, kv_cache: Any, metadata: Any, output: Any) -> None:
        from paddock_stack.attention.fixed_split_triton import launch

        keys, values = halves(kv_cache)
        room, longest = metadata.fixed_split
        tokens = min(metadata.num_actual_tokens, metadata.seq_lens.shape[0] * metadata.max_query_len)
        needed = self.fixed_split.cells(longest) * tokens
        if not needed <= room.most.shape[0] or not needed * self.head_size <= room.mixed.shape[0]:
            raise CannotSplit(f"{needed} partial results do not fit the fixed split's scratch for {room.most.shape[0]}")
        launch(
            query,
            Paged(keys, values, metadata.block_table, metadata.seq_lens, metadata.query_start_loc),
            output,
            room,
            window=self.fixed_split.window,
            longest=longest,
            longest_query=metadata.max_query_len,
        )


class FixedSplitBackend(TritonAttentionBackend):  # type: ignore[misc]  # vLLM's types are not seen here
    """Triton attention that splits a sequence's keys at fixed positions where few tokens are decoded."""

    supported_dtypes: ClassVar[list[Any]] = [torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[str]] = ["auto", "bfloat16"]

    @staticmethod
    def get_name() -> str:
        """Return the name under which vLLM's registry knows this backend; it looks the class up by it again."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[FixedSplitImpl]:
        """Return the attention of a layer."""
        return FixedSplitImpl

    @staticmethod
    def get_builder_cls() -> type[FixedSplitMetadataBuilder]:
        """Return the builder that brings the scratch along."""
        return FixedSplitMetadataBuilder


def halves(kv_cache: Any) -> tuple[Any, Any]:
    """Return the keys and the values of a layer's cache, each [blocks, block_size, kv_heads, head], strided.

    vLLM 0.23 lays them out as [blocks, 2, block_size, kv_heads, head], and from 0.32 on side by side, as [blocks,
    kv_heads, block_size, 2 * head].
    """
    if kv_cache.dim() == 5:
        return kv_cache.unbind(1)  # type: ignore[no-any-return]
    return kv_cache.transpose(1, 2).chunk(2, dim=-1)  # type: ignore[no-any-return]


def _is_plain(metadata: Any) -> bool:
    """Return whether every token of a batch sees its sequence up to itself, as far as vLLM's windows go.

    Cascades are of 0.23; of 0.32 and later are batches that are not causal, or whose windows leave a prefix in view.
    """
    return (
        metadata.mm_prefix_range_tensor is None
        and not getattr(metadata, "use_cascade", False)
        and getattr(metadata, "causal", True) is True
        and getattr(metadata, "rswa_window", None) is None
    )


def _impls(vllm_config: Any, layer_names: list[str]) -> list[FixedSplitImpl]:
    known = vllm_config.compilation_config.static_forward_context
    impls = (getattr(known.get(name), "impl", None) for name in layer_names)
    return [each for each in impls if isinstance(each, FixedSplitImpl)]


def _layer(impl: Any) -> Layer:
    """Return what the layer of `impl` was built with, as vLLM's constructor left it."""
    extras = {
        "position slopes": impl.alibi_slopes is not None,
        "sinks": impl.sinks is not None,
        "chunks": impl.chunk_lookback > -1,
    }
    return Layer(
        heads=impl.num_heads,
        kv_heads=impl.num_kv_heads,
        head_size=impl.head_size,
        window=impl.sliding_window[0] + 1,
        scale=impl.scale,
        softcap=float(impl.logits_soft_cap),
        kv_type=impl.kv_cache_dtype,
        is_decoder=impl.attn_type == AttentionType.DECODER,
        extras=tuple(name for name, is_there in extras.items() if is_there),
    )
