"""The metrics of controllers: Volcano's (spec 06 13), and a few of our own."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import Histogram

from stromboli.daemon.metric_types import OWN_PREFIX, MetricSet, exponential, forget

JOB = ("job_name", "queue_name")
GROUP_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


class Metrics(MetricSet):
    """All metrics of controllers."""

    def __init__(self) -> None:
        super().__init__()
        self.ended_jobs = {
            phase: self.counter(f"job_{phase.lower()}_phase_count", f"Jobs that became {phase}", JOB)
            for phase in ("Completed", "Failed")
        }
        self.pod_creation = self.histogram(
            "controller_job_to_pod_creation_latency_milliseconds",
            "From the creation of a job to that of each of its pods",
            exponential(50, 60_000, 30),
        )
        self.groups = {
            phase: self.gauge(
                f"queue_pod_group_{phase.lower()}_count",
                f"PodGroups of a queue that are {phase}",
                ("queue_name",),
            )
            for phase in GROUP_PHASES
        }
        namespace = ("jobflow_namespace",)
        self.ended_flows = {
            phase: self.counter(
                f"jobflow_{phase.lower()}_phase_count", f"JobFlows that became {phase}", namespace
            )
            for phase in ("Succeed", "Failed")
        }
        self._add_own()

    def _add_own(self) -> None:
        own, controller = f"{OWN_PREFIX}controller_", ("controller",)
        self.sync = Histogram(
            f"{own}sync_seconds", "One object reconciled", controller, registry=self.registry
        )
        self.failures = self.counter("failures_total", "Syncs that failed", controller, own)
        self.waiting = self.gauge("waiting", "Objects that wait for a worker", controller, own)
        self.failing = self.gauge("failing", "Objects that failed and are to be tried again", controller, own)
        self.writes = self.counter("writes_total", "Writes, but for events", ("verb", "resource"), own)
        self.objects = self.gauge("objects", "Objects in the stores", ("resource",), own)
        self.dropped_events = self.gauge(
            "dropped_events", "Events left out because there were too many", prefix=own
        )
        self.leader = self.gauge("leader", "1 if this one leads", prefix=OWN_PREFIX)

    def on_write(self, verb: str, resource: str) -> None:
        with self.guard("write metrics"):
            self.writes.labels(verb, resource).inc()

    def on_sync(self, controller: str, seconds: float) -> None:
        with self.guard("sync metrics"):
            self.sync.labels(controller).observe(seconds)

    def on_failed_sync(self, controller: str) -> None:
        with self.guard("sync metrics"):
            self.failures.labels(controller).inc()

    def count_groups(self, queue: str, counts: Mapping[str, int]) -> None:
        """So many PodGroups of a queue are in each phase."""
        with self.guard("queue metrics"):
            for phase, count in counts.items():
                self.groups[phase].labels(queue).set(count)

    def forget_queue(self, name: str) -> None:
        with self.guard("queue metrics"):
            for gauge in self.groups.values():
                forget(gauge, name)

    def job_ended(self, phase: str, job: str, queue: str) -> None:
        """A job entered a phase; counted if it is one of the two that end it."""
        with self.guard("job metrics"):
            if phase in self.ended_jobs:
                self.ended_jobs[phase].labels(job, queue).inc()

    def forget_job(self, job: str, queue: str) -> None:
        with self.guard("job metrics"):
            for counter in self.ended_jobs.values():
                forget(counter, job, queue)

    def pod_created(self, seconds: float) -> None:
        """A pod was created, so long after its job."""
        with self.guard("job metrics"):
            self.pod_creation.observe(seconds * 1000)

    def flow_ended(self, phase: str, namespace: str) -> None:
        """A JobFlow entered a phase; counted if it is one of the two that end it."""
        with self.guard("jobflow metrics"):
            if phase in self.ended_flows:
                self.ended_flows[phase].labels(namespace).inc()
