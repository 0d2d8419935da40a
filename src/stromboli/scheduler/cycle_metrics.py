"""Fills the metrics after a cycle from what it decided; a cycle without changes costs next to nothing."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from prometheus_client import Gauge

from stromboli.api import card_names
from stromboli.daemon.metric_types import forget
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.failing_plugins import Culprit
from stromboli.engine.plugin_failures import UNREPORTED
from stromboli.engine.session import Session
from stromboli.model.amounts import dominant_share
from stromboli.model.cards.card_ledger import CardLedger
from stromboli.model.cards.node_cards import NodeCards
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job, JobId
from stromboli.model.topology.tier_occupancy import GPUS, NODES, TierOccupancies, TierOccupancy
from stromboli.scheduler.queue_metrics import QueueMetrics
from stromboli.scheduler.scheduler_metrics import Metrics
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder

MS = 1000.0
YOUNG_SECONDS = 300.0
"""How long after its start the eviction of a pod counts as churn."""


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
        evicting = {action.name for action in session.actions if action.evicts_by}
        for part, seconds in outcome.seconds.items():
            if part == "open":
                metrics.open.observe(seconds * MS)
            elif part != "close":
                metrics.action.labels(part).observe(seconds * MS)
                if part in evicting:
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
        preempting = {action.name for action in outcome.session.actions if action.preempts}
        for (action, _), victims in batches.items():
            metrics.evictions.labels(action).inc()
            if action in preempting:
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


# -- jobs: only those that changed are updated


class JobSeries(NamedTuple):
    """Series of a job that are set whenever it changes."""

    start: Gauge
    share: Gauge
    missing: Gauge


class JobMetrics:
    """When jobs were created, their shares, and how many members they lack."""

    def __init__(self, metrics: Metrics):
        self.metrics = metrics
        self._labels: dict[JobId, tuple[str, str, str]] = {}
        """The labels of the jobs that have series."""
        self._name_counts: Counter[str] = Counter()
        """How many of these share a name, for the series that have no namespace."""
        self._series: dict[JobId, JobSeries] = {}
        self._short: dict[Job, None] = {}
        """Jobs that lack members which must be ready for them to start."""

    def update(self, session: Session) -> None:
        """A cycle ended."""
        cluster, metrics, changed = session.cluster, self.metrics, session.changed
        everything = changed.everything
        if everything:
            jobs = {**self._short, **dict.fromkeys(cluster.jobs.values())}
        else:
            jobs = {**changed.jobs, **cluster.dirty.jobs}
        for job in jobs:
            self._count_short(job, cluster.jobs.get(job.id) is job)
            if cluster.jobs.get(job.id) is not job or job.group is None:
                self._forget(job.id)
                continue
            with metrics.guard("job metrics"):
                series = self._series_of(job)
                series.start.set(job.created)
                series.share.set(dominant_share(job.held, session.total))
                series.missing.set(_missing_members(job))
        if everything:
            for id in [id for id in self._labels if id not in cluster.jobs]:
                self._forget(id)
        metrics.short_jobs.set(len(self._short))
        metrics.retries.count_cycle()

    def _count_short(self, job: Job, exists: bool) -> None:
        """Note whether a job lacks members; a job without pods waits for its controller."""
        if exists and job.visible and job.tasks and _missing_members(job):
            if job not in self._short:
                self._short[job] = None
                self.metrics.retries.shift(job.name, 1)
        elif job in self._short:
            del self._short[job]
            self.metrics.retries.shift(job.name, -1)

    def _series_of(self, job: Job) -> JobSeries:
        """The series that are set whenever a job changes; looking them up by their labels takes the library long."""
        metrics, labels = self.metrics, self.labels(job)
        series = self._series.get(job.id)
        if series is None:
            series = self._series[job.id] = JobSeries(
                metrics.job_start.labels(*labels),
                metrics.job_share.labels(job.namespace, job.name),
                metrics.short_tasks.labels(job.name),
            )
        return series

    def labels(self, job: Job) -> tuple[str, str, str]:
        """The labels of a job's series; those that it had before are forgotten."""
        labels = (job.name, job.queue.name if job.queue else "", job.namespace)
        before = self._labels.get(job.id)
        if before == labels:
            return labels
        if before is not None:
            self._forget(job.id)
        self._labels[job.id] = labels
        self._name_counts[job.name] += 1
        return labels

    def _forget(self, id: JobId) -> None:
        labels = self._labels.pop(id, None)
        if labels is None:
            return
        self._series.pop(id, None)
        metrics = self.metrics
        for metric in (metrics.job_duration, metrics.job_start, metrics.job_last):
            forget(metric, *labels)
        forget(metrics.job_share, id.namespace, id.name)
        self._name_counts[id.name] -= 1
        if not self._name_counts[id.name]:
            del self._name_counts[id.name]
            forget(metrics.short_tasks, id.name)
            metrics.retries.remove(id.name)


def _missing_members(job: Job) -> int:
    return max(job.minimum - job.ready_count - job.pending_best_effort, 0)


# -- shared cards: what is allocated of each, and what each pod has of it


CardSeries = tuple[str, tuple[str, ...]]
"""A gauge and its labels."""


class CardMetrics:
    """A series for each card and for each pod on it; they go with the card, or with the pod."""

    def __init__(self, metrics: Metrics):
        self._gauges: dict[str, Gauge] = {
            "sharers": metrics.card_sharers,
            "memory": metrics.card_memory,
            "cores": metrics.card_cores,
            "size": metrics.card_size,
            "pod memory": metrics.pod_card_memory,
            "pod cores": metrics.pod_card_cores,
        }
        self._shown: dict[str, dict[CardSeries, float]] = {}
        """By node."""
        self._ledger: CardLedger | None = None
        self._version = 0

    def update(self, cluster: Cluster) -> None:
        """A cycle ended. Only nodes whose cards changed are looked at."""
        ledger = cluster.cards
        changed = ledger.changes.since(self._version) if ledger is self._ledger else None
        self._ledger, self._version = ledger, ledger.changes.position
        for node in {*ledger.nodes, *self._shown} if changed is None else changed:
            cards = ledger.nodes.get(node, {}).get(card_names.VGPU)
            self._show(node, dict(_card_values(node, cards)) if cards is not None else {})

    def _show(self, node: str, values: dict[CardSeries, float]) -> None:
        before = self._shown.pop(node, {})
        for series in before.keys() - values.keys():
            forget(self._gauges[series[0]], *series[1])
        for series, value in values.items():
            if before.get(series) != value:
                self._gauges[series[0]].labels(*series[1]).set(value)
        if values:
            self._shown[node] = values


def _card_values(node: str, cards: NodeCards) -> Iterator[tuple[CardSeries, float]]:
    taken = cards.now
    for card in cards.cards:
        labels = (card.uuid, node)
        yield ("size", labels), card.memory
        yield ("sharers", labels), taken.sharers[card.index]
        yield ("memory", labels), taken.memory[card.index]
        yield ("cores", labels), taken.cores[card.index]
    of_pods: dict[CardSeries, float] = defaultdict(float)
    for task in cards.tasks:
        for share in cards.shares_of(task):
            of_pod = (cards.cards[share.card].uuid, node, task.name)
            of_pods["pod memory", of_pod] += share.memory
            of_pods["pod cores", of_pod] += share.cores
    yield from of_pods.items()


# -- tiers of HyperNodes: how full they are, and the largest gang that would still fit


PAUSE = 5.0
"""Seconds between two looks at a cluster that changes all the time."""


TierSeries = tuple[str, str, str]
"""A gauge, a tier, and a state, resource or unit."""


class TopologyMetrics:
    """A series for each tier, not for each HyperNode; they go with their tier."""

    def __init__(self, metrics: Metrics, wall: Callable[[], float]):
        self._wall = wall
        self._looked = float("-inf")
        self._occupancies: TierOccupancies | None = None
        self._tiers: list[TierOccupancy] = []
        """What is shown."""
        self._shown: dict[TierSeries, float] = {}
        self._left_out = metrics.left_out
        self._gauges = {
            "hyper_nodes": metrics.tier_hyper_nodes,
            "occupancy": metrics.tier_occupancy,
            "largest_gang": metrics.largest_gang,
            "fragmentation": metrics.fragmentation,
        }

    def update(self, cluster: Cluster) -> None:
        """A cycle ended. Without HyperNodes, or if nothing changed, this costs nothing."""
        now, tree = self._wall(), cluster.hyper_nodes
        self._left_out.set(len(tree.problems))
        if (not tree and not self._shown) or abs(now - self._looked) < PAUSE:
            return
        self._looked = now
        if self._occupancies is None or self._occupancies.cluster is not cluster:
            self._occupancies = TierOccupancies(cluster)
        tiers = self._occupancies.current()
        if tiers is not self._tiers:
            self._tiers = tiers
            self._show({series: value for tier in tiers for series, value in _tier_values(tier)})

    def _show(self, values: dict[TierSeries, float]) -> None:
        for (gauge, *labels), value in values.items():
            self._gauges[gauge].labels(*labels).set(value)
        for gauge, *labels in self._shown.keys() - values.keys():
            forget(self._gauges[gauge], *labels)
        self._shown = values


def _tier_values(tier: TierOccupancy) -> Iterator[tuple[TierSeries, float]]:
    label = str(tier.tier)
    for state, count in (("free", tier.free), ("partly_free", tier.partly_free), ("full", tier.full)):
        yield ("hyper_nodes", label, state), count
    for resource, room in tier.rooms.items():
        yield ("occupancy", label, resource), room.occupancy
        if resource in (NODES, GPUS):
            yield ("largest_gang", label, resource), room.largest
            yield ("fragmentation", label, resource), room.fragmentation
