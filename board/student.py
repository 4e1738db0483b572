"""Tails of Student's t and Fisher's F, through the regularised incomplete beta function."""

import math
from functools import lru_cache

_MAX_TERMS = 500
_TINY = 1e-300
_PRECISION = 1e-15


def regularised_beta(x: float, a: float, b: float) -> float:
    """Compute I_x(a, b) for 0 ≤ x ≤ 1 and positive a and b.

    The continued fraction is DLMF 8.17.22 (https://dlmf.nist.gov/8.17); it converges fast for
    x < (a + 1) / (a + b + 2), so elsewhere the symmetry I_x(a, b) = 1 − I_{1−x}(b, a) is used.

    Raises:
        ValueError: an argument outside that domain, NaN included.
    """
    if not (0.0 <= x <= 1.0 and 0.0 < a < math.inf and 0.0 < b < math.inf):
        raise ValueError(f"I_x(a, b) is not defined at x={x}, a={a}, b={b}")
    if x in (0.0, 1.0):
        return x
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - regularised_beta(1.0 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _continued_fraction(x, a, b))


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Evaluate 1 + d1/(1 + d2/(1 + …)) by Lentz's method as modified by Thompson and Barnett (1986)."""
    value, upper, lower = 1.0, 1.0, 0.0
    for term in range(1, _MAX_TERMS):
        step = _coefficient(term, x, a, b)
        upper = 1.0 + step / upper or _TINY
        lower = 1.0 / (1.0 + step * lower or _TINY)
        value *= upper * lower
        if abs(upper * lower - 1.0) < _PRECISION:
            return value
    raise ArithmeticError(f"I_x(a, b) did not converge at x={x}, a={a}, b={b}")


def _coefficient(term: int, x: float, a: float, b: float) -> float:
    m, odd = divmod(term, 2)
    if odd:
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))


def t_upper_tail(t: float, df: float) -> float:
    """Give P(T > t) for Student's t with `df` > 0 degrees of freedom (DLMF-style: I_{df/(df+t²)}(df/2, 1/2) / 2)."""
    if math.isnan(t):
        raise ValueError("t is not a number")
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = 0.5 * regularised_beta(df / (df + t * t), df / 2.0, 0.5)
    return tail if t >= 0 else 1.0 - tail


def f_upper_tail(f: float, df_above: float, df_below: float) -> float:
    """Give P(F > f) for Fisher's F with that many degrees of freedom above and below the line.

    Tests check published figures with it.
    """
    if not 0.0 <= f < math.inf:
        raise ValueError(f"{f} is not a ratio of variances")
    return regularised_beta(df_below / (df_below + df_above * f), df_below / 2.0, df_above / 2.0)


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """Find the t with P(T ≤ t) = `p`, 0 < p < 1, by bisection to 12 digits."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"there is no quantile at {p}")
    if p < 0.5:
        return -t_quantile(1.0 - p, df)
    low, high = 0.0, 1.0
    while t_upper_tail(high, df) > 1.0 - p:
        high *= 2.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if t_upper_tail(middle, df) > 1.0 - p else (low, middle)
    return high
