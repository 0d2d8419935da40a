"""What `stromboli metrics` makes of a page: what is fine, what is not, and where to look."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics import process_lines, scheduler_lines
from stromboli.cli.metrics.metric_samples import Samples
from stromboli.cli.metrics.metrics_summary import MetricsSummary, summarise
from stromboli.cli.metrics.summary_line import SummaryLine
from stromboli.cli.metrics.summary_text import print_raw, print_summary
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from tests.cli.metrics.metric_pages import CONTROLLERS, VOLCANO, healthy, metric, set_amounts

PAGE = Path(__file__).parents[3] / "docs" / "metrics-summary.md"
NOW = 1_800_000_000.0


def summary_of(page: bytes | str, before: bytes | None = None) -> MetricsSummary:
    samples, _ = Samples.of_page(page.encode() if isinstance(page, str) else page)
    if before is not None:
        samples = samples.since(Samples.of_page(before)[0], 10.0)
    return summarise(samples, None, NOW)


def lines_of(metrics: SchedulerMetrics | str) -> dict[str, SummaryLine]:
    summary = summary_of(metrics if isinstance(metrics, str) else metrics.text())
    return {line.topic: line for line in summary.lines}


def test_of_a_healthy_scheduler_all_is_fine_and_told_in_words() -> None:
    summary = summary_of(healthy().text())
    lines = {line.topic: line for line in summary.lines}
    assert summary.is_fine
    assert summary.not_told == []
    assert lines["cycles"].text.startswith("200 took 8 ms on average; 99 of 100 within 9")
    assert lines["cycles"].text.endswith("most of each: action allocate 6 ms, plugin predicates 400 µs")
    assert lines["pods"].text.startswith("200 bound; half within ")
    assert lines["attempts"].text == "200 scheduled"
    assert lines["waiting"].text == "nobody"
    assert lines["queues"].text == "0 of 2 have more than they deserve"
    assert lines["requests"].text == "200 answered 201"
    assert [part.name for part in summary.actions] == ["allocate", "enqueue"]
    assert all(not line.remedy for line in summary.lines)


Change = Callable[[SchedulerMetrics], None]
TROUBLES: dict[str, tuple[str, Change, str]] = {
    "slow cycles": (
        "cycles",
        lambda metrics: (
            [metric(metrics, "e2e_scheduling_latency_milliseconds").observe(3000) for _ in range(9)] and None
        ),
        "99 of 100 within 2.93 s",
    ),
    "very slow cycles": (
        "cycles",
        lambda metrics: (
            [metric(metrics, "e2e_scheduling_latency_milliseconds").observe(9000) for _ in range(9)] and None
        ),
        "fewer than 99 of 100 within 5 s",
    ),
    "lost cycles": (
        "lost cycles",
        lambda metrics: metric(metrics, "lost_cycles_total").inc(2),
        "2 came to nothing",
    ),
    "a standby": ("leader", lambda metrics: metric(metrics, "leader").set(0), "stands by"),
    "a late mirror": (
        "mirror",
        lambda metrics: metric(metrics, "mirror_lag_seconds").set(42),
        "42 s old",
    ),
    "binds that fail": (
        "attempts",
        lambda metrics: metric(metrics, "schedule_attempts_total").labels("error").inc(20),
        "20 error",
    ),
    "slow binds": (
        "binds",
        lambda metrics: metric(metrics, "scheduling_stage_duration_milliseconds").observe(
            "Bind", *[9000.0] * 9
        ),
        "fewer than 99 of 100 within 500 ms",
    ),
    "long waits": (
        "pods",
        lambda metrics: (
            [
                metric(metrics, "task_scheduling_latency_milliseconds").labels("Bound").observe(1e6)
                for _ in range(300)
            ]
            and None
        ),
        "fewer than half within 60 s",
    ),
    "a plugin that is set aside": (
        "plugins",
        lambda metrics: metric(metrics, "plugin_set_aside").labels("mine", "node_order").set(1),
        "mine (node_order) is set aside",
    ),
    "a plugin that hangs": (
        "plugins",
        lambda metrics: metric(metrics, "plugin_running_seconds").labels("mine", "open").set(77),
        "mine (open) has run for 77 s",
    ),
    "writes that fail": (
        "writes",
        lambda metrics: metric(metrics, "write_failures_total").labels("Bind").inc(9),
        "9 binds failed",
    ),
    "events left out": (
        "writes",
        lambda metrics: metric(metrics, "dropped_events").set(3),
        "3 events left out",
    ),
    "an API server that fails": (
        "requests",
        lambda metrics: metric(metrics, "rest_client_requests_total").labels("503", "GET", "a").inc(9),
        "9 answered 503",
    ),
    "no answers": (
        "requests",
        lambda metrics: metric(metrics, "rest_client_requests_total").labels("<error>", "GET", "a").inc(9),
        "9 without answer",
    ),
    "a missing right": (
        "requests",
        lambda metrics: metric(metrics, "rest_client_requests_total").labels("403", "GET", "a").inc(),
        "1 answered 403",
    ),
    "HyperNodes left out": (
        "hypernodes",
        lambda metrics: metric(metrics, "topology_left_out_hyper_nodes").set(2),
        "2 left out",
    ),
    "metrics that fail": ("telemetry", lambda metrics: metrics.guard.count("job metrics"), "1 job metrics"),
}


@pytest.mark.parametrize(("topic", "change", "text"), TROUBLES.values(), ids=TROUBLES)
def test_trouble_is_told_with_the_way_out(topic: str, change: Change, text: str) -> None:
    metrics = healthy()
    change(metrics)
    line = lines_of(metrics)[topic]
    assert line.state == "look"
    assert text in line.text
    assert line.remedy
    assert not summary_of(metrics.text()).is_fine


def test_jobs_that_wait_are_told_with_the_oldest_and_its_queue() -> None:
    metrics = healthy()
    metric(metrics, "queue_pending_jobs").labels("research").set(1)
    metric(metrics, "queue_pending_tasks").labels("research").set(8)
    metric(metrics, "queue_oldest_pending_seconds").labels("research").set(600)
    assert (
        lines_of(metrics)["waiting"].text == "1 job with 8 pods; the oldest since 10 min, in queue research"
    )
    assert lines_of(metrics)["waiting"].state == "fine"
    metric(metrics, "queue_oldest_pending_seconds").labels("research").set(7300)
    assert lines_of(metrics)["waiting"].state == "look"


def test_a_queue_that_waits_below_its_share_beside_another_above_it_is_told() -> None:
    metrics = healthy()
    metric(metrics, "queue_pending_jobs").labels("research").set(2)
    assert lines_of(metrics)["queues"].state == "fine"
    metric(metrics, "queue_share").labels("default").set(1.5)
    metric(metrics, "queue_overused").labels("default").set(1)
    line = lines_of(metrics)["queues"]
    assert line.state == "look"
    assert line.text == (
        "1 of 2 have more than they deserve (default 150 %); 1 wait with less (research 50 %)"
    )
    assert "reclaim" in line.remedy


def test_amounts_of_queues_are_told_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = healthy()
    set_amounts(metrics, "deserved", "default", {"cpu": math.inf, "memory": math.inf})
    print_summary(summary_of(metrics.text()), "there", wide=False)
    rows = [line.split("   ") for line in capsys.readouterr().out.splitlines()]
    table = {row[0]: [cell.strip() for cell in row if cell.strip()] for row in rows}
    assert table["QUEUE"][3:9:2] == ["CPU ALLOCATED", "MEMORY ALLOCATED", "GPU ALLOCATED"]
    assert table["research"] == ["research", "50 %", "no", "4", "8", "2Gi", "4Gi", "2", "4", "0", "0", "-"]
    assert table["default"][4:7] == ["no limit", "2Gi", "no limit"]


def test_an_interval_has_rates(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = healthy()
    before = metrics.text()
    metric(metrics, "schedule_attempts_total").labels("scheduled").inc(50)
    metric(metrics, "eviction_transactions_total").labels("preempt").inc(5)
    summary = summary_of(metrics.text(), before)
    lines = {line.topic: line for line in summary.lines}
    assert lines["attempts"].text == "50 (5/s) scheduled"
    assert lines["evictions"].text == "5 (0.5/s) by preempt"
    assert (lines["cycles"].text, lines["requests"].text) == ("none", "none")
    print_summary(summary, "there", wide=True)
    assert "counted in the last 10 s" in capsys.readouterr().out


def test_of_volcanos_scheduler_is_told_what_it_tells() -> None:
    summary = summary_of(VOLCANO)
    lines = {line.topic: line for line in summary.lines}
    assert lines["cycles"].state == "look"  # one of 51 took more than 5 seconds
    assert lines["waiting"].text == "3 jobs short of members"
    assert lines["evictions"].text == "4 by reclaim"
    assert summary.queues[0].numbers["deserved"] == {"milliCpu": 8000}
    assert summary.not_told == [
        *("leader", "lost cycles", "plugins", "mirror", "pods", "jobs", "attempts", "binds", "writes")
    ]


def test_controllers_tell_of_pods_that_they_make() -> None:
    lines = lines_of(CONTROLLERS)
    assert list(lines) == ["leader", "pods made", "jobs ended", "syncs"]
    assert summary_of(CONTROLLERS).not_told == []
    assert lines["pods made"].state == "look"
    assert lines["jobs ended"].text == "7 completed, 0 failed"
    assert lines["syncs"].state == "look"


VALUES = st.sampled_from(["0", "1", "-1", "5e-324", "1e308", "-1e308", "+Inf", "-Inf", "NaN", "0.5", "3"])
HOSTILE = st.sampled_from(
    ["", "a", "\\n\\n", "\x1b[2J", "\u202e", "x" * 3000, "+Inf", "1", "nan", "1e999", "Bound"]
)
SERIES = sorted(
    names.GAUGES
    | names.COUNTERS
    | {f"{name}_{part}" for name in names.HISTOGRAMS for part in ("bucket", "sum", "count")}
)
KEYS = st.sampled_from(
    ["le", "stage", "queue_name", "action", "plugin", "point", "code", "result", "resource"]
)
LINES = st.builds(
    lambda name, labels, value: (
        f"{name}{{{','.join(f'{key}={chr(34)}{text}{chr(34)}' for key, text in labels.items())}}} {value}"
    ),
    st.sampled_from(SERIES),
    st.dictionaries(KEYS, HOSTILE, max_size=3),
    VALUES,
)


@given(st.lists(LINES, max_size=40), st.lists(LINES, max_size=10))
def test_whatever_metrics_say_is_shown_harmlessly(now: list[str], before: list[str]) -> None:
    page, earlier = "\n".join(now).encode(), "\n".join(before).encode()
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("typer.echo", lambda text="": printed.append(text))
        for summary in (summary_of(page), summary_of(page, earlier)):
            json.dumps(summary.document, allow_nan=False)
            print_summary(summary, "there", wide=True)
        print_raw(page)
    assert all(line.isprintable() for text in printed for line in text.split("\n"))
    assert all(len(line) < 20_000 for line in printed)


def test_the_thresholds_of_the_documentation_are_those_of_the_code() -> None:
    told = dict(re.findall(r"`(FINE_\w+)` \| ([\d.,]+) ", PAGE.read_text()))
    modules = (scheduler_lines, process_lines)
    values = {
        name: value for module in modules for name, value in vars(module).items() if name[:5] == "FINE_"
    }
    scale = {name: 100.0 if name.endswith("PART") else 1.0 for name in values}
    assert {name: float(text.replace(",", "")) for name, text in told.items()} == {
        name: value * scale[name] for name, value in values.items()
    }
