"""Alerts: about metrics that are told, with the numbers of `stromboli metrics`, a remedy, and a line in the docs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from typer.main import get_command

from deploy import monitoring
from stromboli.cli.command_group import LazyCommand
from stromboli.cli.main import app
from stromboli.cli.metrics import process_lines, scheduler_lines
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from tests.cli.metrics.metric_pages import metric
from tests.deploy.known_metrics import known_metrics
from tests.deploy.manifests import DEPLOY, ROOT, build, documents, only
from tests.deploy.promql import Expression

MONITORING = build(DEPLOY / "monitoring")
GROUPS: list[dict[str, Any]] = yaml.load(monitoring.RULES.read_text(), yaml.CSafeLoader)["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
WANTED = {
    "StromboliStarvingGang",
    "StromboliEvictionStorm",
    "StromboliEvictionChurn",
    "StromboliCycleTooLong",
    "StromboliStaleMirror",
    "StromboliQueueOverCapability",
    "StromboliNoLeader",
    "StromboliTwoLeaders",
    "StromboliLostCycles",
    "StromboliWritesFail",
    "StromboliBindsFail",
    "StromboliPluginSetAside",
    "StromboliTelemetryFailures",
}
MS = 1000
THRESHOLDS = {
    "StromboliCycleTooLong": scheduler_lines.FINE_CYCLE_SECONDS * MS,
    "StromboliStaleMirror": scheduler_lines.FINE_LAG_SECONDS,
    "StromboliStarvingGang": scheduler_lines.FINE_OLDEST_SECONDS,
    "StromboliBindsSlow": scheduler_lines.FINE_BIND_SECONDS * MS,
    "StromboliBindsFail": scheduler_lines.FINE_FAILED_PART,
    "StromboliWritesFail": scheduler_lines.FINE_FAILED_PART,
    "StromboliRequestsFail": scheduler_lines.FINE_FAILED_PART,
    "StromboliPodsMadeLate": process_lines.FINE_CREATION_SECONDS * MS,
}
QUANTILES = {0.99}
FUNCTIONS = {"humanize", "humanizeDuration", "humanizePercentage"}
"""Of Prometheus' templates, that are used."""


def expression(alert: str) -> Expression:
    return Expression(RULES[alert]["expr"], known_metrics())


def test_files_are_up_to_date() -> None:
    stale = [
        name
        for name, text in monitoring.generated().items()
        if not (monitoring.FOLDER / name).exists() or (monitoring.FOLDER / name).read_text() != text
    ]
    assert not stale, f"run `make monitoring`: {stale}"


def test_the_operator_gets_the_rules_that_prometheus_reads() -> None:
    assert only(MONITORING, "PrometheusRule")["spec"] == {"groups": GROUPS}


def test_nothing_that_should_wake_somebody_is_left_out() -> None:
    assert RULES.keys() >= WANTED
    assert sum(len(group["rules"]) for group in GROUPS) == len(RULES)
    assert len({group["name"] for group in GROUPS}) == len(GROUPS)


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_is_complete(alert: str) -> None:
    rule = RULES[alert]
    assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Stromboli([A-Z][a-z]+)+", alert)
    assert re.fullmatch(r"\d+m", rule["for"])
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description"}
    assert all(text.endswith(".") and "\n" not in text for text in rule["annotations"].values())


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_asks_for_metrics_and_labels_that_are_told(alert: str) -> None:
    assert expression(alert).result.type == "vector"


@pytest.mark.parametrize("alert", RULES)
def test_the_words_of_an_alert_name_labels_that_it_has(alert: str) -> None:
    texts = " ".join(RULES[alert]["annotations"].values())
    templates = re.findall(r"\{\{(.*?)\}\}", texts)
    for template in templates:
        match = re.fullmatch(r" \$(?:labels\.(\w+)|value(?: \| (\w+))?) ", template)
        assert match, template
        assert match[1] is None or match[1] in expression(alert).result.labels, template
        assert match[2] is None or match[2] in FUNCTIONS, template
    assert texts.count("{{") == len(templates)


@pytest.mark.parametrize("alert", RULES)
def test_the_way_out_is_a_command_that_exists(alert: str) -> None:
    shown = re.findall(r"`stromboli ([^`]+)`", RULES[alert]["annotations"]["description"])
    assert shown
    for line in shown:
        command: Any = get_command(app)
        words = line.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
            command = command.load() if isinstance(command, LazyCommand) else command
        assert not hasattr(command, "commands"), line
        options = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("-")} <= options, line


@pytest.mark.parametrize("alert", THRESHOLDS)
def test_an_alert_has_the_number_that_stromboli_metrics_judges_by(alert: str) -> None:
    assert set(expression(alert).numbers) - QUANTILES == {THRESHOLDS[alert]}


def _page_of(metrics: SchedulerMetrics, part: str) -> str:
    return "\n".join(line for line in metrics.text().decode().splitlines() if part in line)


def test_an_alert_on_slow_binds_can_fire() -> None:
    """A quantile beyond the last bound of a histogram is told as that bound."""
    metrics = SchedulerMetrics()
    metric(metrics, "scheduling_stage_duration_milliseconds").observe("Bind", 1e9)
    bounds = [float(bound) for bound in re.findall(r'\ble="([^"+]+)"', _page_of(metrics, "scheduling_stage"))]
    assert max(bounds) == THRESHOLDS["StromboliBindsSlow"]
    assert ">= 500" in RULES["StromboliBindsSlow"]["expr"]


def test_alerts_on_requests_are_about_ours() -> None:
    """Other programs count requests under the same name."""
    asking = [alert for alert in RULES if "rest_client_requests_total" in expression(alert).metrics]
    assert asking
    for alert in asking:
        assert RULES[alert]["expr"].endswith("and on (job, instance) stromboli_leader")


def test_prometheus_is_told_of_the_services() -> None:
    monitor = only(MONITORING, "ServiceMonitor")["spec"]
    (expression,) = monitor["selector"]["matchExpressions"]
    for component in ("scheduler", "controllers"):
        (service,) = documents(DEPLOY / component / "service.yaml")
        labels = service["metadata"]["labels"]
        assert labels.items() >= monitor["selector"]["matchLabels"].items()
        assert labels[expression["key"]] in expression["values"]
        assert {end["port"] for end in monitor["endpoints"]} == {
            port["name"] for port in service["spec"]["ports"]
        }


def test_every_alert_is_documented() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    rows = dict(re.findall(r"^\| `(Stromboli\w+)` \| (\w+, \d+m) \|", page, re.M))
    assert rows == {alert: f"{rule['labels']['severity']}, {rule['for']}" for alert, rule in RULES.items()}
