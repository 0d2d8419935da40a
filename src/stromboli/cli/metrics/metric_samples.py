"""What a summary is made of: gauges, and counters and distributions since the start or in an interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics.prometheus_text import Labels, Page, Sample, parse_page

_PARTS = ("_bucket", "_sum", "_count")
_HISTOGRAM_SERIES = frozenset(name + part for name in names.HISTOGRAMS for part in _PARTS)
_WANTED = _HISTOGRAM_SERIES | names.COUNTERS | names.GAUGES
_GROWING = _HISTOGRAM_SERIES | names.COUNTERS
"""Series that only grow, but for a restart of the process."""

_LARGEST = 1e18
"""Beyond it, no bound or count of a histogram is taken for one."""


class Quantile(NamedTuple):
    """Below which value a part of all lies, as far as buckets tell."""

    value: float
    is_more: bool = False
    """Whether it is beyond all buckets, so that the value is the last of their bounds."""


class Distribution(NamedTuple):
    """A histogram: how many values lie at or below each bound, and the sum of all."""

    buckets: tuple[tuple[float, float], ...]
    """Bounds in ascending order with cumulative counts, without that of +Inf."""
    observed: float
    total: float

    @property
    def mean(self) -> float:
        return self.total / self.observed if self.observed else 0.0

    def quantile(self, part: float) -> Quantile:
        """As Prometheus estimates it: values are taken to lie evenly between the bounds of their bucket."""
        rank, below, lower = part * self.observed, 0.0, 0.0
        for bound, cumulative in self.buckets:
            if cumulative >= rank and cumulative > below:
                return Quantile(lower + (bound - lower) * (rank - below) / (cumulative - below))
            below, lower = max(below, cumulative), bound
        return Quantile(lower, is_more=self.observed > 0)


class Samples:
    """What a page says, by metric and labels."""

    def __init__(self, samples: Iterable[Sample], seconds: float | None = None) -> None:
        """`seconds` of the interval in which counters and distributions have grown so; None: since the start."""
        self.seconds = seconds
        self._series: dict[str, dict[Labels, float]] = defaultdict(dict)
        for name, labels, value in samples:
            if not math.isnan(value):
                self._series[name][labels] = value

    @staticmethod
    def of_page(text: bytes) -> tuple[Samples, Page]:
        """The samples of a page in Prometheus' text format."""
        page = parse_page(text, _WANTED.__contains__)
        return Samples(page.samples), page

    def has(self, name: str) -> bool:
        """Whether there is a series of a metric."""
        return bool(self._series.get(name) or self._series.get(f"{name}_count"))

    def value(self, name: str) -> float | None:
        """The sum of all series of a metric; None if there are none."""
        series = self._series.get(name)
        return _sum(series.values()) if series else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Sums by the value of a label."""
        sums: dict[str, float] = {}
        for labels, value in self._series.get(name, {}).items():
            key = dict(labels).get(label, "")
            sums[key] = _sum((sums.get(key, 0.0), value))
        return sums

    def by_labels(self, name: str, *wanted: str) -> dict[tuple[str, ...], float]:
        """Sums by the values of several labels."""
        sums: dict[tuple[str, ...], float] = {}
        for labels, value in self._series.get(name, {}).items():
            given = dict(labels)
            key = tuple(given.get(label, "") for label in wanted)
            sums[key] = _sum((sums.get(key, 0.0), value))
        return sums

    def distribution(self, name: str) -> Distribution | None:
        """A histogram, over all of its labels; None if nothing was observed."""
        return self.distributions(name, "").get("")

    def distributions(self, name: str, label: str) -> dict[str, Distribution]:
        """Histograms by the value of a label; without those of which nothing was observed."""
        buckets: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for labels, value in self._series.get(f"{name}_bucket", {}).items():
            given = dict(labels)
            bound = _number(given.get("le", ""))
            if 0 <= bound < _LARGEST and 0 <= value < _LARGEST:
                buckets[given.get(label, "")][bound] += value
        totals, counts = self.by_label(f"{name}_sum", label), self.by_label(f"{name}_count", label)
        return {
            key: Distribution(tuple(sorted(buckets[key].items())), count, totals.get(key, 0.0))
            for key, count in counts.items()
            if 0 < count < _LARGEST
        }

    def since(self, before: Samples, seconds: float) -> Samples:
        """What was added in the seconds since another page; gauges are as they are now."""
        is_same = self.value(names.STARTED) == before.value(names.STARTED)
        added: list[Sample] = []
        for name, series in self._series.items():
            earlier = before._series.get(name, {}) if is_same and name in _GROWING else {}
            added += [
                Sample(name, labels, _growth(earlier.get(labels), now)) for labels, now in series.items()
            ]
        return Samples(added, seconds)


def _growth(before: float | None, now: float) -> float:
    """How much a counter grew; one that shrank began anew."""
    return now if before is None or now < before or math.isinf(now) else now - before


def _sum(values: Iterable[float]) -> float:
    total = sum(values)
    return 0.0 if math.isnan(total) else total  # +Inf and -Inf together


def _number(text: str) -> float:
    try:
        return float(text[:40])
    except ValueError:
        return math.nan
