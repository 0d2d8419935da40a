"""Metrics that a summary is made of: Volcano's names (spec 05 13, 06 13), which are ours as well, and our own."""

CYCLE = "volcano_e2e_scheduling_latency_milliseconds"
ACTION = "volcano_action_scheduling_latency_milliseconds"
PLUGIN = "volcano_plugin_scheduling_latency_milliseconds"
POD_WAIT = "volcano_task_scheduling_latency_milliseconds"
JOB_WAIT = "volcano_e2e_job_scheduling_latency_milliseconds"
STAGE = "volcano_scheduling_stage_duration_milliseconds"
POD_CREATION = "volcano_controller_job_to_pod_creation_latency_milliseconds"
HISTOGRAMS = frozenset((CYCLE, ACTION, PLUGIN, POD_WAIT, JOB_WAIT, STAGE, POD_CREATION))

ATTEMPTS = "volcano_schedule_attempts_total"
EVICTIONS = "volcano_eviction_transactions_total"
DECISIONS = "stromboli_decisions_total"
WRITE_FAILURES = "stromboli_write_failures_total"
LOST_CYCLES = "stromboli_lost_cycles_total"
SLOW_CALLS = "stromboli_slow_plugin_calls_total"
TELEMETRY_FAILURES = "stromboli_telemetry_failures_total"
REQUESTS = "rest_client_requests_total"
COMPLETED_JOBS = "volcano_job_completed_phase_count"
FAILED_JOBS = "volcano_job_failed_phase_count"
SYNC_FAILURES = "stromboli_controller_failures_total"
DROPPED_EVENTS = "stromboli_dropped_events"
"""Called a gauge, and only grows."""
COUNTERS = frozenset(
    (
        ATTEMPTS,
        EVICTIONS,
        DECISIONS,
        WRITE_FAILURES,
        LOST_CYCLES,
        SLOW_CALLS,
        TELEMETRY_FAILURES,
        REQUESTS,
        COMPLETED_JOBS,
        FAILED_JOBS,
        SYNC_FAILURES,
        DROPPED_EVENTS,
    )
)

VICTIMS = "volcano_pod_preemption_victims"
SHORT_JOBS = "volcano_unschedule_job_count"
QUEUE_SHARE = "volcano_queue_share"
QUEUE_OVERUSED = "volcano_queue_overused"
QUEUE_WEIGHT = "volcano_queue_weight"
PENDING_JOBS = "stromboli_queue_pending_jobs"
PENDING_PODS = "stromboli_queue_pending_tasks"
OLDEST = "stromboli_queue_oldest_pending_seconds"
MIRROR_LAG = "stromboli_mirror_lag_seconds"
WAITING_WRITES = "stromboli_waiting_writes"
WAITING_BINDS = "stromboli_waiting_binds"
LEADER = "stromboli_leader"
SET_ASIDE = "stromboli_plugin_set_aside"
RUNNING_CALLS = "stromboli_plugin_running_seconds"
LEFT_OUT = "stromboli_topology_left_out_hyper_nodes"
WAITING_SYNCS = "stromboli_controller_waiting"
FAILING_SYNCS = "stromboli_controller_failing"
MEMORY = "process_resident_memory_bytes"
STARTED = "process_start_time_seconds"
AMOUNT_FAMILIES = ("allocated", "deserved", "request", "inqueue")
AMOUNTS = frozenset(
    f"volcano_queue_{family}_{unit}"
    for family in AMOUNT_FAMILIES
    for unit in ("milli_cpu", "memory_bytes", "scalar_resources")
)
GAUGES = AMOUNTS | {
    VICTIMS,
    SHORT_JOBS,
    QUEUE_SHARE,
    QUEUE_OVERUSED,
    QUEUE_WEIGHT,
    PENDING_JOBS,
    PENDING_PODS,
    OLDEST,
    MIRROR_LAG,
    WAITING_WRITES,
    WAITING_BINDS,
    LEADER,
    SET_ASIDE,
    RUNNING_CALLS,
    LEFT_OUT,
    WAITING_SYNCS,
    FAILING_SYNCS,
    MEMORY,
    STARTED,
}
