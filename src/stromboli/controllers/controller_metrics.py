"""The metrics of controllers: Volcano's (spec 06 13), and a few of our own."""

from __future__ import annotations

from prometheus_client import Histogram

from stromboli.daemon.metric_types import OWN_PREFIX, MetricSet, exponential, forget

JOB = ("job_name", "queue_name")
GROUP_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


class Metrics(MetricSet):
    """All metrics of controllers."""

    def __init__(self) -> None:
        super().__init__()
        self.completed_jobs = self._counter("job_completed_phase_count", "Jobs that became Completed", JOB)
        self.failed_jobs = self._counter("job_failed_phase_count", "Jobs that became Failed", JOB)
        self.pod_creation = self._histogram(
            "controller_job_to_pod_creation_latency_milliseconds",
            "From the creation of a job to that of each of its pods",
            exponential(50, 60_000, 30),
        )
        self.groups = {
            phase: self._gauge(
                f"queue_pod_group_{phase.lower()}_count",
                f"PodGroups of a queue that are {phase}",
                ("queue_name",),
            )
            for phase in GROUP_PHASES
        }
        namespace = ("jobflow_namespace",)
        self.succeeded_flows = self._counter(
            "jobflow_succeed_phase_count", "JobFlows that became Succeed", namespace
        )
        self.failed_flows = self._counter(
            "jobflow_failed_phase_count", "JobFlows that became Failed", namespace
        )
        self._add_own()

    def _add_own(self) -> None:
        own, controller = f"{OWN_PREFIX}controller_", ("controller",)
        self.sync = Histogram(
            f"{own}sync_seconds", "One object reconciled", controller, registry=self.registry
        )
        self.failures = self._counter("failures_total", "Syncs that failed", controller, own)
        self.waiting = self._gauge("waiting", "Objects that wait for a worker", controller, own)
        self.failing = self._gauge(
            "failing", "Objects that failed and are to be tried again", controller, own
        )
        self.writes = self._counter("writes_total", "Writes, but for events", ("verb", "resource"), own)
        self.objects = self._gauge("objects", "Objects in the stores", ("resource",), own)
        self.dropped_events = self._gauge(
            "dropped_events", "Events left out because there were too many", prefix=own
        )
        self.leader = self._gauge("leader", "1 if this one leads", prefix=OWN_PREFIX)

    def on_write(self, verb: str, resource: str) -> None:
        self.writes.labels(verb, resource).inc()

    def forget_queue(self, name: str) -> None:
        for gauge in self.groups.values():
            forget(gauge, name)
