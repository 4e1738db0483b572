"""Serve compressed-tensors' int4 layers by our product for up to eight tokens, by Marlin for more.

Both layouts of the weights stay in memory (2.6 GB more for E4B): prefill wants Marlin's tiles, decoding ours.
"""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakValueDictionary

import torch
from vllm.model_executor.kernels.linear import MarlinLinearKernel
from vllm.scalar_type import scalar_types

from paddock_stack.kernels.int4 import Int4Rows
from paddock_stack.refusals import Refused
from paddock_stack.skinny.plan import TOKENS, fits
from paddock_stack.skinny.product import Laid, laid, multiply

# The layer whose words lie at an address. A compiled graph hands the words over as an input, so the operator finds its
# layer without a number or name in the graph: equal layers stay equal graphs, and one read from vLLM's cache fits.
_layers: WeakValueDictionary[int, torch.nn.Module] = WeakValueDictionary()

_DISABLED = "VLLM_DISABLED_KERNELS"
_MARK = "PaddockPrefersSkinnyLinearKernel"  # no kernel's name: it is there to be hashed


class UnknownWeights(Refused):
    """The operator was given weights that no living layer of this process laid out."""


class SkinnyLinearKernel(MarlinLinearKernel):  # type: ignore[misc]  # vLLM's types are not seen here
    """vLLM's Marlin kernel with our product in front of it."""

    @classmethod
    def get_min_capability(cls) -> int:
        """Return the compute capability it needs: bf16 tensor cores."""
        return 80

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Return whether the layer's weights suit the product, and Marlin, and else why not."""
        able, why = super().can_implement(c)
        if not able:
            return able, why
        if c.weight_type != scalar_types.uint4b8 or c.zero_points or getattr(c, "has_g_idx", False):
            return False, "the int4 product takes symmetric int4 weights in their own order"
        if c.act_type != torch.bfloat16 or c.full_weight_shape != c.partition_weight_shape:
            return False, "the int4 product takes bf16 activations and weights that are not split over GPUs"
        columns, rows = c.partition_weight_shape
        if not fits(rows, columns, c.group_size):
            return False, f"the int4 product does not take {rows} x {columns} in groups of {c.group_size}"
        return True, None

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Lay the weights out for the product, then for Marlin."""
        ours = laid(Int4Rows(getattr(layer, self.w_q_name).data, getattr(layer, self.w_s_name).data))
        bias = getattr(layer, "bias", None)
        plain = None if bias is None else bias.data.clone()
        super().process_weights_after_loading(layer)
        if bias is not None:
            layer.bias.data = plain  # Marlin permutes it; here it is added after either product
        layer.register_buffer("skinny_words", ours.words, persistent=False)
        layer.register_buffer("skinny_pairs", ours.scale_pairs, persistent=False)
        layer.skinny_kernel = self
        self.group = ours.group
        _layers[ours.words.data_ptr()] = layer

    def apply_weights(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Return x [..., in] times the layer's weights, [..., out]."""
        columns, rows = self.config.partition_weight_shape
        y = int4_linear(x.reshape(-1, columns), layer.skinny_words, layer.skinny_pairs, rows, self.group)
        y = y.reshape(*x.shape[:-1], rows)
        return y if bias is None else y + bias

    def by_marlin(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        """Return x [tokens, in] times the layer's weights as vLLM multiplies them, contiguous."""
        return super().apply_weights(layer, x).contiguous()


@torch.library.custom_op("paddock::int4_linear", mutates_args=())  # type: ignore[untyped-decorator]  # torch is not seen here
def int4_linear(x: torch.Tensor, words: torch.Tensor, pairs: torch.Tensor, rows: int, group: int) -> torch.Tensor:
    """Return x [tokens, in] (bf16) times int4 weights, [tokens, rows].

    One operator, so that a compiled graph holds whichever number of tokens it is given. What it writes beside its
    result (Marlin's locks, our sums) is not among its inputs. `group` is how many columns a scale covers, 0 for all.
    """
    if 0 < x.shape[0] <= TOKENS:
        return multiply(x.contiguous(), Laid(words, pairs, rows, x.shape[1], group))
    layer = _layers.get(words.data_ptr())
    if layer is None:
        raise UnknownWeights("the int4 product was given weights that were moved or freed since they were laid out")
    return layer.skinny_kernel.by_marlin(layer, x.contiguous())


@int4_linear.register_fake  # type: ignore[untyped-decorator]  # torch is not seen here
def _shape(x: torch.Tensor, words: torch.Tensor, pairs: torch.Tensor, rows: int, group: int) -> torch.Tensor:
    del words, pairs, group
    return x.new_empty(x.shape[0], rows)


def prefer() -> None:
    """Have vLLM ask this kernel first for int4 layers on NVIDIA GPUs; a second call changes nothing.

    vLLM names a compiled model in its cache by its configuration and its `VLLM_` variables, not by the kernels that it
    chose: without a mark of ours it would run a graph compiled for plain Marlin, and say nothing.
    """
    from vllm.model_executor.kernels import linear
    from vllm.platforms import PlatformEnum

    kernels = linear._POSSIBLE_KERNELS[PlatformEnum.CUDA]
    if SkinnyLinearKernel not in kernels:
        linear.register_linear_kernel(SkinnyLinearKernel, PlatformEnum.CUDA)
        kernels.insert(0, kernels.pop())
    disabled = [name for name in os.environ.get(_DISABLED, "").split(",") if name]
    if _MARK not in disabled:
        os.environ[_DISABLED] = ",".join([*disabled, _MARK])
