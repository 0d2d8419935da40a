"""When a cycle starts: soon after news, later in a storm, never past the period."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.scheduler.mirror.news import GATHER, NOW, PAUSE, REST, STORM, Gathering

LATER = 1.0


def gathering(cost: float = 0.002, period: float = 60.0, on_change: bool = True) -> Gathering:
    """A cycle that cost so long ended at 0."""
    fresh = Gathering(period, on_change)
    fresh.cycle_ended(0.0, cost)
    return fresh


def test_the_first_cycle_is_due_at_once() -> None:
    assert Gathering(60.0).due == -math.inf


def test_without_news_the_period_decides() -> None:
    assert gathering().due == 60.0


def test_lone_news_waits_some_milliseconds() -> None:
    quiet = gathering()
    quiet.note(10.0, 10.0 + PAUSE, NOW)
    assert quiet.due == 10.0 + GATHER == pytest.approx(10.010)


def test_news_that_keeps_coming_is_gathered_in_proportion_to_what_a_cycle_costs() -> None:
    storm = gathering(cost=0.1)
    for number in range(1, 1000):
        storm.note(10.0, 10.0 + number * 0.001, NOW)
    assert storm.due == pytest.approx(10.0 + STORM * 0.1)


def test_a_pause_ends_the_gathering() -> None:
    storm = gathering(cost=0.1)
    for number in range(20):
        storm.note(10.0, 10.0 + number * 0.002, NOW)
    assert storm.due == pytest.approx(10.038 + PAUSE)


def test_cycles_leave_time_for_what_they_decided() -> None:
    busy = gathering(cost=0.5)
    busy.note(0.0, 0.0, NOW)
    assert busy.due == 0.5 * REST


def test_what_may_wait_is_no_reason_before_its_time_and_other_news_takes_it_along() -> None:
    calm = gathering()
    calm.note(10.0, 10.0, LATER)
    calm.note(10.5, 10.5, LATER)
    assert calm.due == 11.0
    calm.note(10.6, 10.6, NOW)
    assert calm.due == 10.6 + GATHER
    calm.cycle_ended(10.62, 0.01)
    assert calm.due == 70.62


def test_nothing_that_may_wait_for_ever_starts_a_cycle() -> None:
    calm = gathering()
    calm.note(10.0, 10.0, math.inf)
    assert calm.due == 60.0


def test_by_the_period_alone_news_makes_no_difference() -> None:
    fixed = gathering(period=1.0, on_change=False)
    fixed.note(0.1, 0.1, NOW)
    assert fixed.due == 1.0


@given(
    st.floats(0.0, 3.0),
    st.floats(0.0, 10.0),
    st.lists(st.tuples(st.floats(0.0, 2.0), st.sampled_from((NOW, 0.1, LATER, math.inf))), max_size=20),
)
@example(0.0, 1.0, [(0.0, NOW)])
@example(2.0, 1.0, [(0.5, NOW), (0.0, LATER)])
def test_no_change_waits_longer_than_it_may(
    cost: float, period: float, changes: list[tuple[float, float]]
) -> None:
    """Whatever comes when, a cycle is due within what the change may wait, the gathering and the rest."""
    tried, now = gathering(cost, period), 0.0
    for pause, patience in changes:
        now += pause
        if now >= tried.due:
            break
        tried.note(now, now, patience)
        slack = max(GATHER, STORM * cost) if patience <= NOW else patience
        assert tried.due <= max(now + slack, REST * cost)
        assert tried.due <= period
