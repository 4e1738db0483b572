"""Packing, rounding and bfloat16 without torch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock_stack.bake.dtypes import from_float32, to_float32
from paddock_stack.bake.integers import Scheme, packed, quantised, scales_of, unpacked
from paddock_stack.refusals import Refused

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.sampled_from([4, 8]), st.integers(1, 9), st.integers(1, 12))
def test_packing_and_unpacking_come_back_to_the_same(seed: int, bits: int, rows: int, words: int) -> None:
    values = np.random.default_rng(seed).integers(0, 2**bits, (rows, words * 32 // bits), dtype=np.uint8)
    assert (unpacked(packed(values, bits), bits) == values).all()


def test_the_first_column_lies_in_the_lowest_bits() -> None:
    values = np.array([[1, 2, 3, 4, 5, 6, 7, 8]], np.uint8)
    assert packed(values, 4).tolist() == [[-0x789ABCDF]]  # 0x87654321 as a signed word
    assert packed(values[:, :4], 8).tolist() == [[0x04030201]]


@given(seeds, st.sampled_from([(4, 32), (4, 128), (4, -1), (8, 32)]), st.sampled_from(["F32", "BF16", "F16"]))
def test_rounding_errs_by_at_most_half_a_step(seed: int, form: tuple[int, int], dtype: str) -> None:
    scheme = Scheme(*form)
    numbers = np.random.default_rng(seed)
    drawn = (numbers.standard_normal((5, 256)) * 10 ** numbers.uniform(-3, 3)).astype(np.float32)
    weights = to_float32(from_float32(drawn, dtype), dtype)
    scales = to_float32(scales_of(weights, scheme, dtype), dtype)
    integers = quantised(weights, scales, scheme.bits).astype(np.float32) - 2 ** (scheme.bits - 1)
    step = np.repeat(scales, 256 // scales.shape[1], axis=1)
    # Half a step, and what the rounding of the scale itself takes from the largest value; F16's smallest is 2^-24.
    relative = {"F32": 2.0**-20, "BF16": 2.0**-8, "F16": 2.0**-10}[dtype]
    slack = np.maximum(relative * step, 2.0**-25 if dtype == "F16" else 0) * 2 ** (scheme.bits - 1)
    assert (np.abs(weights - integers * step) <= 0.5 * step + slack).all()


@given(seeds)
def test_bfloat16_rounds_to_the_nearest_and_ties_to_even(seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(64).astype(np.float32)
    back = to_float32(from_float32(values, "BF16"), "BF16")
    below = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    above = (below.view(np.uint32) + np.uint32(0x10000)).view(np.float32)
    assert (np.abs(back - values) <= np.minimum(np.abs(below - values), np.abs(above - values))).all()
    ties = np.array([0x3F808000, 0x3F818000], np.uint32).view(np.float32)
    assert from_float32(ties, "BF16").tolist() == [0x3F80, 0x3F82]


def test_a_group_of_zeros_gets_a_finite_scale() -> None:
    zeros = np.zeros((2, 64), np.float32)
    scales = to_float32(scales_of(zeros, Scheme(4, 32), "BF16"), "BF16")
    assert (scales == 2.0**-7).all()
    assert (quantised(zeros, scales, 4) == 8).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    weights = np.ones((2, 64), np.float32)
    weights[1, 40] = value
    with pytest.raises(Refused, match="not finite"):
        scales_of(weights, Scheme(4, 32), "BF16")


@pytest.mark.parametrize(("bits", "group"), [(3, 32), (4, 12), (4, 0), (4, -2)])
def test_schemes_nobody_reads_are_refused(bits: int, group: int) -> None:
    with pytest.raises(Refused):
        Scheme(bits, group)


def test_columns_that_groups_don_t_divide_are_refused() -> None:
    with pytest.raises(Refused, match="can't be quantised"):
        Scheme(4, 128).group(192)
