"""Pages of metrics: of our scheduler, of Volcano's, of controllers."""

from __future__ import annotations

from stromboli.scheduler.scheduler_metrics import Metrics

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


def healthy() -> Metrics:
    """A leader that has bound pods, quickly."""
    metrics = Metrics()
    metrics.leader.set(1)
    for _ in range(200):
        metrics.cycle.observe(8)
        metrics.action.labels("allocate").observe(6)
        metrics.action.labels("enqueue").observe(1)
        metrics.plugin.labels("predicates", "OnSessionOpen").observe(0.4)
        metrics.task.labels("Bound").observe(300)
        metrics.stage.observe("Bind", 12)
        metrics.job.observe(400)
        metrics.attempts.labels("scheduled").inc()
        metrics.decisions.labels("Bind").inc()
        metrics.requests.labels("201", "POST", "10.0.0.1").inc()
    for queue, share in (("research", 0.5), ("default", 0.9)):
        metrics.queue_share.labels(queue).set(share)
        metrics.queue_overused.labels(queue).set(0)
        metrics.queue_weight.labels(queue).set(1)
        metrics.amounts["allocated"].set(
            queue, {"cpu": 4000.0, "memory": 2**31, "nvidia.com/gpu": 2000.0, "pods": 3.0}
        )
        metrics.amounts["deserved"].set(queue, {"cpu": 8000.0, "memory": 2**32, "nvidia.com/gpu": 4000.0})
        metrics.pending_jobs.labels(queue).set(0)
        metrics.pending_tasks.labels(queue).set(0)
        metrics.oldest.labels(queue).set(0)
    return metrics
