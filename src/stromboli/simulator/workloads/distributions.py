"""Distributions of amounts: a number, or a mapping such as `{distribution: lognormal, median: 30m, sigma: 1.5}`.

Everything is computed from uniform numbers of Python's Mersenne Twister, which are the same on every machine, and
rounded to thousandths, so that the last bits of a mathematical library do not matter.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist
from typing import Annotated

from msgspec import Meta, Struct

from stromboli.simulator.workloads.time_spans import seconds

Span = float | str
"""An amount, or a time as a text."""
Positive = Annotated[float, Meta(gt=0, le=1e11)]
Weight = Annotated[float, Meta(ge=0, le=1e11)]
MAX_CHOICES = 1000
"""Values that a distribution, a list of queues or one of users may name."""

_NORMAL = NormalDist()


class _Distribution(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="distribution", rename="camel"
):
    min: Span | None = None
    """What is below counts as this."""
    max: Span | None = None
    """What is above counts as this."""

    def sample(self, random: Random, pods: int = 1) -> float:
        """A value within the bounds, for a job of so many pods."""
        value = self._value(random, pods)
        if self.min is not None:
            value = max(value, seconds(self.min))
        if self.max is not None:
            value = min(value, seconds(self.max))
        return round(value, 3)

    def _value(self, random: Random, pods: int) -> float:
        raise NotImplementedError

    def check(self) -> None:
        """Raise a `ValueError` for values that a type does not refuse."""
        low, high = (None if bound is None else seconds(bound) for bound in (self.min, self.max))
        if low is not None and high is not None and low > high:
            raise ValueError(f"min {self.min} is above max {self.max}")
        self.sample(Random(0))


class Constant(_Distribution, frozen=True, tag="constant", kw_only=True):
    """Always the same."""

    value: Span

    def _value(self, random: Random, pods: int) -> float:
        return seconds(self.value)


class Uniform(_Distribution, frozen=True, tag="uniform"):
    """Any value from `min` to `max`."""

    def _value(self, random: Random, pods: int) -> float:
        if self.min is None or self.max is None:
            raise ValueError("uniform needs min and max")
        low, high = seconds(self.min), seconds(self.max)
        return low + (high - low) * random.random()


class Exponential(_Distribution, frozen=True, tag="exponential", kw_only=True):
    """Many short, few long."""

    mean: Span

    def _value(self, random: Random, pods: int) -> float:
        return -seconds(self.mean) * log(1 - random.random())


class Lognormal(_Distribution, frozen=True, tag="lognormal", kw_only=True):
    """Half of the values below the median; the larger `sigma`, the longer the tail."""

    median: Span
    sigma: Annotated[float, Meta(ge=0, le=20)]

    def _value(self, random: Random, pods: int) -> float:
        return seconds(self.median) * exp(self.sigma * _normal(random))


class Weibull(_Distribution, frozen=True, tag="weibull", kw_only=True):
    """With a shape below 1 a long tail."""

    scale: Span
    shape: Annotated[float, Meta(ge=0.05, le=100)]

    def _value(self, random: Random, pods: int) -> float:
        return float(seconds(self.scale) * (-log(1 - random.random())) ** (1 / self.shape))


class HyperGamma(_Distribution, frozen=True, tag="hyperGamma"):
    """One of two gamma distributions, which one by the job's size; the defaults are Lublin's batch jobs.

    The logarithm of the value is distributed so, unless `log` is false.
    """

    shape1: Annotated[float, Meta(ge=0.01, le=1e6)] = 4.2
    scale1: Positive = 0.94
    shape2: Annotated[float, Meta(ge=0.01, le=1e6)] = 312.0
    scale2: Positive = 0.03
    p: Annotated[float, Meta(ge=-1e6, le=1e6)] = 0.78
    """How likely the first is."""
    p_per_pod: Annotated[float, Meta(ge=-1e6, le=1e6)] = -0.0054
    """How much more likely with each pod."""
    log: bool = True

    def _value(self, random: Random, pods: int) -> float:
        first = random.random() < self.p + self.p_per_pod * pods
        value = (
            _gamma(random, self.shape1, self.scale1) if first else _gamma(random, self.shape2, self.scale2)
        )
        return exp(min(value, 25.0)) if self.log else value


class PowersOfTwo(_Distribution, frozen=True, tag="powersOfTwo"):
    """1, 2, 4 ... from `min` to `max`, each as likely."""

    def _value(self, random: Random, pods: int) -> float:
        if self.min is None or self.max is None:
            raise ValueError("powersOfTwo needs min and max")
        low, high = seconds(self.min), seconds(self.max)
        powers = [2**n for n in range(37) if low <= 2**n <= high]
        if not powers:
            raise ValueError(f"no power of two is from {low:g} to {high:g}")
        return float(powers[int(random.random() * len(powers))])


class Weighted(Struct, frozen=True, forbid_unknown_fields=True):
    """A value, and how often it is chosen in relation to others."""

    value: Span
    weight: Weight = 1.0


class Choice(_Distribution, frozen=True, tag="choice", kw_only=True):
    """One of some values."""

    values: Annotated[tuple[Weighted, ...], Meta(min_length=1, max_length=MAX_CHOICES)]

    def pick(self, random: Random) -> Span:
        return self.values[weighted_index(random, [each.weight for each in self.values])].value

    def _value(self, random: Random, pods: int) -> float:
        return seconds(self.pick(random))


Distribution = Constant | Uniform | Exponential | Lognormal | Weibull | HyperGamma | PowersOfTwo | Choice
Amount = Span | Distribution
"""A number or a time, or a distribution of them."""


def sampled(amount: Amount, random: Random, pods: int = 1) -> float:
    """A value of an amount."""
    return amount.sample(random, pods) if isinstance(amount, _Distribution) else seconds(amount)


def check_amount(amount: Amount) -> None:
    """Raise a `ValueError` for an amount that no value can be drawn of."""
    if isinstance(amount, _Distribution):
        amount.check()
    else:
        seconds(amount)


def weighted_index(random: Random, weights: Sequence[float]) -> int:
    """One of the places, as likely as its weight says; a `ValueError` if all weights are 0."""
    sums = list(accumulate(weights))
    if not sums or sums[-1] <= 0:
        raise ValueError("all weights are 0; give one above 0")
    return min(bisect(sums, random.random() * sums[-1]), len(sums) - 1)


def _normal(random: Random) -> float:
    return _NORMAL.inv_cdf(min(max(random.random(), 1e-15), 1 - 1e-15))


def _gamma(random: Random, shape: float, scale: float) -> float:
    """By the method of Marsaglia and Tsang."""
    if shape < 1:
        return float(_gamma(random, shape + 1, scale) * (1 - random.random()) ** (1 / shape))
    d = shape - 1 / 3
    c = 1 / sqrt(9 * d)
    while True:
        x = _normal(random)
        v = (1 + c * x) ** 3
        if v > 0 and log(1 - random.random()) < x * x / 2 + d - d * v + d * log(v):
            return d * v * scale
