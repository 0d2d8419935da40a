"""Metrics of jobs: when they were created and placed, their shares, and how many members they lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from stromboli.daemon.metric_types import PREFIX, MetricSet, exponential, forget
from stromboli.engine.session import Session
from stromboli.model.amounts import dominant_share
from stromboli.model.job import Job, JobId

MS = 1000.0
JOB = ("job_name", "queue", "job_namespace")


class JobSeries(NamedTuple):
    """Series of a job that are set whenever it changes."""

    start: Gauge
    share: Gauge
    missing: Gauge


class JobMetrics:
    """Series for each job, updated when it changes; they go with it."""

    def __init__(self, metrics: MetricSet):
        self._guard = metrics.guard
        self._latency = metrics.histogram(
            "e2e_job_scheduling_latency_milliseconds",
            "From the creation of a PodGroup to its binding",
            exponential(100, 120_000, 30),
        )
        self._duration = metrics.gauge("e2e_job_scheduling_duration", "The same for each job, in ms", JOB)
        self._start = metrics.gauge("e2e_job_scheduling_start_time", "When a PodGroup was created", JOB)
        self._last = metrics.gauge("e2e_job_scheduling_last_time", "When a job was last given room", JOB)
        self._share = metrics.gauge("job_share", "A job's dominant share", ("job_ns", "job_id"))
        self._short_tasks = metrics.gauge("unschedule_task_count", "Tasks short of minMember", ("job_id",))
        self._short_jobs = metrics.gauge("unschedule_job_count", "Jobs short of minMember")
        self._retries = CyclesLacking(
            f"{PREFIX}job_retry_counts", "Cycles in which a job was not ready", metrics.registry
        )
        metrics.bare_counters.append(f"{PREFIX}job_retry_counts")
        self._labels: dict[JobId, tuple[str, str, str]] = {}
        """The labels of the jobs that have series."""
        self._name_counts: Counter[str] = Counter()
        """How many of these share a name, for the series that have no namespace."""
        self._series: dict[JobId, JobSeries] = {}
        self._short: dict[Job, None] = {}
        """Jobs that lack members which must be ready for them to start."""

    def placed(self, job: Job, now: float) -> None:
        """Pods of a job were bound."""
        taken = max(now - job.created, 0.0) * MS
        labels = self._labels_of(job)
        self._latency.observe(taken)
        self._duration.labels(*labels).set(taken)
        self._last.labels(*labels).set(now)

    def update(self, session: Session) -> None:
        """A cycle ended."""
        cluster, changed = session.cluster, session.changed
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
            with self._guard("job metrics"):
                series = self._series_of(job)
                series.start.set(job.created)
                series.share.set(dominant_share(job.held, session.total))
                series.missing.set(_missing_members(job))
        if everything:
            for id in [id for id in self._labels if id not in cluster.jobs]:
                self._forget(id)
        self._short_jobs.set(len(self._short))
        self._retries.count_cycle()

    def _count_short(self, job: Job, exists: bool) -> None:
        """Note whether a job lacks members; a job without pods waits for its controller."""
        if exists and job.visible and job.tasks and _missing_members(job):
            if job not in self._short:
                self._short[job] = None
                self._retries.shift(job.name, 1)
        elif job in self._short:
            del self._short[job]
            self._retries.shift(job.name, -1)

    def _series_of(self, job: Job) -> JobSeries:
        """The series that are set whenever a job changes; looking them up by their labels takes the library long."""
        labels = self._labels_of(job)
        series = self._series.get(job.id)
        if series is None:
            series = self._series[job.id] = JobSeries(
                self._start.labels(*labels),
                self._share.labels(job.namespace, job.name),
                self._short_tasks.labels(job.name),
            )
        return series

    def _labels_of(self, job: Job) -> tuple[str, str, str]:
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
        for metric in (self._duration, self._start, self._last):
            forget(metric, *labels)
        forget(self._share, id.namespace, id.name)
        self._name_counts[id.name] -= 1
        if not self._name_counts[id.name]:
            del self._name_counts[id.name]
            forget(self._short_tasks, id.name)
            self._retries.remove(id.name)


def _missing_members(job: Job) -> int:
    return max(job.minimum - job.ready_count - job.pending_best_effort, 0)


class CyclesLacking(Collector):
    """In how many cycles jobs lacked members, by the name of the job: a cycle counts for all without a look at any."""

    def __init__(self, name: str, documentation: str, registry: CollectorRegistry):
        self._name = name
        self._documentation = documentation
        self._cycles = 0
        self._known: dict[str, tuple[int, int, int]] = {}
        """How many jobs of a name lack members, since which cycle, and what they had counted before."""
        self._lock = Lock()
        registry.register(self)

    def count_cycle(self) -> None:
        """A cycle counts for each job that lacks members now."""
        with self._lock:
            self._cycles += 1

    def shift(self, name: str, jobs: int) -> None:
        """So many jobs of a name more, or less, lack members from now on."""
        with self._lock:
            lacking, _, counted = known = self._known.get(name, (0, self._cycles, 0))
            self._known[name] = lacking + jobs, self._cycles, counted + self._since(known)

    def remove(self, name: str) -> None:
        """Forget what was counted for a name."""
        with self._lock:
            lacking, _, _ = self._known.pop(name, (0, 0, 0))
            if lacking:
                self._known[name] = lacking, self._cycles, 0

    def _since(self, known: tuple[int, int, int]) -> int:
        lacking, begin, _ = known
        return lacking * (self._cycles - begin)

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._documentation, labels=("job_id",))
        with self._lock:
            counts = {name: known[2] + self._since(known) for name, known in self._known.items()}
        for name, count in counts.items():
            family.add_metric((name,), count)
        yield family
