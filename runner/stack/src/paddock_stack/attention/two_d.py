"""Keep every attention launch on vLLM's 2D kernel: `--attention-backend CUSTOM`.

The metadata of this backend offers no segment buffers, which is what vLLM's own dispatch takes for "2D only". Needs a
GPU: on the CPU vLLM always takes its own backend.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend, TritonAttentionMetadataBuilder

from paddock_stack.shapes.guard import require
from paddock_stack.shapes.needs import TWO_D_ATTENTION

require(TWO_D_ATTENTION)


class TwoDMetadataBuilder(TritonAttentionMetadataBuilder):  # type: ignore[misc]  # vLLM's types are not seen here
    """Build Triton attention's metadata without the buffers of split softmax."""

    def __init__(self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: Any) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self.softmax_segm_output = None
        self.softmax_segm_max = None
        self.softmax_segm_expsum = None
        self.max_seqs_64_segments = (
            0  # newer releases re-cut the buffers above this number of sequences; there are none
        )


class TwoDAttentionBackend(TritonAttentionBackend):  # type: ignore[misc]  # vLLM's types are not seen here
    """Triton attention that never splits the keys of a sequence over programs."""

    @staticmethod
    def get_name() -> str:
        """Return the name under which vLLM's registry knows this backend; it looks the class up by it again."""
        return "CUSTOM"

    @staticmethod
    def get_builder_cls() -> type[TwoDMetadataBuilder]:
        """Return the builder that leaves the segment buffers out."""
        return TwoDMetadataBuilder
