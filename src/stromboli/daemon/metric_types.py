"""What the metrics of scheduler and controllers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from stromboli.daemon.telemetry_guard import TelemetryGuard

PREFIX = "volcano_"
OWN_PREFIX = "stromboli_"


class Registry(CollectorRegistry):
    """A registry that can show its collectors one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        super().register(collector)
        self.collectors.append(collector)


class MetricSet:
    """Metrics in a registry of their own, each with the very name that it is given."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # Volcano shows none
        self.registry = Registry()
        self.bare_counters: list[str] = []
        """Counters whose names do not end in `_total`, as some of Volcano's do not; the library appends it."""
        failures = self.counter(
            "telemetry_failures_total",
            "Metrics, events, dumps and such that failed; the work went on",
            ("part",),
            OWN_PREFIX,
        )
        self.guard = TelemetryGuard(lambda part: failures.labels(part).inc())

    def text(self) -> bytes:
        """In Prometheus' text format; a metric that cannot be shown is left out."""
        pages = []
        for collector in self.registry.collectors:
            with self.guard("metrics page"):
                pages.append(generate_latest(collector))
        shown = b"".join(pages)
        for name in self.bare_counters:
            shown = shown.replace(f"{name}_total".encode(), name.encode())
        return shown

    def gauge(self, name: str, text: str, labels: Sequence[str] = (), prefix: str = PREFIX) -> Gauge:
        return Gauge(prefix + name, text, labels, registry=self.registry)

    def counter(self, name: str, text: str, labels: Sequence[str] = (), prefix: str = PREFIX) -> Counter:
        if not name.endswith("_total"):
            self.bare_counters.append(prefix + name)
        return Counter(prefix + name, text, labels, registry=self.registry)

    def histogram(
        self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        return Histogram(PREFIX + name, text, labels, registry=self.registry, buckets=buckets)


def exponential(first: float, last: float, count: int) -> list[float]:
    """So many bounds from first to last, each the same factor above the one before."""
    return [first * (last / first) ** (step / (count - 1)) for step in range(count)]


def forget(metric: MetricWrapperBase, *labels: str) -> None:
    """Remove a label set, if the metric has it."""
    with suppress(KeyError):
        metric.remove(*labels)
