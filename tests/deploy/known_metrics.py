"""All metrics of scheduler and controllers with their labels, as their pages show them after real cycles."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from prometheus_client.metrics import MetricWrapperBase

from stromboli.cli.metrics import metric_names
from stromboli.cli.metrics.prometheus_text import parse_page
from stromboli.controllers.controller_metrics import Metrics as ControllerMetrics
from stromboli.daemon.metric_types import MetricSet
from stromboli.engine.decisions import Bind, Evict
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder
from stromboli.testing import World
from tests.deploy.promql import KnownMetric
from tests.manifests import hyper_node, policy

CLOSED = ("decision", "result", "stage", "state", "unit", "action")
"""Labels of which a story shows the values."""
_UNKNOWN = "any"
_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.M)


@cache
def known_metrics() -> dict[str, KnownMetric]:
    scheduler = _observed()
    values = _label_values(scheduler.text())
    return _known(scheduler, values) | _known(ControllerMetrics(), values)


def _observed() -> SchedulerMetrics:
    """A gang that fits nowhere, an urgent job that evicts, HyperNodes, and writes that fail."""
    world = World(
        "a cpu=2,nvidia.com/gpu=1; b cpu=2",
        "research capability=cpu:1,nvidia.com/gpu:1",
        policy=policy(
            "enqueue, allocate, preempt", "priority gang conformance | predicates proportion nodeorder"
        ),
    )
    observed = SchedulerMetrics(world.rehearsal.now)
    world.add(hyper_node("r1", 1, nodes=["a", "b"]))
    world.job(
        "lesser",
        pods=4,
        minimum=1,
        cpu=1,
        running_on=["a", "a", "b", "b"],
        annotations={"volcano.sh/preemptable": "true"},
    )
    world.job("urgent", cpu=1, priority=9)
    world.job("large", pods=9, cpu=2)
    for _ in range(3):
        observed.cycle(world.step().outcome)
    bind = Bind("ns", "p", "u", "a", "ns/j")
    observed.prebound(WriteOrder(bind, created=1), 0.5)
    observed.written(WriteOrder(bind, created=1), 0.01)
    observed.pod_arrived(1)
    observed.write_failed(WriteFailure(bind, "no"))
    observed.write_failed(WriteFailure(Evict("ns", "p", "u", "a", "ns/j", "preempt"), "no"))
    return observed


def _label_values(page: bytes) -> dict[tuple[str, str], set[str]]:
    """By metric and label."""
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for sample in parse_page(page, lambda name: True).samples:
        for label, value in sample.labels:
            values[sample.name, label].add(value)
    return values


def _known(metrics: MetricSet, values: dict[tuple[str, str], set[str]]) -> dict[str, KnownMetric]:
    for collector in metrics.registry.collectors:
        if isinstance(collector, MetricWrapperBase) and (labels := collector._labelnames):
            collector.labels(*[_UNKNOWN] * len(labels))
    page = metrics.text()
    types = dict(_TYPE.findall(page.decode()))
    known: dict[str, KnownMetric] = {}
    for sample in parse_page(page, lambda name: True).samples:
        family = re.sub(r"_(bucket|sum|count)$", "", sample.name)
        told = {
            label: frozenset(values[sample.name, label])
            for label, _ in sample.labels
            if label in CLOSED and values.get((sample.name, label))
        }
        known[sample.name] = KnownMetric(
            frozenset(label for label, _ in sample.labels),
            types.get(sample.name) == "counter"
            or types.get(family) == "histogram"
            or sample.name in metric_names.COUNTERS,
            told,
        )
    return known
