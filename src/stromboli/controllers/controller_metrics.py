"""The metrics of controllers: Volcano's (spec 06 13), and a few of our own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from stromboli.daemon.metric_types import OWN_PREFIX, PREFIX, ExactCounter, exponential, exposition, forget

JOB = ("job_name", "queue_name")
GROUP_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


class Metrics:
    """All of them, in a registry of their own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # Volcano shows none
        self.registry = registry = CollectorRegistry()
        self.completed_jobs = ExactCounter(
            f"{PREFIX}job_completed_phase_count", "Jobs that became Completed", JOB, registry=registry
        )
        self.failed_jobs = ExactCounter(
            f"{PREFIX}job_failed_phase_count", "Jobs that became Failed", JOB, registry=registry
        )
        self.pod_creation = Histogram(
            f"{PREFIX}controller_job_to_pod_creation_latency_milliseconds",
            "From the creation of a job to that of each of its pods",
            buckets=exponential(50, 60_000, 30),
            registry=registry,
        )
        self.groups = {
            phase: Gauge(
                f"{PREFIX}queue_pod_group_{phase.lower()}_count",
                f"PodGroups of a queue that are {phase}",
                ("queue_name",),
                registry=registry,
            )
            for phase in GROUP_PHASES
        }
        self.succeeded_flows = ExactCounter(
            f"{PREFIX}jobflow_succeed_phase_count",
            "JobFlows that became Succeed",
            ("jobflow_namespace",),
            registry=registry,
        )
        self.failed_flows = ExactCounter(
            f"{PREFIX}jobflow_failed_phase_count",
            "JobFlows that became Failed",
            ("jobflow_namespace",),
            registry=registry,
        )
        self._add_own(registry)

    def _add_own(self, registry: CollectorRegistry) -> None:
        own, controller = f"{OWN_PREFIX}controller_", ("controller",)
        self.sync = Histogram(f"{own}sync_seconds", "One object put right", controller, registry=registry)
        self.failures = Counter(f"{own}failures", "Syncs that failed", controller, registry=registry)
        self.waiting = Gauge(f"{own}waiting", "Objects that wait for a worker", controller, registry=registry)
        self.failing = Gauge(
            f"{own}failing", "Objects that failed and are to be tried again", controller, registry=registry
        )
        self.writes = Counter(
            f"{own}writes", "Writes, but for events", ("verb", "resource"), registry=registry
        )
        self.objects = Gauge(f"{own}objects", "Objects in the stores", ("resource",), registry=registry)
        self.dropped_events = Gauge(
            f"{own}dropped_events", "Events left out because there were too many", registry=registry
        )
        self.leader = Gauge(f"{OWN_PREFIX}leader", "1 if this one leads", registry=registry)

    def on_write(self, verb: str, resource: str) -> None:
        self.writes.labels(verb, resource).inc()

    def forget_queue(self, name: str) -> None:
        for gauge in self.groups.values():
            forget(gauge, name)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return exposition(
            self.registry, self.completed_jobs, self.failed_jobs, self.succeeded_flows, self.failed_flows
        )
