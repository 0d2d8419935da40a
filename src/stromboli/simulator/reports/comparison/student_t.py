"""Student's t distribution, from the incomplete beta function by its continued fraction."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, lgamma, log

TERMS = 300
PRECISION = 1e-14
QUANTILE_PRECISION = 1e-10
TINY = 1e-300


def two_sided_p(t: float, freedom: float) -> float:
    """How likely a value is that lies at least as far from 0, on either side."""
    if t in (inf, -inf):
        return 0.0
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@lru_cache
def quantile(confidence: float, freedom: float) -> float:
    """The t between whose negative and itself a share of `confidence` lies."""
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > 1 - confidence:
        low, high = high, high * 2
    while high - low > high * QUANTILE_PRECISION:
        middle = (low + high) / 2
        if two_sided_p(middle, freedom) > 1 - confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction, evaluated forwards (Lentz's method)."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
