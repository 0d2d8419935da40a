"""Grafana's dashboards: overview, queues, topology, and the health of scheduler and controllers.

Metrics of Volcano's names are told by its scheduler, too. Red lines are where `stromboli metrics` no longer says fine.
"""

from __future__ import annotations

from deploy.dashboard_panels import CONTROLLERS_ONLY, OWN_ONLY, Dashboard, Panel, Query, Row, variable
from stromboli.cli.metrics.process_lines import FINE_CREATION_SECONDS
from stromboli.cli.metrics.scheduler_lines import (
    FINE_BIND_SECONDS,
    FINE_CYCLE_SECONDS,
    FINE_LAG_SECONDS,
    FINE_OLDEST_SECONDS,
    FINE_WAIT_SECONDS,
)

MS = 1000.0
JOBS = variable("job", "Scheduler", "volcano_e2e_scheduling_latency_milliseconds_count", "job")
QUEUES = variable("queue", "Queue", "volcano_queue_share", "queue_name")
TIERS = variable("tier", "Tier", "stromboli_topology_occupancy_ratio", "tier")
RESOURCES = variable("resource", "Resource", "volcano_queue_allocated_scalar_resources", "resource")
_HERE = 'job=~"$job"'


def _quantiles(metric: str, matchers: str = _HERE, by: str = "") -> list[Query]:
    """The median and the 99th percentile of a histogram."""
    labels = f"{by}, le" if by else "le"
    name = f" {{{{{by}}}}}" if by else ""
    return [
        Query(
            f"histogram_quantile({part}, sum by ({labels}) (rate({metric}_bucket{{{matchers}}}[$__rate_interval])))",
            f"{text}{name}",
        )
        for part, text in (("0.5", "half within"), ("0.99", "99 of 100 within"))
    ]


def _mean(metric: str, by: str) -> Query:
    """Time spent per second: which part takes most."""
    return Query(
        f"sum by ({by}) (rate({metric}_sum{{{_HERE}}}[$__rate_interval]))"
        f" / sum by ({by}) (rate({metric}_count{{{_HERE}}}[$__rate_interval]))",
        f"{{{{{by}}}}}",
    )


def _per_minute(selector: str, by: str = "", legend: str = "") -> Query:
    grouped = f"sum by ({by})" if by else "sum"
    return Query(
        f"{grouped} (rate({selector}[$__rate_interval])) * 60", legend or (f"{{{{{by}}}}}" if by else "")
    )


def _number(title: str, expr: str, unit: str, description: str = "", most: float | None = None) -> Panel:
    return Panel(title, [Query(expr)], unit, description, "stat", width=4, height=4, warn_above=most)


# -- overview

_CYCLE = "volcano_e2e_scheduling_latency_milliseconds"
OVERVIEW = Dashboard(
    "stromboli-overview",
    "Stromboli: overview",
    "Cycles, what waits, what starts and who is evicted; for Volcano's scheduler, too.",
    [
        Row(
            "Now",
            [
                _number(
                    "Jobs that wait",
                    f"sum(stromboli_queue_pending_jobs{{{_HERE}}}) or sum(volcano_unschedule_job_count{{{_HERE}}})",
                    "short",
                    "Jobs with pending pods; of Volcano's scheduler, those short of minMember.",
                ),
                _number(
                    "Pods that wait", f"sum(stromboli_queue_pending_tasks{{{_HERE}}})", "short", OWN_ONLY
                ),
                _number(
                    "Oldest job that waits",
                    f"max(stromboli_queue_oldest_pending_seconds{{{_HERE}}})",
                    "s",
                    f"{OWN_ONLY} `stromboli explain` tells why it waits.",
                    FINE_OLDEST_SECONDS,
                ),
                _number(
                    "99 of 100 cycles within",
                    _quantiles(_CYCLE)[1].expr,
                    "ms",
                    "`stromboli metrics -o wide` shows the time of each action and plugin.",
                    FINE_CYCLE_SECONDS * MS,
                ),
                _number(
                    "Queues over their share",
                    f"sum(volcano_queue_overused{{{_HERE}}})",
                    "short",
                    "Which have more than they deserve: `stromboli queue tree`.",
                ),
                _number(
                    "Schedulers that lead",
                    f"sum(stromboli_leader{{{_HERE}}} and on (job, instance) stromboli_mirror_lag_seconds)",
                    "short",
                    f"{OWN_ONLY} It should be 1.",
                    2,
                )._replace(warn_below=1),
            ],
        ),
        Row(
            "Starts and evictions",
            [
                Panel(
                    "Pods bound per minute",
                    [
                        _per_minute(
                            f'volcano_task_scheduling_latency_milliseconds_count{{{_HERE}, stage="Bound"}}'
                        )
                    ],
                    "opm",
                    "Binds that the API server took.",
                ),
                Panel(
                    "Jobs given room per minute",
                    [_per_minute(f"volcano_e2e_job_scheduling_latency_milliseconds_count{{{_HERE}}}")],
                    "opm",
                    "Volcano counts each pod of a job here.",
                ),
                Panel(
                    "Evictions per minute",
                    [_per_minute(f'stromboli_decisions_total{{{_HERE}, decision="Evict"}}', legend="pods")],
                    "opm",
                    f"Pods. {OWN_ONLY} `stromboli top --view lately` names them.",
                ),
                Panel(
                    "Batches of evictions per minute",
                    [_per_minute(f"volcano_eviction_transactions_total{{{_HERE}}}", "action")],
                    "opm",
                    "All evictions for the sake of one job are a batch.",
                    stacked=True,
                ),
            ],
        ),
        Row(
            "Waiting",
            [
                Panel(
                    "Jobs that wait, by queue",
                    [
                        Query(
                            f"sum by (queue_name) (stromboli_queue_pending_jobs{{{_HERE}}})", "{{queue_name}}"
                        )
                    ],
                    "short",
                    OWN_ONLY,
                    stacked=True,
                ),
                Panel(
                    "Oldest job that waits, by queue",
                    [
                        Query(
                            f"max by (queue_name) (stromboli_queue_oldest_pending_seconds{{{_HERE}}})",
                            "{{queue_name}}",
                        )
                    ],
                    "s",
                    OWN_ONLY,
                    warn_above=FINE_OLDEST_SECONDS,
                ),
                Panel(
                    "From the creation of a pod to its binding",
                    _quantiles("volcano_task_scheduling_latency_milliseconds", f'{_HERE}, stage="Bound"'),
                    "ms",
                    "Also while there was no room.",
                    warn_above=FINE_WAIT_SECONDS * MS,
                ),
                Panel(
                    "From the creation of a job to its room",
                    _quantiles("volcano_e2e_job_scheduling_latency_milliseconds"),
                    "ms",
                    "Also while there was no room.",
                    warn_above=FINE_WAIT_SECONDS * MS,
                ),
            ],
        ),
        Row(
            "Cycles",
            [
                Panel(
                    "Length of cycles",
                    _quantiles(_CYCLE),
                    "ms",
                    "A pod that has room waits so long for its turn.",
                    warn_above=FINE_CYCLE_SECONDS * MS,
                ),
                Panel(
                    "Cycles per minute", [_per_minute(f"{_CYCLE}_count{{{_HERE}}}")], "opm", "Those that ran."
                ),
            ],
        ),
    ],
    [JOBS],
)

# -- queues

_OF_QUEUE = f'{_HERE}, queue_name=~"$queue"'
_FAMILIES = (
    ("allocated", "used"),
    ("deserved", "deserved"),
    ("capacity", "capability"),
    ("request", "asked for"),
)


def _amounts(suffix: str, factor: str = "", more: str = "", by: str = "queue_name") -> list[Query]:
    """Used, deserved and largest amounts of queues; an amount without limit is left out."""
    names = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return [
        Query(
            f"(max by ({by}) (volcano_queue_{family}_{suffix}{{{_OF_QUEUE}{more}}}) < 1e18){factor}",
            f"{names} {text}",
        )
        for family, text in _FAMILIES
    ]


QUEUE_PAGE = Dashboard(
    "stromboli-queues",
    "Stromboli: queues",
    "What queues use, deserve and may have; for Volcano's scheduler, too.",
    [
        Row(
            "Shares",
            [
                Panel(
                    "Used of what it deserves",
                    [Query(f"max by (queue_name) (volcano_queue_share{{{_OF_QUEUE}}})", "{{queue_name}}")],
                    "percentunit",
                    "Of the resource of which it has most. Above 100 % it borrows.",
                    warn_above=1.0,
                ),
                Panel(
                    "Used of its capability",
                    [
                        Query(
                            f"max by (queue_name) (volcano_queue_allocated_{suffix}{{{_OF_QUEUE}}})"
                            f" / (max by (queue_name) (volcano_queue_capacity_{suffix}{{{_OF_QUEUE}}}) > 0)",
                            f"{{{{queue_name}}}} {text}",
                        )
                        for suffix, text in (("milli_cpu", "CPU"), ("memory_bytes", "memory"))
                    ],
                    "percentunit",
                    "Queues without a capability are not limited, and not shown.",
                    warn_above=1.0,
                ),
            ],
        ),
        Row(
            "Amounts",
            [
                Panel(
                    "CPUs", _amounts("milli_cpu", " / 1000"), "short", "`stromboli queue list` has the same."
                ),
                Panel("Memory", _amounts("memory_bytes"), "bytes", "`stromboli queue list` has the same."),
                Panel(
                    "Other resources",
                    _amounts(
                        "scalar_resources", " / 1000", ', resource=~"$resource"', "queue_name, resource"
                    ),
                    "short",
                    "Such as GPUs. Pods and volumes are counted in thousandths here.",
                    width=24,
                ),
            ],
        ),
        Row(
            "Waiting",
            [
                Panel(
                    "Jobs that wait",
                    [
                        Query(
                            f"max by (queue_name) (stromboli_queue_pending_jobs{{{_OF_QUEUE}}})",
                            "{{queue_name}}",
                        )
                    ],
                    "short",
                    f"{OWN_ONLY} `stromboli top --view waiting` names them.",
                ),
                Panel(
                    "Oldest job that waits",
                    [
                        Query(
                            f"max by (queue_name) (stromboli_queue_oldest_pending_seconds{{{_OF_QUEUE}}})",
                            "{{queue_name}}",
                        )
                    ],
                    "s",
                    OWN_ONLY,
                    warn_above=FINE_OLDEST_SECONDS,
                ),
                Panel(
                    "CPUs let in, and not running yet",
                    [
                        Query(
                            f"max by (queue_name) (volcano_queue_inqueue_milli_cpu{{{_OF_QUEUE}}}) / 1000",
                            "{{queue_name}}",
                        )
                    ],
                    "short",
                    "What jobs in the phase Inqueue ask for.",
                ),
                Panel(
                    "Weights",
                    [Query(f"max by (queue_name) (volcano_queue_weight{{{_OF_QUEUE}}})", "{{queue_name}}")],
                    "short",
                    "By which the plugin proportion shares.",
                ),
            ],
        ),
    ],
    [JOBS, QUEUES, RESOURCES],
)

# -- topology

_OF_TIER = f'{_HERE}, tier=~"$tier"'


def _tier_panel(
    title: str, metric: str, label: str, unit: str, description: str, matchers: str = ""
) -> Panel:
    return Panel(
        title,
        [
            Query(
                f"max by (tier, {label}) (stromboli_topology_{metric}{{{_OF_TIER}{matchers}}})",
                f"tier {{{{tier}}}} {{{{{label}}}}}",
            )
        ],
        unit,
        f"{description} {OWN_ONLY}",
    )


TOPOLOGY = Dashboard(
    "stromboli-topology",
    "Stromboli: topology",
    "How full the tiers of HyperNodes are, and how large a gang would still fit. Of Stromboli's scheduler alone.",
    [
        Row(
            "Room for gangs",
            [
                _tier_panel(
                    "Largest gang that fits, in nodes",
                    "largest_gang",
                    "unit",
                    "short",
                    "Whole free nodes below one HyperNode.",
                    ', unit="nodes"',
                ),
                _tier_panel(
                    "Largest gang that fits, in GPUs",
                    "largest_gang",
                    "unit",
                    "short",
                    "Free GPUs below one HyperNode.",
                    ', unit="gpus"',
                ),
                _tier_panel(
                    "Fragmentation",
                    "fragmentation_ratio",
                    "unit",
                    "percentunit",
                    "How much smaller the largest gang is than it could be if all that is free lay together.",
                ),
                _tier_panel(
                    "In use",
                    "occupancy_ratio",
                    "resource",
                    "percentunit",
                    "Of what the nodes of a tier have.",
                ),
            ],
        ),
        Row(
            "HyperNodes",
            [
                _tier_panel(
                    "HyperNodes by how many of their nodes are free",
                    "hyper_nodes",
                    "state",
                    "short",
                    "`stromboli hypernode tree` names them.",
                ),
                Panel(
                    "HyperNodes left out of the tree",
                    [Query(f"max(stromboli_topology_left_out_hyper_nodes{{{_HERE}}})", "left out")],
                    "short",
                    f"Events on them say why. {OWN_ONLY}",
                    warn_above=0.5,
                ),
            ],
        ),
    ],
    [JOBS, TIERS],
)

# -- health

HEALTH = Dashboard(
    "stromboli-health",
    "Stromboli: health",
    "Whether scheduler and controllers work as they should: time by action and plugin, what failed, requests, memory.",
    [
        Row(
            "Time of a cycle",
            [
                Panel(
                    "An action, on average",
                    [_mean("volcano_action_scheduling_latency_milliseconds", "action")],
                    "ms",
                    "Per cycle.",
                    stacked=True,
                ),
                Panel(
                    "A plugin, on average",
                    [_mean("volcano_plugin_scheduling_latency_milliseconds", "plugin")],
                    "ms",
                    "Opening or closing a cycle.",
                    stacked=True,
                ),
                Panel(
                    "Opening a cycle",
                    _quantiles("volcano_open_session_duration_milliseconds"),
                    "ms",
                    "Taking in what changed, and opening plugins.",
                ),
                Panel(
                    "Requests that bind a pod",
                    _quantiles("volcano_scheduling_stage_duration_milliseconds", f'{_HERE}, stage="Bind"'),
                    "ms",
                    "At the red line the histogram ends.",
                    warn_above=FINE_BIND_SECONDS * MS,
                ),
            ],
        ),
        Row(
            "What fails",
            [
                Panel(
                    "Attempts per minute",
                    [_per_minute(f"volcano_schedule_attempts_total{{{_HERE}}}", "result")],
                    "opm",
                    f"Pods that were given a node or none, and binds that failed. {OWN_ONLY}",
                ),
                Panel(
                    "Binds and evictions that failed, per minute",
                    [_per_minute(f"stromboli_write_failures_total{{{_HERE}}}", "decision")],
                    "opm",
                    f"The log names each. {OWN_ONLY}",
                ),
                Panel(
                    "Cycles lost, and calls of plugins that took long, per minute",
                    [
                        _per_minute(f"stromboli_lost_cycles_total{{{_HERE}}}", legend="lost cycles"),
                        _per_minute(f"stromboli_slow_plugin_calls_total{{{_HERE}}}", "plugin"),
                    ],
                    "opm",
                    f"A plugin failed, or took 5 seconds or more. {OWN_ONLY}",
                ),
                Panel(
                    "Plugins set aside",
                    [
                        Query(
                            f"max by (plugin, point) (stromboli_plugin_set_aside{{{_HERE}}})",
                            "{{plugin}} {{point}}",
                        )
                    ],
                    "short",
                    f"They failed for all jobs, and take no part. {OWN_ONLY}",
                ),
                Panel(
                    "Metrics, events and dumps that failed, per minute",
                    [_per_minute("stromboli_telemetry_failures_total", "part")],
                    "opm",
                    f"The work went on. {OWN_ONLY}",
                ),
                Panel(
                    "Requests to the API server per minute",
                    [
                        Query(
                            "sum by (code) (rate(rest_client_requests_total{"
                            + _HERE
                            + "}[$__rate_interval])) * 60",
                            "{{code}}",
                        )
                    ],
                    "opm",
                    "By answer. 401 and 403: rights are missing, `stromboli check` names them.",
                    stacked=True,
                ),
            ],
        ),
        Row(
            "In step with the cluster",
            [
                Panel(
                    "Age of the oldest change that no cycle has seen",
                    [Query(f"max by (instance) (stromboli_mirror_lag_seconds{{{_HERE}}})", "{{instance}}")],
                    "s",
                    OWN_ONLY,
                    warn_above=FINE_LAG_SECONDS,
                ),
                Panel(
                    "Still to be written",
                    [
                        Query(f"sum(stromboli_waiting_writes{{{_HERE}}})", "objects"),
                        Query(
                            f"sum(stromboli_waiting_binds{{{_HERE}}})", "binds held for volumes or devices"
                        ),
                        Query(f"sum(stromboli_dropped_events{{{_HERE}}})", "events left out since the start"),
                    ],
                    "short",
                    OWN_ONLY,
                ),
                Panel(
                    "Who leads",
                    [Query("max by (job, instance) (stromboli_leader)", "{{job}} {{instance}}")],
                    "short",
                    f"Schedulers and controllers: one each. {OWN_ONLY}",
                ),
                Panel(
                    "Memory",
                    [Query(f"max by (instance) (process_resident_memory_bytes{{{_HERE}}})", "{{instance}}")],
                    "bytes",
                    "Of schedulers.",
                ),
            ],
        ),
        Row(
            "Controllers",
            [
                Panel(
                    "Objects that failed, and wait for a worker",
                    [
                        Query("sum by (controller) (stromboli_controller_failing)", "{{controller}} failed"),
                        Query("sum by (controller) (stromboli_controller_waiting)", "{{controller}} waiting"),
                    ],
                    "short",
                    CONTROLLERS_ONLY,
                ),
                Panel(
                    "From the creation of a Job to its pods",
                    _quantiles("volcano_controller_job_to_pod_creation_latency_milliseconds", 'job=~".+"'),
                    "ms",
                    "Of all controllers that Prometheus reads.",
                    warn_above=FINE_CREATION_SECONDS * MS,
                ),
            ],
        ),
    ],
    [JOBS],
)

DASHBOARDS = (OVERVIEW, QUEUE_PAGE, TOPOLOGY, HEALTH)
