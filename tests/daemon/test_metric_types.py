"""Metric types that the library does not have: they are shown as its own are."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from stromboli.daemon.metric_types import ExactCounter, exponential, forget


def test_buckets_grow_by_a_factor() -> None:
    assert exponential(1, 100, 3) == pytest.approx([1, 10, 100])


def test_an_exact_counter_is_a_counter_under_the_very_name_it_was_given() -> None:
    registry = CollectorRegistry()
    counter = ExactCounter("jobs_done", "Jobs", ("queue",), registry=registry)
    counter.labels("a").inc()
    counter.labels("a").inc(2)
    counter.labels("b").inc()
    forget(counter, "b")
    forget(counter, "never there")
    (family,) = registry.collect()
    assert (family.name, family.type) == ("jobs_done", "counter")
    assert [(sample.name, sample.labels, sample.value) for sample in family.samples] == [
        ("jobs_done", {"queue": "a"}, 3.0)
    ]
