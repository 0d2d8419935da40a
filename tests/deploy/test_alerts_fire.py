"""Each alert fires when it should, and none on a healthy cluster: asked of Prometheus itself, where it is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from deploy import monitoring
from tests.deploy.test_alert_rules import RULES

MINUTES = 100
Series = dict[str, str]
"""Values by series, in the notation of `promtool test rules`: `0+10` grows by 10 a minute."""


def scheduler(metric: str, instance: str = "a", **labels: str) -> str:
    return _series(metric, job="stromboli-scheduler-service", instance=instance, **labels)


def controllers(metric: str, **labels: str) -> str:
    return _series(metric, job="stromboli-controllers-service", instance="c", **labels)


def _series(metric: str, **labels: str) -> str:
    pairs = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{pairs}}}"


def histogram(of: Callable[..., str], metric: str, counts: Series, **labels: str) -> Series:
    """How many values are below each bound."""
    return {of(f"{metric}_bucket", le=bound, **labels): count for bound, count in counts.items()}


CYCLE = "volcano_e2e_scheduling_latency_milliseconds"
STAGE = "volcano_scheduling_stage_duration_milliseconds"
CREATION = "volcano_controller_job_to_pod_creation_latency_milliseconds"
HEALTHY: Series = {
    scheduler("stromboli_leader"): "1+0",
    scheduler("stromboli_leader", "b"): "0+0",
    scheduler("stromboli_mirror_lag_seconds"): "0.1+0",
    scheduler("stromboli_mirror_lag_seconds", "b"): "0.1+0",
    controllers("stromboli_leader"): "1+0",
    controllers("stromboli_controller_dropped_events"): "0+0",
    controllers("stromboli_controller_failing", controller="job"): "0+0",
    **histogram(scheduler, CYCLE, {"300": "0+10", "+Inf": "0+10"}),
    **histogram(scheduler, STAGE, {"500": "0+10", "+Inf": "0+10"}, stage="Bind"),
    **histogram(controllers, CREATION, {"300": "0+10", "+Inf": "0+10"}),
    scheduler("stromboli_lost_cycles_total"): "0+0",
    scheduler("stromboli_dropped_events"): "7+0",
    scheduler("stromboli_decisions_total", decision="Bind"): "0+100",
    scheduler("stromboli_decisions_total", decision="Evict"): "0+2",
    scheduler("volcano_schedule_attempts_total", result="scheduled"): "0+100",
    scheduler("volcano_schedule_attempts_total", result="error"): "0+0",
    scheduler("stromboli_write_failures_total", decision="Bind"): "5+0",
    scheduler("rest_client_requests_total", code="200"): "0+100",
    scheduler("stromboli_topology_left_out_hyper_nodes"): "0+0",
    scheduler("stromboli_queue_oldest_pending_seconds", queue_name="q"): "0+0",
    scheduler("stromboli_queue_pending_jobs", queue_name="q"): "2+0",
    scheduler("volcano_queue_share", queue_name="q"): "1+0",
    scheduler("volcano_queue_overused", queue_name="q"): "0+0",
    scheduler("volcano_queue_overused", queue_name="r"): "1+0",
    scheduler("volcano_queue_allocated_milli_cpu", queue_name="q"): "4000+0",
    scheduler("volcano_queue_capacity_milli_cpu", queue_name="q"): "4000+0",
    scheduler("volcano_queue_allocated_memory_bytes", queue_name="q"): "4000+0",
    scheduler("volcano_queue_capacity_memory_bytes", queue_name="q"): "0+0",
    scheduler("volcano_queue_allocated_memory_bytes", queue_name="r"): "4000+0",
    scheduler("volcano_queue_capacity_memory_bytes", queue_name="r"): "+Inf+0",
    _series("rest_client_requests_total", job="other", instance="x", code="403"): "0+100",
}
"""With a program of somebody else that is denied what it asks for."""
ILL: dict[str, Series] = {
    "StromboliNoLeader": {scheduler("stromboli_leader"): "0+0"},
    "StromboliTwoLeaders": {scheduler("stromboli_leader", "b"): "1+0"},
    "StromboliCycleTooLong": histogram(scheduler, CYCLE, {"300": "0+1", "3000": "0+10"}),
    "StromboliLostCycles": {scheduler("stromboli_lost_cycles_total"): "0+1"},
    "StromboliPluginSetAside": {scheduler("stromboli_plugin_set_aside", plugin="p", point="score"): "1+0"},
    "StromboliPluginHangs": {scheduler("stromboli_plugin_running_seconds", plugin="p", point="x"): "5+60"},
    "StromboliStaleMirror": {scheduler("stromboli_mirror_lag_seconds", "b"): "6+0"},
    "StromboliBindsFail": {scheduler("volcano_schedule_attempts_total", result="error"): "0+2"},
    "StromboliBindsSlow": histogram(scheduler, STAGE, {"500": "0+1"}, stage="Bind"),
    "StromboliWritesFail": {scheduler("stromboli_write_failures_total", decision="Bind"): "0+2"},
    "StromboliEventsLeftOut": {scheduler("stromboli_dropped_events"): "7+1"},
    "StromboliStarvingGang": {scheduler("stromboli_queue_oldest_pending_seconds", queue_name="q"): "600+60"},
    "StromboliQueueWaitsBelowShare": {scheduler("volcano_queue_share", queue_name="q"): "0.5+0"},
    "StromboliQueueOverCapability": {
        scheduler("volcano_queue_allocated_scalar_resources", queue_name="q", resource="gpu"): "5+0",
        scheduler("volcano_queue_capacity_scalar_resources", queue_name="q", resource="gpu"): "4+0",
    },
    "StromboliEvictionStorm": {scheduler("stromboli_decisions_total", decision="Evict"): "0+60"},
    "StromboliEvictionChurn": {scheduler("stromboli_young_evictions_total", action="reclaim"): "0+1"},
    "StromboliHyperNodesLeftOut": {scheduler("stromboli_topology_left_out_hyper_nodes"): "3+0"},
    "StromboliRequestsFail": {scheduler("rest_client_requests_total", code="503"): "0+5"},
    "StromboliRightsMissing": {scheduler("rest_client_requests_total", code="403"): "0+0.5"},
    "StromboliTelemetryFailures": {
        scheduler("stromboli_telemetry_failures_total", part="job metrics"): f"_x{MINUTES - 5} 1+0"
    },
    "StromboliControllersNoLeader": {controllers("stromboli_leader"): "0+0"},
    "StromboliSyncsFail": {controllers("stromboli_controller_failing", controller="job"): "1+0"},
    "StromboliPodsMadeLate": histogram(controllers, CREATION, {"300": "0+1", "20000": "0+10"}),
}
OVER_CPU = {scheduler("volcano_queue_allocated_milli_cpu", queue_name="q"): "4100+0"}
OVER_MEMORY = {scheduler("volcano_queue_capacity_memory_bytes", queue_name="q"): "3000+0"}
LONG_AGO = {scheduler("stromboli_telemetry_failures_total", part="job metrics"): "1+0"}


def case(name: str, series: Series, *fire: str) -> dict[str, object]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [
            {"series": name, "values": f"{values}x{MINUTES}"} for name, values in series.items()
        ],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{MINUTES}m",
                "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in fire],
            }
        ],
    }


def _cases() -> list[dict[str, object]]:
    return [
        case("healthy", HEALTHY),
        case("nobody tells", {"up": "0+0"}, "StromboliSchedulerAbsent"),
        *(case(alert, HEALTHY | ill, alert) for alert, ill in ILL.items()),
        case("over CPU", HEALTHY | OVER_CPU, "StromboliQueueOverCapability"),
        case("over memory", HEALTHY | OVER_MEMORY, "StromboliQueueOverCapability"),
        case("telemetry failed long ago", HEALTHY | LONG_AGO),
    ]


def test_every_alert_has_a_case() -> None:
    assert {*ILL, "StromboliSchedulerAbsent"} == RULES.keys()


@pytest.mark.programs("promtool")
def test_alerts_fire_when_they_should_and_no_other_does(tmp_path: Path) -> None:
    file = tmp_path / "cases.yml"
    file.write_text(
        yaml.dump(
            {"rule_files": [str(monitoring.RULES)], "evaluation_interval": "1m", "tests": _cases()},
            sort_keys=False,
        )
    )
    for command in (["check", "rules", monitoring.RULES], ["test", "rules", file]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
