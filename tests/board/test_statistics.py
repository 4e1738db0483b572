"""Every published figure of the public race for which the numbers printed with it suffice must come out."""

import math
import statistics as reference

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.statistics import Sample, estimate, expected_best, sample, welch
from board.student import f_upper_tail, regularised_beta, t_quantile, t_upper_tail

# Published in the race's comments: two agents on one recipe.
LUCKY = Sample(n=5, mean=510.09, sd=0.76, df=4.0)
MANY = Sample(n=15, mean=507.14, sd=2.02, df=14.0)


def test_two_agents_on_one_recipe_differ_as_published() -> None:
    found = welch(LUCKY, MANY)
    assert round(found.t, 2) == 4.74  # published 4.72 from unrounded inputs
    assert round(found.df, 1) == 17.4
    assert found.p < 0.001


def test_expected_best_of_n_comes_out_as_from_the_published_inputs() -> None:
    assert round(MANY.mean + expected_best(MANY.n) * MANY.sd, 2) == 510.65
    assert round(LUCKY.mean + expected_best(LUCKY.n) * LUCKY.sd, 2) == 510.97


@pytest.mark.parametrize(("n", "sds"), [(3, 0.85), (5, 1.16), (10, 1.54), (15, 1.74), (23, 1.93)])
def test_expected_best_is_that_of_the_integrity_notes(n: int, sds: float) -> None:
    assert round(expected_best(n), 2) == sds


def test_expected_best_of_one_and_two_are_exact() -> None:
    assert expected_best(1) == pytest.approx(0.0, abs=1e-12)
    assert expected_best(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-9)


def test_variances_of_two_groups_compare_as_published() -> None:
    f = 1.77**2 / 1.24**2  # n = 11 against n = 23
    assert round(f, 2) == 2.04
    assert round(f_upper_tail(f, 10, 22), 3) == 0.079


def test_day_effect_has_the_published_tail_and_share_of_variance() -> None:
    assert round(f_upper_tail(2.87, 6, 53), 3) == 0.017
    explained = 2.87 * 6 / (2.87 * 6 + 53)
    assert round(explained, 3) == 0.245


def test_three_draws_of_one_submission_spread_as_published() -> None:
    assert round(sample([510.56, 510.36, 510.58]).sd, 3) == 0.122


def test_three_draws_of_one_submission_stay_inside_the_floor_and_not_their_own_luck() -> None:
    found = estimate([510.56, 510.36, 510.58])
    assert found.low is not None
    assert found.high is not None
    assert found.logs.df == 12.0
    assert found.high - found.low > 4 * 0.122 * 2.48  # far wider than the t-interval of the raw sd


def test_one_submission_four_times_gives_its_geometric_mean() -> None:
    draws = [491.23, 503.76, 491.93, 497.92]  # corpus: hayai-repro-rerun1..4
    found = estimate(draws)
    assert found.score == pytest.approx(reference.geometric_mean(draws), rel=1e-12)
    assert round(found.score, 2) == 496.18
    assert found.logs.sd == reference.stdev(math.log(draw) for draw in draws)  # 1.2 %, above the floor


@pytest.mark.parametrize(("floor_df", "half_percent"), [(0.0, 0.48), (10.0, 0.38)])
def test_five_draws_with_a_raw_sd_of_0_39_percent_have_the_stated_half_width(
    floor_df: float, half_percent: float
) -> None:
    unit = 0.0039 / math.sqrt(2.5)  # sd of -2…2 is √2.5
    draws = [500.0 * math.exp(unit * step) for step in range(-2, 3)]
    found = estimate(draws, floor_df=floor_df)
    assert found.high is not None
    assert round(100 * math.log(found.high / found.score), 2) == half_percent


def test_one_draw_has_a_score_and_no_interval() -> None:
    found = estimate([507.3])
    assert (found.score, found.low, found.high, found.n) == (507.3, None, None, 1)


@pytest.mark.parametrize("draws", [[], [0.0], [-1.0, 2.0], [math.nan, 1.0], [math.inf], [1.0, -math.inf]])
def test_draws_that_are_no_rates_are_refused(draws: list[float]) -> None:
    with pytest.raises(ValueError, match="finite and over 0"):
        estimate(draws)


@pytest.mark.parametrize(
    ("n", "mean", "sd", "df"), [(0, 1, 1, 1), (2, math.nan, 1, 1), (2, 1, math.inf, 1), (2, 1, 1, 0)]
)
def test_a_sample_of_nonsense_cannot_be_made(n: int, mean: float, sd: float, df: float) -> None:
    with pytest.raises(ValueError, match="is not a sample"):
        Sample(n, mean, sd, df)


def test_samples_without_any_spread_are_not_compared() -> None:
    flat = Sample(3, 1.0, 0.0, 2.0)
    with pytest.raises(ValueError, match="without spread"):
        welch(flat, flat)


@pytest.mark.parametrize(
    ("p", "df", "t"),
    # NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values of Student's t
    [
        (0.95, 1, 6.314),
        (0.975, 4, 2.776),
        (0.975, 14, 2.145),
        (0.99, 10, 2.764),
        (0.995, 30, 2.750),
        (0.999, 100, 3.174),
    ],
)
def test_quantiles_are_those_of_the_printed_table(p: float, df: float, t: float) -> None:
    assert round(t_quantile(p, df), 3) == t
    assert t_quantile(1 - p, df) == pytest.approx(-t_quantile(p, df), rel=1e-9)


def test_one_degree_of_freedom_is_the_cauchy_distribution() -> None:
    for t in (-30.0, -1.0, 0.0, 0.3, 1.0, 1000.0):
        assert t_upper_tail(t, 1.0) == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-9)


@given(st.floats(0.0, 1.0), st.integers(1, 40), st.integers(1, 40))
def test_the_beta_function_is_the_binomial_tail(x: float, a: int, b: int) -> None:
    n = a + b - 1
    tail = math.fsum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))
    assert regularised_beta(x, a, b) == pytest.approx(tail, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "a", "b"), [(math.nan, 1, 1), (-0.1, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, 1, math.inf)]
)
def test_the_beta_function_refuses_what_is_outside_its_domain(x: float, a: float, b: float) -> None:
    with pytest.raises(ValueError, match="not defined"):
        regularised_beta(x, a, b)


def test_tails_refuse_what_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="not a number"):
        t_upper_tail(math.nan, 3.0)
    with pytest.raises(ValueError, match="ratio"):
        f_upper_tail(math.nan, 3.0, 3.0)
    assert (t_upper_tail(math.inf, 3.0), t_upper_tail(-math.inf, 3.0)) == (0.0, 1.0)


@given(st.lists(st.floats(100.0, 1000.0), min_size=2, max_size=20), st.floats(0.1, 10.0))
def test_an_estimate_scales_with_its_unit_and_lies_inside_its_interval(draws: list[float], unit: float) -> None:
    found, scaled = estimate(draws), estimate([draw * unit for draw in draws])
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.score < found.high
    assert scaled.score == pytest.approx(found.score * unit, rel=1e-9)
    assert scaled.low == pytest.approx(found.low * unit, rel=1e-6)
