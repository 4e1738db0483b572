"""Tasks of the zygote that put the fixed split's backend into the installed vLLM, its guard held open.

The vLLM of the tests lays its cache out otherwise, which the guard says; what is looked at here is which batches the
backend takes, what it refuses and what it hands over to the kernels, which are not run.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import torch

from paddock_stack.refusals import Refused
from paddock_stack.shapes import guard

TRITON_ATTN = "vllm.v1.attention.backends.triton_attn"
TENSORS = ("seq_lens", "mm_prefix_range_tensor")
E4B = {"num_heads": 8, "head_size": 256, "scale": 1.0, "num_kv_heads": 2, "sliding_window": 512}


def refused_by_its_guard() -> None:
    """Import the backend beside the installed vLLM."""
    import paddock_stack.attention.fixed_split  # noqa: F401


def refusals(given: dict[str, Any]) -> str:
    """Build the attention of a layer with `given` in place of E4B's; return the sentence that refuses it."""
    try:
        _impl(**given)
    except Refused as fault:
        return str(fault)
    return ""


def paths(longest_query: int, told: dict[str, Any]) -> list[Any]:
    """Run a batch whose metadata has `told`; return whether vLLM took it, or what the kernels were handed."""
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
        use_cascade=False,
        fixed_split=(_builder([impl]).room, 4096),
    )
    metadata.__dict__.update({name: torch.tensor(each) if name in TENSORS else each for name, each in told.items()})
    query = torch.zeros(16, 8, 256)
    with (
        mock.patch.dict(sys.modules, {kernels.__name__: kernels}),
        mock.patch(f"{TRITON_ATTN}.TritonAttentionImpl.forward") as stock,
    ):
        impl.forward(None, query, query, query, torch.zeros(5, 2, 16, 2, 256), metadata, torch.zeros(16, 8, 256))
    if stock.called:
        assert not kernels.launch.called
        return ["vLLM"]
    given, named = kernels.launch.call_args
    return ["fixed split", list(given[1].keys.shape), named]


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


def _module() -> Any:
    with mock.patch.object(guard, "fault", return_value=None):
        from paddock_stack.attention import fixed_split
    return fixed_split


def _impl(**given: Any) -> Any:
    told = {**E4B, "alibi_slopes": None, "kv_cache_dtype": "auto", **given}
    return _module().FixedSplitImpl(**told)


def _builder(impls: list[Any], sequences: int = 1) -> Any:
    from tests.runner.stack.plugin.registering import config_of

    config = config_of({f"layers.{index}": SimpleNamespace(impl=impl) for index, impl in enumerate(impls)})
    config.model_config.max_model_len = 4096
    config.scheduler_config.max_num_seqs = sequences
    spec = SimpleNamespace(block_size=16, dtype=torch.bfloat16)
    layers = config.compilation_config.static_forward_context
    with mock.patch(f"{TRITON_ATTN}.get_num_attention_heads_from_layers", return_value=8):
        return _module().FixedSplitMetadataBuilder(spec, list(layers), config, torch.device("cpu"))
