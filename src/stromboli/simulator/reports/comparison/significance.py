"""Whether two configurations differ by more than chance explains, over the seeds of their runs.

Runs with the same seeds are compared pair by pair, others as two samples with variances of their own (Welch). The
permutation test asks how many of all ways to swap the labels make a difference at least as large; it counts all of
them where they are few, and draws some, always the same, where they are many.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb, inf, sqrt
from typing import NamedTuple

import numpy as np

from stromboli.simulator.reports.comparison.student_t import quantile, two_sided_p
from stromboli.simulator.reports.record_columns import Floats

ALL_SWAPS = 50_000
"""Up to so many ways to swap labels, all are counted; of more, 20,000 are drawn."""
DRAWN_SWAPS = 20_000
BATCH = 2_000_000
"""Values that are held at a time while swaps are drawn."""
NOISE = 1e-12
"""A relative difference that is rounding and nothing else."""


class TestKind(enum.StrEnum):
    """Which test gives the p values."""

    T = "t"
    PERMUTATION = "permutation"


class Difference(NamedTuple):
    """Of two means: how large, between which bounds with the confidence asked for, and how likely by chance."""

    mean: float
    low: float | None
    high: float | None
    p: float | None
    """None: there is nothing to test, as runs are too few or all of them agree."""
    paired: bool


def paired_difference(pairs: Floats, confidence: float, kind: TestKind) -> Difference:
    """From the differences of runs with the same seed."""
    count, mean = pairs.size, float(pairs.mean())
    if count < 2:
        return Difference(mean, None, None, None, True)
    if not pairs.any():
        return Difference(0.0, 0.0, 0.0, None, True)
    error = float(pairs.std(ddof=1)) / sqrt(count)
    p = _p_value(mean, error, count - 1)
    if kind is TestKind.PERMUTATION:
        p = _sign_flips(pairs)
    return _with_bounds(mean, error, count - 1, p, confidence, True)


def unpaired_difference(first: Floats, second: Floats, confidence: float, kind: TestKind) -> Difference:
    """Of the second from the first, by Welch's test."""
    mean = float(second.mean() - first.mean())
    if min(first.size, second.size) < 2:
        return Difference(mean, None, None, None, False)
    if np.ptp(np.concatenate([first, second])) == 0:
        return Difference(0.0, 0.0, 0.0, None, False)
    parts = [float(values.var(ddof=1)) / values.size for values in (first, second)]
    error = sqrt(sum(parts))
    weights = sum(part**2 / (values.size - 1) for part, values in zip(parts, (first, second), strict=True))
    freedom = sum(parts) ** 2 / weights if weights > 0 else first.size + second.size - 2.0
    p = _p_value(mean, error, freedom)
    if kind is TestKind.PERMUTATION:
        p = _label_swaps(first, second)
    return _with_bounds(mean, error, freedom, p, confidence, False)


def _p_value(mean: float, error: float, freedom: float) -> float:
    if mean == 0:
        return 1.0
    return two_sided_p(mean / error if error > abs(mean) * NOISE else inf, freedom)


def _with_bounds(
    mean: float, error: float, freedom: float, p: float, confidence: float, paired: bool
) -> Difference:
    reach = quantile(confidence, freedom) * error
    return Difference(mean, mean - reach, mean + reach, p, paired)


def _sign_flips(pairs: Floats) -> float:
    """The share of all ways to swap the two of a pair with a mean at least as far from 0."""
    count = pairs.size
    if 2**count <= ALL_SWAPS:
        signs = 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return _share_as_far(signs @ pairs, abs(float(pairs.sum())), drawn=False)
    random = np.random.default_rng(0)
    sums = [random.choice((-1.0, 1.0), (rows, count)) @ pairs for rows in _batches(count)]
    return _share_as_far(np.concatenate(sums), abs(float(pairs.sum())), drawn=True)


def _label_swaps(first: Floats, second: Floats) -> float:
    """The share of all ways to deal out the values to the two with means at least as far apart."""
    fewer, more = sorted((first, second), key=len)
    values, size = np.concatenate([fewer, more]), fewer.size
    is_small = comb(values.size, size) <= ALL_SWAPS
    if is_small:
        sums = values[np.array(list(combinations(range(values.size), size)))].sum(axis=1)
    else:
        random = np.random.default_rng(0)
        sums = np.concatenate(
            [
                random.permuted(np.tile(values, (rows, 1)), axis=1)[:, :size].sum(axis=1)
                for rows in _batches(values.size)
            ]
        )
    means = (values.sum() - sums) / more.size - sums / size
    return _share_as_far(means, abs(float(second.mean() - first.mean())), drawn=not is_small)


def _batches(runs: int) -> Iterator[int]:
    """How many swaps are drawn at a time, so that many runs need no more memory than a few."""
    rows = max(BATCH // runs, 1)
    for begin in range(0, DRAWN_SWAPS, rows):
        yield min(rows, DRAWN_SWAPS - begin)


def _share_as_far(values: Floats, distance: float, drawn: bool) -> float:
    """Of drawn values the one at hand counts too, so that no share is 0."""
    hits = int((np.abs(values) >= distance * (1 - NOISE) - NOISE * distance).sum())
    return (hits + drawn) / (values.size + drawn)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected for the number of tests (Holm): the smallest counts for all of them, the next for all but one."""
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        corrected[place] = highest
    return corrected
