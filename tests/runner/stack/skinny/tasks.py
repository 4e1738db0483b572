"""Tasks of the zygote about the int4 product for few tokens; every one asserts and returns nothing."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from paddock_stack.kernels import int4
from paddock_stack.kernels.int4 import Int4Rows
from paddock_stack.skinny import layout, product
from paddock_stack.skinny.plan import MOST_COUNTERS, MOST_PARTS
from tests.runner.stack.skinny import emulation

# Rows and columns of each kind of plan: one block a row, short rows, split columns, two tiles a warp.
SHAPES = [(16, 1024), (48, 128), (160, 3072), (32, 6144), (16_384, 128)]


def weights_of(rows: int, columns: int, group_size: int, seed: int = 0) -> Int4Rows:
    """Return random weights whose scales are powers of two, so that sums of whole numbers are exact."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.randint(-8, 8, (rows, columns), generator=draw)
    exponents = torch.randint(-3, 4, (rows, columns // group_size), generator=draw)
    return Int4Rows(int4.packed(values), (2.0**exponents).to(torch.bfloat16))


def tokens_of(tokens: int, columns: int) -> torch.Tensor:
    """Return random whole numbers in bf16."""
    return torch.randint(-64, 65, (tokens, columns), generator=torch.Generator().manual_seed(tokens)).bfloat16()


def emulated_product_is_exact() -> None:
    """What the lanes read, multiply and store is x times the dequantised weights, in every layout and plan."""
    for rows, columns in SHAPES:
        for group_size in (32, 64, 128, columns):
            weights = weights_of(rows, columns, group_size)
            for tokens in (3, 8):
                x = tokens_of(tokens, columns)
                meant = x.double() @ int4.dequantized(weights).double().T
                assert torch.equal(emulation.product(x, product.laid(weights)), meant), (rows, columns, group_size)
                assert torch.equal(product.reference(x, weights).double(), meant)


def emulation_notices_a_wrong_word() -> None:
    """One nibble or one scale elsewhere changes the result: the comparison above can fail."""
    weights, x = weights_of(32, 128, 32), tokens_of(8, 128)
    meant = emulation.product(x, product.laid(weights))
    weights.packed[17, 3] ^= 1 << 20
    assert not torch.equal(emulation.product(x, product.laid(weights)), meant)
    weights.packed[17, 3] ^= 1 << 20
    weights.scales[9, 2] *= 2
    assert not torch.equal(emulation.product(x, product.laid(weights)), meant)


def rows_are_laid_out_piecewise() -> None:
    """Laying out a few rows at a time gives what all at once do; negative scales keep their sign."""
    weights = weights_of(160, 128, 32)
    meant = layout.words(weights.packed)
    layout._ROWS_AT_ONCE = 64
    assert torch.equal(layout.words(weights.packed), meant)
    pairs = layout.scale_pairs(-weights.scales)
    assert torch.equal((pairs << 16).view(torch.float32)[0, 0], -weights.scales[:8, 0].float())


def scratch_is_fp32_whatever_torchs_default() -> None:
    """vLLM loads models with bf16 as the default: sums in half the bytes ran over into other tensors."""
    torch.set_default_dtype(torch.bfloat16)
    parts, counters = product._scratch_for(torch.device("cpu"))
    assert (parts.dtype, parts.numel()) == (torch.float32, MOST_PARTS)
    assert (counters.dtype, counters.numel(), int(counters.sum())) == (torch.int32, MOST_COUNTERS, 0)


def product_refuses_what_it_cannot_read() -> None:
    """Too many tokens, none, other types, strides, addresses, widths or devices raise before anything is launched."""
    weights = product.laid(weights_of(16, 64, 32))
    x, shifted = tokens_of(8, 64), torch.zeros(65, dtype=torch.bfloat16)[1:].view(1, 64)
    for wrong in (tokens_of(9, 64), x[:0], x.float(), x.half(), x.t().contiguous().t(), shifted):
        _raises(ValueError, lambda wrong=wrong: product.multiply(wrong, weights), "one to 8 contiguous bf16 tokens")
    _raises(ValueError, lambda: product.multiply(tokens_of(1, 128), weights), "64 columns on the weights' GPU")
    _raises(ValueError, lambda: product.multiply(x, weights), "64 columns on the weights' GPU")


def layers_that_suit_are_taken() -> None:
    """The kernel takes Gemma's layers and says of any other why not; what Marlin refuses it refuses in its words."""
    linear = _linear()
    suits = _config()
    assert linear.SkinnyLinearKernel.can_implement(suits) == (True, None)
    without_indices = SimpleNamespace(**vars(suits))
    del without_indices.has_g_idx  # vLLM 0.33 has none
    assert linear.SkinnyLinearKernel.can_implement(without_indices) == (True, None)
    for wrong, words in (
        ({"zero_points": True}, "symmetric int4"),
        ({"has_g_idx": True}, "symmetric int4"),
        ({"weight_type": linear.scalar_types.uint8b128}, "symmetric int4"),
        ({"act_type": torch.float16}, "bf16 activations"),
        ({"full_weight_shape": (128, 64)}, "not split over GPUs"),
        ({"partition_weight_shape": (64, 24), "full_weight_shape": (64, 24)}, "does not take 24 x 64"),
        ({"group_size": 16}, "in groups of 16"),
    ):
        able, why = linear.SkinnyLinearKernel.can_implement(_config(**wrong))
        assert not able
        assert words in why, why
    linear.MarlinLinearKernel.can_implement = lambda _: (False, "Marlin says no")
    assert linear.SkinnyLinearKernel.can_implement(suits) == (False, "Marlin says no")


def operator_serves_few_tokens_itself_and_hands_more_to_marlin() -> None:
    """Up to eight tokens reach our product, more reach Marlin with that very layer; a bias is added once to both."""
    linear = _linear()
    layers = [_layer(linear, seed) for seed in (1, 2)]
    for layer, weights in layers:
        assert layer.bias.tolist() == list(range(16))  # Marlin's permuted one is not kept
        for tokens in (1, 8, 9, 300):
            x = tokens_of(tokens, 64)
            y = layer.kernel.apply_weights(layer, x.view(tokens, 1, 64), layer.bias)
            assert y.shape == (tokens, 1, 16)
            meant = product.reference(x, weights).bfloat16() + (100 if tokens > 8 else 0) + layer.bias
            assert torch.equal(y[:, 0], meant), tokens


def operator_is_what_torch_expects() -> None:
    """torch's checker accepts schema, fake shapes and dispatch; nothing of Marlin's is among the inputs."""
    linear = _linear()
    layer, _ = _layer(linear, 1)
    given = (layer.skinny_words, layer.skinny_pairs, 16, layer.kernel.group)
    for tokens in (1, 8):  # the checker copies the words, so that it finds no layer for more
        torch.library.opcheck(linear.int4_linear, (tokens_of(tokens, 64), *given))
    for tokens in (1, 8, 9):
        y = linear.int4_linear(tokens_of(tokens, 64), *given)
        with FakeTensorMode() as mode:
            fakes = [mode.from_tensor(each) for each in (tokens_of(tokens, 64), *given[:2])]
            fake = linear.int4_linear(*fakes, *given[2:])
        assert (fake.shape, fake.dtype, fake.stride()) == (y.shape, y.dtype, y.stride())
    names = [argument.name for argument in torch.ops.paddock.int4_linear.default._schema.arguments]
    assert names == ["x", "words", "pairs", "rows", "group"]


def unknown_weights_are_refused() -> None:
    """Words that were copied, or whose layer is gone, never find another layer."""
    linear = _linear()
    layer, _ = _layer(linear, 1)
    many, pairs, group = tokens_of(9, 64), layer.skinny_pairs, layer.kernel.group
    copied, words = layer.skinny_words.clone(), layer.skinny_words
    _raises(linear.UnknownWeights, lambda: linear.int4_linear(many, copied, pairs, 16, group), "moved or freed")
    del layer
    _raises(linear.UnknownWeights, lambda: linear.int4_linear(many, words, pairs, 16, group), "moved or freed")


def vllm_prefers_it_and_names_compiled_models_anew() -> None:
    """The kernel stands first, once, and vLLM's key for compiled models differs from that of plain Marlin."""
    from vllm import envs
    from vllm.model_executor.kernels import linear as kernels
    from vllm.platforms import PlatformEnum

    linear = _linear()
    os.environ["VLLM_DISABLED_KERNELS"] = "MacheteLinearKernel"
    before = envs.compile_factors()
    linear.prefer()
    after = envs.compile_factors()
    assert before != after
    linear.prefer()
    assert envs.compile_factors() == after
    assert "MacheteLinearKernel" in envs.VLLM_DISABLED_KERNELS
    asked = kernels._POSSIBLE_KERNELS[PlatformEnum.CUDA]
    assert asked[0] is linear.SkinnyLinearKernel
    assert asked.count(linear.SkinnyLinearKernel) == 1
    assert not {kernel.__name__ for kernel in asked} & ({*envs.VLLM_DISABLED_KERNELS} - {"MacheteLinearKernel"})


def _linear() -> Any:
    """Return the module with Marlin's and the GPU's part played by torch: Marlin adds 100, to be told apart."""
    from paddock_stack.skinny import linear

    def marlin(self: Any, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        assert bias is None
        return product.reference(x, layer.original).bfloat16() + 100

    def ours(x: torch.Tensor, weights: product.Laid) -> torch.Tensor:
        assert x.shape[1] == weights.columns
        return emulation.product(x, weights).bfloat16()

    linear.MarlinLinearKernel.can_implement = lambda _: (True, None)
    linear.MarlinLinearKernel.process_weights_after_loading = _permute_bias
    linear.MarlinLinearKernel.apply_weights = marlin
    linear.multiply = ours
    return linear


def _permute_bias(self: Any, layer: torch.nn.Module) -> None:
    layer.bias.data = layer.bias.data.flip(0)


def _layer(linear: Any, seed: int) -> tuple[Any, Int4Rows]:
    layer, weights = torch.nn.Module(), weights_of(16, 64, 32, seed)
    layer.weight_packed = torch.nn.Parameter(weights.packed, requires_grad=False)
    layer.weight_scale = torch.nn.Parameter(weights.scales, requires_grad=False)
    layer.bias = torch.nn.Parameter(torch.arange(16).bfloat16(), requires_grad=False)
    layer.original = weights
    layer.kernel = linear.SkinnyLinearKernel(_config(), "weight_packed", "weight_scale")
    layer.kernel.process_weights_after_loading(layer)
    return layer, weights


def _config(**other: Any) -> SimpleNamespace:
    from vllm.scalar_type import scalar_types

    told = {
        "full_weight_shape": (64, 16),
        "partition_weight_shape": (64, 16),
        "weight_type": scalar_types.uint4b8,
        "act_type": torch.bfloat16,
        "group_size": 32,
        "zero_points": False,
        "has_g_idx": False,
    }
    return SimpleNamespace(**{**told, **other})


def _raises(kind: type[Exception], call: Any, words: str) -> None:
    told = None
    try:
        call()
    except kind as error:
        told = str(error)
    assert told is not None, f"nothing was raised where {words!r} was expected"
    assert words in told, told
