"""The metrics of a scheduler: Volcano's names, labels and buckets (spec 05 13), and a few of its own.

A metric is declared in the class that observes it. After a cycle without changes, an update costs next to nothing.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from stromboli.daemon.metric_types import OWN_PREFIX, PREFIX, MetricSet, exponential, forget
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.failing_plugins import Culprit
from stromboli.engine.plugin_failures import UNREPORTED
from stromboli.model.job import Job
from stromboli.scheduler.job_metrics import MS, JobMetrics
from stromboli.scheduler.node_metrics import CardMetrics, TopologyMetrics
from stromboli.scheduler.queue_metrics import QueueMetrics
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder

if TYPE_CHECKING:
    from stromboli.scheduler.introspection import Introspection

Counts = NDArray[np.int64]
YOUNG_SECONDS = 300.0
"""How long after its start the eviction of a pod counts as churn."""


class SchedulerMetrics(MetricSet):
    """All metrics of a scheduler. Cycles are observed in the cycle's thread, writes and requests on the event loop."""

    def __init__(self, wall: Callable[[], float] = time.time):
        super().__init__()
        self._wall = wall
        self._declare_cycles()
        self._declare_decisions()
        self._declare_writes()
        self._jobs = JobMetrics(self)
        self._queues = QueueMetrics(self, wall)
        self._cards = CardMetrics(self)
        self._topology = TopologyMetrics(self, wall)
        for name in ("namespace_share", "namespace_weight", "namespace_weighted_share"):
            self.gauge(name, "Declared for dashboards, never set, as in Volcano", ("namespace_name",))
        self._declare_process()
        ProcessCollector(registry=self.registry)

    # -- cycles

    def _declare_cycles(self) -> None:
        ms, own = exponential(1, 5000, 20), OWN_PREFIX
        self._cycles = self.histogram("e2e_scheduling_latency_milliseconds", "A whole cycle", ms)
        self._opening = self.histogram("open_session_duration_milliseconds", "Opening a session", ms)
        self._plugin_time = self.histogram(
            "plugin_scheduling_latency_milliseconds",
            "A plugin opening or closing a session",
            exponential(0.1, 100, 15),
            ("plugin", "OnSession"),
        )
        self._actions = self.histogram(
            "action_scheduling_latency_milliseconds", "An action", exponential(1, 2000, 20), ("action",)
        )
        self._stages = StageHistogram(
            PREFIX + "scheduling_stage_duration_milliseconds",
            "A stage, task by task",
            exponential(0.1, 500, 20),
            self.registry,
        )
        self._lost = self.counter("lost_cycles_total", "Cycles that came to nothing", (), own)
        plugin = ("plugin", "point")
        self._set_aside = self.gauge(
            "plugin_set_aside", "1 for an order or a score that failed for all jobs", plugin, own
        )
        self._shown_set_aside: set[Culprit] = set()
        self._plugin_running = self.gauge(
            "plugin_running_seconds", "A call of a plugin that has not returned for long", plugin, own
        )
        self._slow_calls = self.counter(
            "slow_plugin_calls_total", "Calls of plugins that did not return for long", plugin, own
        )

    def cycle(self, outcome: Outcome) -> None:
        """A cycle ended."""
        with self.guard("cycle metrics"):
            self._observe(outcome)

    def _observe(self, outcome: Outcome) -> None:
        session = outcome.session
        self._observe_durations(outcome)
        self._update_set_aside(set(outcome.set_aside))
        if outcome.lost:
            self._lost.inc()
            return
        self._stages.observe("Predicate", *(seconds * MS for seconds in outcome.filtering))
        self._stages.observe("Scoring", *(seconds * MS for seconds in outcome.scoring))
        for failure in session.failures:
            if failure.point == UNREPORTED:
                self.guard.count(UNREPORTED)
        with self.guard("decision metrics"):
            self._count_decisions(outcome)
        changed = bool(session.changed or outcome.decisions)
        if changed:
            with self.guard("job metrics"):
                self._jobs.update(session)
        with self.guard("queue metrics"):
            self._queues.update(session, changed)
        with self.guard("card metrics"):
            self._cards.update(session.cluster)
        with self.guard("topology metrics"):
            self._topology.update(session.cluster)

    def _observe_durations(self, outcome: Outcome) -> None:
        self._cycles.observe(sum(outcome.seconds.values()) * MS)
        evicting = {action.name for action in outcome.session.actions if action.evicts_by}
        for part, seconds in outcome.seconds.items():
            if part == "open":
                self._opening.observe(seconds * MS)
            elif part != "close":
                self._actions.labels(part).observe(seconds * MS)
                if part in evicting:
                    self._young_evictions.labels(part)  # counts from 0, so that a rise from nothing shows
        for (plugin, when), seconds in outcome.plugins.items():
            self._plugin_time.labels(plugin, when).observe(seconds * MS)

    def _update_set_aside(self, now: set[Culprit]) -> None:
        for culprit in self._shown_set_aside - now:
            forget(self._set_aside, *culprit)
        for culprit in now - self._shown_set_aside:
            self._set_aside.labels(*culprit).set(1)
        self._shown_set_aside = now

    def slow_call(self, plugin: str, point: str, seconds: float, first: bool) -> None:
        """A call of a plugin has not returned for so long; `first`: it was not observed before."""
        self._plugin_running.labels(plugin, point).set(seconds)
        if first:
            self._slow_calls.labels(plugin, point).inc()

    def slow_call_returned(self, plugin: str, point: str) -> None:
        forget(self._plugin_running, plugin, point)

    # -- decisions

    def _declare_decisions(self) -> None:
        own = OWN_PREFIX
        self._decisions = self.counter("decisions_total", "Decisions, by kind", ("decision",), own)
        self._attempts = self.counter("schedule_attempts_total", "Tasks tried, by result", ("result",))
        self._victims = self.gauge("pod_preemption_victims", "Victims of the last preemption")
        self._preemptions = self.counter("total_preemption_attempts", "Preemptions tried")
        self._evictions = self.counter("eviction_transactions_total", "Batches of evictions", ("action",))
        self._young_evictions = self.counter(
            "young_evictions_total",
            "Pods evicted within five minutes of their start, by action",
            ("action",),
            own,
        )

    def _count_decisions(self, outcome: Outcome) -> None:
        now, cluster = self._wall(), outcome.session.cluster
        kinds = Counter(type(decision).__name__ for decision in outcome.decisions)
        for kind, count in kinds.items():
            self._decisions.labels(kind).inc(count)
        tried = {} if outcome.repeated else outcome.session.attempts.verdicts
        refused = sum(len(verdicts) for verdicts in tried.values())
        for result, count in (("scheduled", kinds[Bind.__name__]), ("unschedulable", refused)):
            if count:
                self._attempts.labels(result).inc(count)
        bound: dict[Job, None] = {}
        batches: dict[tuple[str, str], int] = defaultdict(int)
        for decision in outcome.decisions:
            if isinstance(decision, Bind):
                task = cluster.tasks.get(decision.uid)
                if task is not None and task.job is not None:
                    self._latency("Assumed").observe(max(now - task.created, 0.0) * MS)
                    bound[task.job] = None
            elif isinstance(decision, Evict):
                batches[decision.action, decision.beneficiary] += 1
                task = cluster.tasks.get(decision.uid)
                if task is not None and now - task.running_since < YOUNG_SECONDS:
                    self._young_evictions.labels(decision.action).inc()
        preempting = {action.name for action in outcome.session.actions if action.preempts}
        for (action, _), victims in batches.items():
            self._evictions.labels(action).inc()
            if action in preempting:
                self._preemptions.inc()
                self._victims.set(victims)
        for job in bound:
            self._jobs.placed(job, now)

    # -- writes and requests

    def _declare_writes(self) -> None:
        tasks = self.histogram(
            "task_scheduling_latency_milliseconds",
            "From the creation of a pod to a stage",
            exponential(50, 60_000, 30),
            ("stage",),
        )
        requests = self.counter(
            "rest_client_requests_total", "Requests by answer", ("code", "method", "host"), prefix=""
        )
        self._latency, self._requests = cache(tasks.labels), cache(requests.labels)
        """Series that every bind and every request looks up, which takes the library long."""
        self._failures = self.counter(
            "write_failures_total", "Binds and evictions that failed", ("decision",), OWN_PREFIX
        )

    def pod_arrived(self, created: float) -> None:
        """A pod without a node was first seen; in the cycle's thread."""
        with self.guard("pod metrics"):
            self._observe_latency("Watched", created)

    def prebound(self, order: WriteOrder, seconds: float) -> None:
        """What a bind needs was written and came true, so many seconds after it was begun."""
        with self.guard("write metrics"):
            self._observe_stage("PreBind", "PreBound", order, seconds)

    def written(self, order: WriteOrder, seconds: float) -> None:
        """An order was executed, so many seconds after it was first tried."""
        with self.guard("write metrics"):
            if isinstance(order.decision, Bind):
                self._observe_stage("Bind", "Bound", order, seconds)

    def _observe_stage(self, stage: str, end: str, order: WriteOrder, seconds: float) -> None:
        self._stages.observe(stage, seconds * MS)
        if order.created:
            self._observe_latency(end, order.created)

    def _observe_latency(self, stage: str, created: float) -> None:
        self._latency(stage).observe(max(self._wall() - created, 0.0) * MS)

    def write_failed(self, failure: WriteFailure) -> None:
        with self.guard("write metrics"):
            self._failures.labels(type(failure.decision).__name__).inc()
            if isinstance(failure.decision, Bind):
                self._attempts.labels("error").inc()

    def request_sent(self, host: str, method: str, status: str) -> None:
        with self.guard("request metrics"):
            self._requests(status, method, host).inc()

    # -- the process

    def _declare_process(self) -> None:
        self._process: list[tuple[Gauge, Callable[[Introspection], float]]] = []
        """Gauges, and their values by what the process shows of itself."""

        def add(name: str, text: str, value: Callable[[Introspection], float]) -> None:
            self._process.append((self.gauge(name, text, (), OWN_PREFIX), value))

        add("leader", "1 if this one leads", lambda process: process.leads)
        add(
            "mirror_lag_seconds",
            "Age of the oldest unapplied change",
            lambda process: process.replica.seam.changes.age,
        )
        add(
            "waiting_writes",
            "Objects with something to be written",
            lambda process: len(process.replica.writer),
        )
        add(
            "waiting_binds",
            "Binds that wait for volumes, devices or others of their gang",
            lambda process: len(process.replica.writer.prebinder.awaited),
        )
        add(
            "dropped_events",
            "Events left out because there were too many",
            lambda process: process.replica.writer.dropped_events,
        )

    def observe_process(self, process: Introspection) -> None:
        """The page is about to be shown."""
        with self.guard("process metrics"):
            for gauge, value in self._process:
                gauge.set(value(process))


class StageHistogram(Collector):
    """Durations by stage, many at once: they are measured task by task. From any thread."""

    def __init__(self, name: str, documentation: str, buckets: Sequence[float], registry: CollectorRegistry):
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(buckets)
        self._stages: dict[str, tuple[Counts, float]] = {}
        """How many values each bucket has, the last one those beyond all bounds, and their sum."""
        self._lock = Lock()
        registry.register(self)

    def observe(self, stage: str, *values: float) -> None:
        if len(values) == 1:
            self._observe_one(stage, values[0])
        elif values:
            places = np.searchsorted(self._bounds, values)
            self._add(stage, np.bincount(places, minlength=len(self._bounds) + 1), sum(values))

    def _observe_one(self, stage: str, value: float) -> None:
        place = bisect_left(self._bounds, value)
        with self._lock:
            entry = self._stages.get(stage)
            if entry is not None:
                entry[0][place] += 1
                self._stages[stage] = entry[0], entry[1] + value
                return
        self._add(stage, np.bincount([place], minlength=len(self._bounds) + 1), value)

    def _add(self, stage: str, added: Counts, total: float) -> None:
        with self._lock:
            before = self._stages.get(stage)
            self._stages[stage] = (added, total) if before is None else (before[0] + added, before[1] + total)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=("stage",))
        names = [floatToGoString(bound) for bound in (*self._bounds, math.inf)]  # type: ignore[no-untyped-call]
        with self._lock:
            stages = {
                stage: (np.cumsum(counts).tolist(), total) for stage, (counts, total) in self._stages.items()
            }
        for stage, (counts, total) in stages.items():
            family.add_metric((stage,), list(zip(names, counts, strict=True)), total)
        yield family
