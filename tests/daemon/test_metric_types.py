"""What the metrics of scheduler and controllers have in common."""

from __future__ import annotations

import pytest

from stromboli.daemon.metric_types import MetricSet, exponential, forget


def test_buckets_grow_by_a_factor() -> None:
    assert exponential(1, 100, 3) == pytest.approx([1, 10, 100])


def test_counters_are_shown_under_the_very_names_they_were_given() -> None:
    metrics = MetricSet()
    bare = metrics._counter("jobs_done", "Jobs", ("queue",))
    metrics._counter("tries_total", "Tries", prefix="our_").inc()
    bare.labels("a").inc(3)
    bare.labels("b").inc()
    forget(bare, "b")
    forget(bare, "never there")
    assert metrics.text().decode().splitlines() == [
        "# HELP volcano_jobs_done Jobs",
        "# TYPE volcano_jobs_done counter",
        'volcano_jobs_done{queue="a"} 3.0',
        "# HELP our_tries_total Tries",
        "# TYPE our_tries_total counter",
        "our_tries_total 1.0",
    ]
