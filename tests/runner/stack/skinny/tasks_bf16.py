"""Tasks of the zygote about the bf16 product for few tokens; every one asserts and returns nothing."""

from __future__ import annotations

from unittest import TestCase

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from paddock_stack.skinny import product
from tests.runner.stack.skinny import emulation
from tests.runner.stack.skinny.tasks import SHAPES, tokens_of


def emulated_product_of_bf16_weights_is_exact() -> None:
    """What the lanes read of bf16 rows, multiply and store is x times these rows, in every plan; a wrong one shows."""
    for rows, columns in SHAPES:
        weight = tokens_of(rows, columns)
        for tokens in (3, 8):
            x = tokens_of(tokens, columns)
            meant = x.double() @ weight.double().T
            assert torch.equal(emulation.product(x, product.plain(weight)), meant), (rows, columns)
    weight[rows - 1, columns - 1] += 1
    assert not torch.equal(emulation.product(x, product.plain(weight)), meant)


def bf16_weights_that_the_kernel_reads_right_suit() -> None:
    """Only bf16 matrices on a GPU, in one piece and of whole tiles, suit; asked of fakes, as torch's compiler asks."""
    from paddock_stack.skinny import bf16

    kind = {"dtype": torch.bfloat16, "device": "cuda"}
    with FakeTensorMode():
        assert bf16.suits(torch.empty(32, 128, **kind))
        for wrong in (
            torch.empty(32, 128, dtype=torch.bfloat16),
            torch.empty(32, 128, dtype=torch.float16, device="cuda"),
            torch.empty_strided((32, 64), (128, 1), **kind),
            *(torch.empty(shape, **kind) for shape in ((8, 128), (32, 32), (32, 64, 64), (64,))),
        ):
            assert not bf16.suits(wrong), wrong


def bf16_product_refuses_what_it_would_read_wrong() -> None:
    """Weights of another type, in pieces, of other shapes or between addresses raise; none is read as if it suited."""
    weight, raises = tokens_of(32, 128), TestCase().assertRaisesRegex  # the server environment has no pytest
    for wrong in (weight.half(), weight[:, :64], weight[:8], weight[:, :32].contiguous(), weight.view(32, 2, 64)):
        with raises(ValueError, "contiguous bf16 weights"):
            product.plain(wrong)
    shifted = torch.zeros(16 * 64 + 1, dtype=torch.bfloat16)[1:].view(16, 64)
    with raises(ValueError, "from addresses that 16 divides"):
        product.multiply(tokens_of(1, 64), product.plain(shifted))


def layers_of_bf16_weights_that_suit_are_taken() -> None:
    """vLLM hands few tokens of bf16 layers to our product; biases, other types and shapes stay with torch."""
    from vllm.model_executor.layers import utils

    from paddock_stack.plugin import rebindings
    from paddock_stack.skinny import bf16

    stock, calls = utils.default_unquantized_gemm, []
    bf16.suits = product.is_plain  # no GPU is asked for
    bf16.bf16_linear = lambda x, weight: calls.append(x.shape) or torch.nn.functional.linear(x, weight)
    rebindings.multiply_few_tokens_alike()
    rebindings.multiply_few_tokens_alike()
    gemm = utils.default_unquantized_gemm
    assert gemm is not stock
    assert gemm.__wrapped__ is stock
    weight, x = tokens_of(16, 64), tokens_of(6, 64).view(2, 3, 64)
    for wrong in ((x.float(), weight.float()), (x, weight, torch.ones(16).bfloat16()), (x, weight[:8].contiguous())):
        assert torch.equal(gemm(None, *wrong), stock(None, *wrong))
    assert not calls
    assert torch.equal(gemm(None, x, weight), stock(None, x, weight))
    assert calls == [(6, 64)]


def bf16_operator_is_what_torch_expects() -> None:
    """Up to eight tokens reach the product, more reach torch; torch's checker accepts all that it tries."""
    from paddock_stack.skinny import bf16

    counted: list[int] = []
    product.Laid.kernel = lambda self: counted.append(self.bits)
    bf16.multiply = lambda x, weights: (x.double() @ weights.words.double().T).bfloat16() + 100
    weight = tokens_of(16, 64)
    for tokens in (1, 8, 9):
        x = tokens_of(tokens, 64)
        torch.library.opcheck(bf16.bf16_linear, (x, weight))
        plain = torch.nn.functional.linear(x, weight)
        assert torch.equal(bf16.bf16_linear(x, weight), plain + (100 if tokens <= 8 else 0))
    assert set(counted) == {16}  # compiled at the first call, however many tokens it has
