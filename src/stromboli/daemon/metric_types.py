"""What the metrics of scheduler and controllers have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

PREFIX = "volcano_"
OWN_PREFIX = "stromboli_"


def exponential(first: float, last: float, count: int) -> list[float]:
    """So many bounds from first to last, each the same factor above the one before."""
    return [first * (last / first) ** (step / (count - 1)) for step in range(count)]


class ExactCounter(Collector):
    """A counter whose name does not end in `_total`, as some of Volcano's do not."""

    def __init__(
        self, name: str, documentation: str, labelnames: Sequence[str] = (), *, registry: CollectorRegistry
    ):
        self.name = name
        self._values = Gauge(name, documentation, labelnames, registry=None)
        registry.register(self)

    def labels(self, *values: str) -> Gauge:
        return self._values.labels(*values)

    def inc(self) -> None:
        self._values.inc()

    def remove(self, *values: str) -> None:
        self._values.remove(*values)

    def collect(self) -> Iterable[Metric]:
        for family in self._values.collect():
            family.type = "counter"
            yield family


def exposition(registry: CollectorRegistry, *exact: ExactCounter) -> bytes:
    """All metrics in Prometheus' text format; in HELP and TYPE the library adds `_total` to the name of any counter."""
    text = generate_latest(registry)
    for counter in exact:
        text = text.replace(f" {counter.name}_total ".encode(), f" {counter.name} ".encode())
    return text


def forget(metric: ExactCounter | MetricWrapperBase, *labels: str) -> None:
    """Take a label set out, if it is there."""
    with suppress(KeyError):
        metric.remove(*labels)
