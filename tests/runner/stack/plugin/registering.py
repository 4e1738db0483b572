"""Tasks of the zygote that call the plugin and tell what it changed; they run in the server environment."""

from __future__ import annotations

from functools import wraps
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch


def loaded() -> dict[str, str]:
    """Let vLLM load its plugins; return what stands where the stack puts its levers."""
    from vllm import _custom_ops
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    return _levers() | {"onednn_mm": _custom_ops.onednn_mm.__code__.co_name}


def twice() -> bool:
    """Return whether a second call of the plugin leaves everything as the first made it."""
    from vllm import _custom_ops

    from paddock_stack.plugin import register

    register()
    first = (_levers(), _custom_ops.onednn_mm)
    register()
    return first == (_levers(), _custom_ops.onednn_mm)


def in_another_vllm() -> None:
    """Call the plugin beside a vLLM whose folder is empty."""
    from paddock_stack.plugin import register
    from paddock_stack.shapes import guard

    with mock.patch.object(guard, "find_spec", return_value=SimpleNamespace(origin="/nowhere/vllm/__init__.py")):
        register()


def on_a_gpu() -> str:
    """Call the plugin where vLLM believes in a GPU and Triton is there; return the method that picks draft tokens."""
    from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder

    from paddock_stack.plugin import levers, register

    with mock.patch.object(levers, "is_cpu", return_value=False), mock.patch.object(levers, "find_spec"):
        register()
    return str(Gemma4MTPMaskedEmbedder.get_top_tokens.__name__)


def with_our_products() -> list[str]:
    """Call the plugin where vLLM believes in a GPU; return what multiplies int4 weights first, and bf16 weights."""
    from vllm.model_executor.kernels import linear
    from vllm.model_executor.layers import utils
    from vllm.platforms import PlatformEnum

    from paddock_stack.plugin import levers, register

    with mock.patch.object(levers, "is_cpu", return_value=False), mock.patch.object(levers, "find_spec"):
        register()
    return [
        linear._POSSIBLE_KERNELS[PlatformEnum.CUDA][0].__name__,
        utils.default_unquantized_gemm.__code__.co_name,
    ]


def with_persistent_norms() -> dict[str, Any]:
    """Call the plugin where vLLM believes in a GPU; return how torch then compiles sums over rows, and its cache's key.

    For each length of a row: held whole or not, where the numbers lie side by side, where they don't, and where blocks
    share a row.
    """
    from torch._inductor import config
    from torch._inductor.runtime.hints import ReductionHint
    from torch._inductor.virtualized import V

    from paddock_stack.plugin import levers, register

    with mock.patch.object(levers, "is_cpu", return_value=False), mock.patch.object(levers, "find_spec"):
        register()
    ways = [(ReductionHint.INNER, False), (ReductionHint.OUTER, False), (ReductionHint.INNER, True)]
    held = {
        str(length): [_is_held_whole(length, hint, shared=shared) for hint, shared in ways]
        for length in (256, 2560, 8192, 8193)
    }
    return {
        "rules": type(V.choices).__name__,
        "held": held,
        "key": config.save_config_portable()["inductor_choices_class"],
    }


def _is_held_whole(length: int, hint: Any, *, shared: bool) -> bool:
    from sympy import Integer
    from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
    from torch._inductor.sizevars import SizeVarAllocator
    from torch._inductor.virtualized import V

    with V.set_graph_handler(SimpleNamespace(sizevars=SizeVarAllocator())):
        features = SIMDKernelFeatures([], Integer(4096), Integer(length))
        with mock.patch.object(features, "get_reduction_hint", return_value=hint):
            return bool(V.choices.should_use_persistent_reduction(features, shared))


def in_another_torch() -> None:
    """Ask for norms in registers beside a torch whose folder is empty, where vLLM believes in a GPU."""
    from paddock_stack.plugin import levers
    from paddock_stack.shapes import guard

    elsewhere = mock.patch.object(guard, "find_spec", return_value=SimpleNamespace(origin="/nowhere/torch/__init__.py"))
    with mock.patch.object(levers, "is_cpu", return_value=False), elsewhere:
        levers.hold_rows_of_norms()


def beside_anothers_wrappers() -> list[str]:
    """Bind vLLM's products anew where somebody else has wrapped them; return what stands there then."""
    from vllm import _custom_ops
    from vllm.model_executor.layers import utils

    from paddock_stack.plugin import rebindings

    for module, name in ((_custom_ops, "onednn_mm"), (utils, "default_unquantized_gemm")):
        stock = getattr(module, name)
        setattr(module, name, wraps(stock)(lambda *given, stock=stock: stock(*given)))
    rebindings.make_onednn_inputs_contiguous()
    rebindings.multiply_few_tokens_alike()
    return [_custom_ops.onednn_mm.__code__.co_name, utils.default_unquantized_gemm.__code__.co_name]


def two_d_buffers() -> dict[str, Any]:
    """Build metadata builders of the 2D backend and of vLLM's own; return what they hold for split softmax."""
    from vllm.v1.attention.backends.triton_attn import TritonAttentionBackend

    from paddock_stack.attention.two_d import TwoDAttentionBackend

    ours = _builder(TwoDAttentionBackend.get_builder_cls())
    stock = _builder(TritonAttentionBackend.get_builder_cls())
    names = ("softmax_segm_output", "softmax_segm_max", "softmax_segm_expsum")
    return {
        "name": TwoDAttentionBackend.get_name(),
        "buffers": [getattr(ours, name) for name in names],
        "narrow_sequences": ours.max_seqs_64_segments,
        "stock_buffers": [getattr(stock, name) is None for name in names],
    }


def _builder(kind: Any) -> Any:
    return kind(SimpleNamespace(block_size=16), [], config_of({}), torch.device("cpu"))


def config_of(layers: dict[str, Any]) -> Any:
    """Return a stand-in for the configuration of an engine whose model has `layers`."""
    model = SimpleNamespace(
        get_num_attention_heads=lambda _: 8,
        get_num_kv_heads=lambda _: 2,
        get_head_size=lambda: 256,
        rswa_window=None,
    )
    config = mock.MagicMock(model_config=model)
    config.cache_config.kv_sharing_fast_prefill = False
    config.compilation_config.static_forward_context = layers
    return config


def _levers() -> dict[str, str]:
    from vllm import ModelRegistry
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    model = ModelRegistry.models["Gemma4ForCausalLM"]
    return {
        "Gemma4ForCausalLM": f"{model.module_name}:{model.class_name}",
        "CUSTOM": AttentionBackendEnum.CUSTOM.get_path(),
    }
