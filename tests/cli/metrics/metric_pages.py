"""Pages of metrics: of our scheduler, of Volcano's, of controllers."""

from __future__ import annotations

from typing import Any

from stromboli.daemon.metric_types import OWN_PREFIX, PREFIX
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics

VOLCANO = """\
# HELP volcano_e2e_scheduling_latency_milliseconds E2e scheduling latency in milliseconds
# TYPE volcano_e2e_scheduling_latency_milliseconds histogram
volcano_e2e_scheduling_latency_milliseconds_bucket{le="1"} 40
volcano_e2e_scheduling_latency_milliseconds_bucket{le="5000"} 50
volcano_e2e_scheduling_latency_milliseconds_bucket{le="+Inf"} 51
volcano_e2e_scheduling_latency_milliseconds_sum 9000
volcano_e2e_scheduling_latency_milliseconds_count 51
volcano_unschedule_job_count 3
volcano_eviction_transactions_total{action="reclaim"} 4
volcano_queue_allocated_milli_cpu{queue_name="default"} 4000
volcano_queue_deserved_milli_cpu{queue_name="default"} 8000
volcano_queue_share{queue_name="default"} 0.5
rest_client_requests_total{code="200",host="10.0.0.1:443",method="GET"} 900
go_goroutines 100
"""
"""As Volcano's scheduler tells them, which counts less than ours."""
CONTROLLERS = """\
volcano_controller_job_to_pod_creation_latency_milliseconds_bucket{le="50.0"} 90.0
volcano_controller_job_to_pod_creation_latency_milliseconds_bucket{le="60000.0"} 100.0
volcano_controller_job_to_pod_creation_latency_milliseconds_bucket{le="+Inf"} 100.0
volcano_controller_job_to_pod_creation_latency_milliseconds_count 100.0
volcano_controller_job_to_pod_creation_latency_milliseconds_sum 4000.0
volcano_job_completed_phase_count{job_name="a",queue_name="default"} 7.0
stromboli_controller_failing{controller="job"} 1.0
stromboli_leader 1.0
"""


def metric(metrics: SchedulerMetrics, name: str) -> Any:
    """The metric of this name, with or without its prefix."""
    stem = name.removesuffix("_total")
    names = {prefix + stem for prefix in ("", PREFIX, OWN_PREFIX)}
    return next(found for found in metrics.registry.collectors if getattr(found, "_name", "") in names)


def set_amounts(metrics: SchedulerMetrics, family: str, queue: str, amounts: dict[str, float]) -> None:
    """Show amounts of a queue: `cpu` and `memory` in series of their own."""
    series = {"cpu": "milli_cpu", "memory": "memory_bytes"}
    for resource, amount in amounts.items():
        labels = (queue,) if resource in series else (queue, resource)
        name = f"queue_{family}_{series.get(resource, 'scalar_resources')}"
        metric(metrics, name).labels(*labels).set(amount)


def healthy() -> SchedulerMetrics:
    """A leader that has bound pods, quickly."""
    metrics = SchedulerMetrics()
    metric(metrics, "leader").set(1)
    for _ in range(200):
        metric(metrics, "e2e_scheduling_latency_milliseconds").observe(8)
        metric(metrics, "action_scheduling_latency_milliseconds").labels("allocate").observe(6)
        metric(metrics, "action_scheduling_latency_milliseconds").labels("enqueue").observe(1)
        metric(metrics, "plugin_scheduling_latency_milliseconds").labels(
            "predicates", "OnSessionOpen"
        ).observe(0.4)
        metric(metrics, "task_scheduling_latency_milliseconds").labels("Bound").observe(300)
        metric(metrics, "scheduling_stage_duration_milliseconds").observe("Bind", 12)
        metric(metrics, "e2e_job_scheduling_latency_milliseconds").observe(400)
        metric(metrics, "schedule_attempts_total").labels("scheduled").inc()
        metric(metrics, "decisions_total").labels("Bind").inc()
        metric(metrics, "rest_client_requests_total").labels("201", "POST", "10.0.0.1").inc()
    for queue, share in (("research", 0.5), ("default", 0.9)):
        metric(metrics, "queue_share").labels(queue).set(share)
        metric(metrics, "queue_overused").labels(queue).set(0)
        metric(metrics, "queue_weight").labels(queue).set(1)
        set_amounts(
            metrics,
            "allocated",
            queue,
            {"cpu": 4000.0, "memory": 2**31, "nvidia.com/gpu": 2000.0, "pods": 3.0},
        )
        set_amounts(metrics, "deserved", queue, {"cpu": 8000.0, "memory": 2**32, "nvidia.com/gpu": 4000.0})
        metric(metrics, "queue_pending_jobs").labels(queue).set(0)
        metric(metrics, "queue_pending_tasks").labels(queue).set(0)
        metric(metrics, "queue_oldest_pending_seconds").labels(queue).set(0)
    return metrics
