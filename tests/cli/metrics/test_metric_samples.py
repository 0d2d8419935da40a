"""Sums, quantiles and differences of what metrics say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics.metric_samples import Distribution, Quantile, Samples

BOUNDS = (1.0, 2.0, 5.0, 10.0, 50.0)


def samples(text: str) -> Samples:
    return Samples.of_page(text.encode())[0]


def observed(values: list[float]) -> Distribution:
    registry = CollectorRegistry()
    histogram = Histogram(names.CYCLE, "Cycles", buckets=BOUNDS, registry=registry)
    for value in values:
        histogram.observe(value)
    found = Samples.of_page(generate_latest(registry))[0].distribution(names.CYCLE)
    assert found is not None
    return found


@given(st.lists(st.floats(0, 49), min_size=1, max_size=40), st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_of_the_value_at_its_rank(values: list[float], part: float) -> None:
    exact = sorted(values)[max(math.ceil(part * len(values)) - 1, 0)]
    lower = max((bound for bound in (0.0, *BOUNDS) if bound < exact), default=0.0)
    upper = min(bound for bound in BOUNDS if bound >= exact)
    quantile = observed(values).quantile(part)
    assert not quantile.is_more
    assert lower - 1e-6 <= quantile.value <= upper + 1e-6


def test_a_quantile_beyond_all_buckets_is_told_as_such() -> None:
    spread = observed([1.0, 70.0, 80.0])
    assert spread.quantile(0.99) == Quantile(50.0, is_more=True)
    assert spread.mean == pytest.approx(151 / 3)


def test_counters_and_distributions_are_told_by_interval_and_gauges_as_they_are() -> None:
    def page(attempts: int, cycles: int, share: float) -> Samples:
        return samples(
            f'{names.ATTEMPTS}{{result="scheduled"}} {attempts}\n{names.STARTED} 17\n'
            f'{names.CYCLE}_bucket{{le="1.0"}} {cycles}\n{names.CYCLE}_bucket{{le="+Inf"}} {cycles}\n'
            f'{names.CYCLE}_sum {cycles}\n{names.CYCLE}_count {cycles}\n{names.QUEUE_SHARE}{{queue_name="a"}} {share}\n'
        )

    added = page(12, 30, 0.7).since(page(10, 25, 0.5), seconds=5.0)
    assert added.seconds == 5.0
    assert added.by_label(names.ATTEMPTS, "result") == {"scheduled": 2.0}
    assert added.by_label(names.QUEUE_SHARE, "queue_name") == {"a": 0.7}
    assert added.distribution(names.CYCLE) == Distribution(((1.0, 5.0),), 5.0, 5.0)


def test_a_process_that_began_anew_is_counted_from_zero() -> None:
    text = "{} 5\nprocess_start_time_seconds {}\n"
    before, after = samples(text.format(names.LOST_CYCLES, 1)), samples(text.format(names.LOST_CYCLES, 2))
    assert after.since(before, 1.0).value(names.LOST_CYCLES) == 5.0
    shrunk = samples(f"{names.LOST_CYCLES} 3\nprocess_start_time_seconds 1\n")
    assert shrunk.since(before, 1.0).value(names.LOST_CYCLES) == 3.0


def test_metrics_that_no_summary_needs_are_not_kept() -> None:
    text = 'volcano_job_share{job_ns="a",job_id="b"} 1\nstromboli_leader 1\n'
    found, page = Samples.of_page(text.encode())
    assert len(page.samples) == 1
    assert (found.has(names.LEADER), found.has(names.CYCLE), found.value(names.CYCLE)) == (True, False, None)
