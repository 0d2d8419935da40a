"""The scheduler's own metric types: durations by stage, taken in many at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest

from stromboli.scheduler.scheduler_metrics import StageHistogram

BUCKETS = (0.5, 10.0, 500.0)


@given(st.lists(st.lists(st.integers(0, 1000).map(float), max_size=20), max_size=3))
def test_a_stage_histogram_is_shown_like_one_of_the_librarys(batches: list[list[float]]) -> None:
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    stages = StageHistogram("stage_ms", "Stages", BUCKETS, ours)
    library = Histogram("stage_ms", "Stages", ("stage",), registry=theirs, buckets=BUCKETS)
    for batch in batches:
        stages.observe("Scoring", *batch)
        for duration in batch:
            library.labels("Scoring").observe(duration)
    assert generate_latest(ours) == generate_latest(theirs)
