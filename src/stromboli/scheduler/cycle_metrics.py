"""Fills the metrics after a cycle from what it decided; a cycle without changes costs next to nothing."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache

from stromboli.daemon.metric_types import forget
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.failing_plugins import Culprit
from stromboli.engine.plugin_failures import UNREPORTED
from stromboli.model.job import Job
from stromboli.scheduler.card_metrics import CardMetrics
from stromboli.scheduler.job_metrics import JobMetrics
from stromboli.scheduler.queue_metrics import QueueMetrics
from stromboli.scheduler.scheduler_metrics import Metrics
from stromboli.scheduler.topology_metrics import TopologyMetrics
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder

MS = 1000.0
YOUNG_SECONDS = 300.0
"""How long after its start the eviction of a pod counts as churn."""
_PREEMPTING = ("preempt", "gangpreempt")
_EVICTING = frozenset({*_PREEMPTING, "reclaim", "gangreclaim", "consolidate", "shuffle"})


class CycleMetrics:
    """Observes cycles in the cycle's thread, and writes on the event loop."""

    def __init__(self, metrics: Metrics, wall: Callable[[], float] = time.time):
        self.metrics = metrics
        self._wall = wall
        self._queues = QueueMetrics(metrics, wall)
        self._jobs = JobMetrics(metrics)
        self._set_aside: set[Culprit] = set()
        self._latency, self._requests = cache(metrics.task.labels), cache(metrics.requests.labels)
        """Series that every bind and every request looks up, which takes the library long."""
        self._topology = TopologyMetrics(metrics, wall)
        self._cards = CardMetrics(metrics)

    def cycle(self, outcome: Outcome) -> None:
        """A cycle ended."""
        with self.metrics.guard("cycle metrics"):
            self._observe(outcome)

    def _observe(self, outcome: Outcome) -> None:
        metrics, session = self.metrics, outcome.session
        metrics.cycle.observe(sum(outcome.seconds.values()) * MS)
        for part, seconds in outcome.seconds.items():
            if part == "open":
                metrics.open.observe(seconds * MS)
            elif part != "close":
                metrics.action.labels(part).observe(seconds * MS)
                if part in _EVICTING:
                    metrics.young_evictions.labels(part)  # counts from 0, so that a rise from nothing shows
        for (plugin, when), seconds in outcome.plugins.items():
            metrics.plugin.labels(plugin, when).observe(seconds * MS)
        self._update_set_aside(set(outcome.set_aside))
        if outcome.lost:
            metrics.lost.inc()
            return
        metrics.stage.observe("Predicate", *(seconds * MS for seconds in outcome.filtering))
        metrics.stage.observe("Scoring", *(seconds * MS for seconds in outcome.scoring))
        for failure in session.failures:
            if failure.point == UNREPORTED:
                metrics.guard.count(UNREPORTED)
        with metrics.guard("decision metrics"):
            self._count_decisions(outcome)
        if session.changed or outcome.decisions:
            with metrics.guard("job metrics"):
                self._jobs.update(session)
        with metrics.guard("queue metrics"):
            self._queues.update(session, bool(session.changed or outcome.decisions))
        with metrics.guard("card metrics"):
            self._cards.update(session.cluster)
        with metrics.guard("topology metrics"):
            self._topology.update(session.cluster)

    def _update_set_aside(self, now: set[Culprit]) -> None:
        for culprit in self._set_aside - now:
            forget(self.metrics.set_aside, *culprit)
        for culprit in now - self._set_aside:
            self.metrics.set_aside.labels(*culprit).set(1)
        self._set_aside = now

    # -- decisions

    def _count_decisions(self, outcome: Outcome) -> None:
        now, metrics, cluster = self._wall(), self.metrics, outcome.session.cluster
        kinds = Counter(type(decision).__name__ for decision in outcome.decisions)
        for kind, count in kinds.items():
            metrics.decisions.labels(kind).inc(count)
        tried = {} if outcome.repeated else outcome.session.attempts.verdicts
        refused = sum(len(verdicts) for verdicts in tried.values())
        for result, count in (("scheduled", kinds[Bind.__name__]), ("unschedulable", refused)):
            if count:
                metrics.attempts.labels(result).inc(count)
        bound: dict[Job, None] = {}
        batches: dict[tuple[str, str], int] = defaultdict(int)
        for decision in outcome.decisions:
            if isinstance(decision, Bind):
                task = cluster.tasks.get(decision.uid)
                if task is not None and task.job is not None:
                    metrics.task.labels("Assumed").observe(max(now - task.created, 0.0) * MS)
                    bound[task.job] = None
            elif isinstance(decision, Evict):
                batches[decision.action, decision.beneficiary] += 1
                task = cluster.tasks.get(decision.uid)
                if task is not None and now - task.running_since < YOUNG_SECONDS:
                    metrics.young_evictions.labels(decision.action).inc()
        for (action, _), victims in batches.items():
            metrics.evictions.labels(action).inc()
            if action in _PREEMPTING:
                metrics.preemptions.inc()
                metrics.victims.set(victims)
        for job in bound:
            taken = max(now - job.created, 0.0) * MS
            labels = self._jobs.labels(job)
            metrics.job.observe(taken)
            metrics.job_duration.labels(*labels).set(taken)
            metrics.job_last.labels(*labels).set(now)

    # -- writes and requests

    def written(self, order: WriteOrder, seconds: float) -> None:
        """An order was executed, so many seconds after it was first tried."""
        with self.metrics.guard("write metrics"):
            if isinstance(order.decision, Bind):
                self.metrics.stage.observe("Bind", seconds * MS)
                if order.created:
                    self._latency("Bound").observe(max(self._wall() - order.created, 0.0) * MS)

    def prebound(self, order: WriteOrder, seconds: float) -> None:
        """What a bind needs was written and came true, so many seconds after it was begun."""
        with self.metrics.guard("write metrics"):
            self.metrics.stage.observe("PreBind", seconds * MS)
            if order.created:
                self._latency("PreBound").observe(max(self._wall() - order.created, 0.0) * MS)

    def write_failed(self, failure: WriteFailure) -> None:
        with self.metrics.guard("write metrics"):
            self.metrics.failures.labels(type(failure.decision).__name__).inc()
            if isinstance(failure.decision, Bind):
                self.metrics.attempts.labels("error").inc()

    def pod_arrived(self, created: float) -> None:
        """A pod without a node was first seen; in the cycle's thread."""
        with self.metrics.guard("pod metrics"):
            self._latency("Watched").observe(max(self._wall() - created, 0.0) * MS)

    def request_sent(self, host: str, method: str, status: str) -> None:
        with self.metrics.guard("request metrics"):
            self._requests(status, method, host).inc()
