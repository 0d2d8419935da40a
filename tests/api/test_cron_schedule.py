"""Schedules and the times they stand for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.cron_schedule import BadSchedule, read_schedule, read_zone

START = datetime(2024, 5, 15, 12, 34, 56, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2024-05-15 12:35"),
        ("*/15 * * * *", "2024-05-15 12:45"),
        ("5/20 * * * *", "2024-05-15 12:45"),
        ("0 2 * * *", "2024-05-16 02:00"),
        ("0 2 ? * SUN", "2024-05-19 02:00"),
        ("0 0 29 feb *", "2028-02-29 00:00"),
        ("@hourly", "2024-05-15 13:00"),
        ("@weekly", "2024-05-19 00:00"),
        ("@yearly", "2025-01-01 00:00"),
        ("0 0 13 * 5", "2024-05-17 00:00"),  # either day
        ("0 0 * * 5", "2024-05-17 00:00"),
        ("0 0 */2 * 1", "2024-05-17 00:00"),  # a choice of days, or Mondays
    ],
)
def test_the_next_time(schedule: str, expected: str) -> None:
    following = read_schedule(schedule).after(START)
    assert following is not None
    assert following.strftime("%Y-%m-%d %H:%M") == expected


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * * 7",
        "*/0 * * * *",
        "5-1 * * * *",
        "@often",
        "@every",
        "@every soon",
        "0 0 L * *",
        "0 0 * * 5#2",
        "0 0 31 2 *",
        "a b c d e",
        "1,,2 * * * *",
        "x" * 500,
    ],
)
def test_what_is_no_schedule(schedule: str) -> None:
    with pytest.raises(BadSchedule):
        read_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "told"),
    [
        ("61 * * * *", "minute must be 0 to 59, not 61"),
        ("* 1,20-24 * * *", "hour must be 0 to 23, not 20-24"),
        ("* * * 13 *", "month must be 1 to 12, not 13"),
        ("* * * * 7", "day of week must be 0 to 6, not 7"),
        ("* * noon * *", "'NOON' is no day, which is 1 to 31, a range, a list or *"),
    ],
)
def test_a_wrong_field_is_named_with_what_it_may_be(schedule: str, told: str) -> None:
    with pytest.raises(BadSchedule) as error:
        read_schedule(schedule)
    assert str(error.value) == told


def test_an_interval_is_counted_in_whole_seconds() -> None:
    assert read_schedule("@every 1h30m").after(START) == START + timedelta(minutes=90)
    assert read_schedule("@every 10ms").after(START) == START + timedelta(seconds=1)


def test_when_clocks_change_no_day_is_left_out_and_none_runs_twice() -> None:
    daily, zone = read_schedule("30 2 * * *"), ZoneInfo("Europe/Rome")
    spring = [datetime(2024, 3, 30, 0, 0, tzinfo=zone)]
    autumn = [datetime(2024, 10, 26, 0, 0, tzinfo=zone)]
    for times in (spring, autumn):
        for _ in range(3):
            following = daily.after(times[-1])
            assert following is not None
            times.append(following)
    assert [f"{time:%d %H:%M}" for time in spring[1:]] == ["30 02:30", "31 03:00", "01 02:30"]
    assert [f"{time:%d %H:%M}" for time in autumn[1:]] == ["26 02:30", "27 02:30", "28 02:30"]


@given(st.text(max_size=40))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = read_schedule(text)
    except BadSchedule:
        return
    following = schedule.after(START)
    assert following is None or following > START


@given(st.text(max_size=40))
def test_any_name_is_a_zone_or_none(name: str) -> None:
    assert read_zone(name) is None or isinstance(read_zone(name), ZoneInfo)
