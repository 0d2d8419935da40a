"""Series of jobs, after a cycle: only jobs that changed are looked at."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from prometheus_client import Gauge

from stromboli.daemon.metric_types import forget
from stromboli.engine.session import Session
from stromboli.model.amounts import dominant_share
from stromboli.model.job import Job, JobId
from stromboli.scheduler.scheduler_metrics import Metrics


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
