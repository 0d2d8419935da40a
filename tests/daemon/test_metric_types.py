"""What the metrics of scheduler and controllers have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.daemon.metric_types import MetricSet, exponential, forget


def test_buckets_grow_by_a_factor() -> None:
    assert exponential(1, 100, 3) == pytest.approx([1, 10, 100])


def test_counters_are_shown_under_the_very_names_they_were_given() -> None:
    metrics = MetricSet()
    bare = metrics.counter("jobs_done", "Jobs", ("queue",))
    metrics.counter("tries_total", "Tries", prefix="our_").inc()
    bare.labels("a").inc(3)
    bare.labels("b").inc()
    forget(bare, "b")
    forget(bare, "never there")
    assert metrics.text().decode().splitlines()[2:] == [
        "# HELP volcano_jobs_done Jobs",
        "# TYPE volcano_jobs_done counter",
        'volcano_jobs_done{queue="a"} 3.0',
        "# HELP our_tries_total Tries",
        "# TYPE our_tries_total counter",
        "our_tries_total 1.0",
    ]


def test_a_metric_that_cannot_be_shown_is_left_out_and_counted() -> None:
    metrics = MetricSet()
    metrics.gauge("broken", "Fails when asked").set_function(lambda: 1 / 0)
    metrics.gauge("whole", "Fine").set(1)
    first, second = (metrics.text().decode() for _ in range(2))
    assert "volcano_whole 1.0\n" in first
    assert "volcano_broken" not in first
    assert 'stromboli_telemetry_failures_total{part="metrics page"} 1.0\n' in second


@given(
    st.text(st.characters(exclude_categories=[])),
    st.one_of(st.floats(), st.integers(), st.just(10**400), st.just(float("inf"))),
)
def test_whatever_labels_and_values_are_the_page_is_shown(label: str, value: float) -> None:
    metrics = MetricSet()
    hostile, plain = metrics.gauge("hostile", "Hostile", ("name",)), metrics.gauge("plain", "Plain")
    with metrics.guard("test"):
        hostile.labels(label).set(value)
    plain.set(2)
    assert b"volcano_plain 2.0\n" in metrics.text()
