"""Due times against a naive stepper, over changes of clocks and leap days."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api.cron_schedule import BadSchedule
from stromboli.controllers.cronjob import schedule_times
from stromboli.controllers.cronjob.schedule_times import BadZone, ScheduleTimes, local_zone, read_times
from tests.number_of_examples import scaled

ZONES = ["UTC", "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
SCHEDULES = [
    "* * * * *",
    "*/7 * * * *",
    "30 1 * * *",
    "30 2 * * *",
    "0 */3 * * *",
    "15 2 * 3,10,11 0",
    "0 0 31 * *",
    "0 0 29 2 *",
    "59 23 1 * 1",
    "* 2 * * *",
    "@hourly",
    "@daily",
    "@weekly",
    "@every 90m",
    "@every 37s",
]


def moment(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def stepped(all_times: ScheduleTimes, now: float, most: int = 3000) -> list[float]:
    """Every moment up to now, one by one; the first after now comes last."""
    moments: list[float] = []
    at: float | None = all_times.since
    for _ in range(most):
        following = (
            all_times.schedule.after(datetime.fromtimestamp(at, all_times.zone)) if at is not None else None
        )
        at = following.timestamp() if following is not None else None
        if at is None:
            return moments
        moments.append(at)
        if at > now:
            return moments
    raise AssertionError("too many")


@settings(max_examples=scaled(75), deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    zone=st.sampled_from(ZONES),
    since=st.integers(int(moment("2023-12-20")), int(moment("2026-12-01"))),
    span=st.integers(0, 36) | st.integers(0, 30 * 3600) | st.integers(0, 9 * 24 * 3600),
)
def test_the_last_and_the_next_time_are_those_that_one_finds_step_by_step(
    schedule: str, zone: str, since: int, span: int
) -> None:
    if schedule in ("* * * * *", "@every 37s"):
        span = min(span, 24 * 3600)
    times, now = read_times(schedule, zone, since), float(since + span)
    every = stepped(times, now, 15_000)
    passed = [time for time in every if time <= now]
    assert times.last(now) == (passed[-1] if passed else None)
    assert times.next(now) == (every[-1] if every and every[-1] > now else None)


@settings(max_examples=scaled(30), deadline=None)
@given(
    schedule=st.sampled_from([schedule for schedule in SCHEDULES if not schedule.startswith("@every")]),
    zone=st.sampled_from(ZONES),
    change=st.sampled_from(
        ["2025-03-09", "2025-03-30", "2025-04-06", "2025-10-05", "2025-10-26", "2025-11-02"]
    ),
    since=st.integers(-24 * 3600, 24 * 3600),
    span=st.integers(0, 24 * 3600),
)
def test_the_same_holds_where_clocks_change(
    schedule: str, zone: str, change: str, since: int, span: int
) -> None:
    begin = moment(change) + since
    times, now = read_times(schedule, zone, begin), begin + span
    passed = [time for time in stepped(times, now, 3000) if time <= now]
    assert times.last(now) == (passed[-1] if passed else None)


def test_years_of_missed_times_are_passed_over_at_once() -> None:
    times = read_times("* * * 1 *", "Europe/Rome", moment("1995-06-01"))
    assert times.last(moment("2025-12-24 12:00")) == moment("2025-01-31 23:59", "Europe/Rome")
    assert times.missed(moment("2025-12-24")) > 1_000_000


@pytest.mark.parametrize(
    ("schedule", "since", "due"),
    [
        (
            "30 2 * * *",
            "2025-03-29 12:00",
            ["2025-03-30 03:00", "2025-03-31 02:30"],
        ),  # 02:00 to 03:00 is left out
        (
            "30 2 * * *",
            "2025-10-25 12:00",
            ["2025-10-26 02:30", "2025-10-27 02:30"],
        ),  # and comes twice in autumn
        ("0 * * * *", "2025-03-30 01:30", ["2025-03-30 03:00", "2025-03-30 04:00"]),
    ],
)
def test_what_a_change_of_clocks_does_to_a_time(schedule: str, since: str, due: list[str]) -> None:
    zone = ZoneInfo("Europe/Rome")
    times = read_times(schedule, "Europe/Rome", moment(since, "Europe/Rome"))
    at, seen = times.since, []
    for _ in due:
        following = times.next(at)
        assert following is not None
        at = following
        seen.append(datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M"))
    assert seen == due


def test_every_counts_from_the_last_time() -> None:
    begin = moment("2026-01-01 00:00:07")
    times = read_times("@every 90m", "", begin)
    assert times.last(begin + 5399) is None
    assert times.last(begin + 5400) == begin + 5400
    assert times.last(begin + 5400 * 3 + 1) == begin + 5400 * 3
    assert times.next(begin + 5400) == begin + 10800
    assert times.missed(begin + 5400 * 3 + 1) == 3


def test_a_zone_within_the_schedule_counts_before_any_other() -> None:
    times = read_times("CRON_TZ=Asia/Tokyo 0 9 * * *", "Europe/Rome", moment("2026-01-01"))
    assert times.next(moment("2026-01-01 01:00")) == moment("2026-01-02 00:00")


@pytest.mark.parametrize(
    ("schedule", "zone", "error"),
    [("often", "", BadSchedule), ("* * * * *", "Mars/Base", BadZone), ("TZ=X * * * * *", "", BadZone)],
)
def test_what_makes_no_sense_is_said(schedule: str, zone: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_times(schedule, zone, 0.0)


def test_no_moment_after_the_end_of_all_calendars() -> None:
    assert read_times("0 0 29 2 *", "UTC", 0.0).next(moment("9999-12-31")) is None


def test_the_local_zone_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert str(local_zone()) == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "Nowhere/Land")
    assert local_zone() is UTC
    monkeypatch.delenv("TZ")
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Rome")
    monkeypatch.setattr(schedule_times, "LOCAL", link)
    assert str(local_zone()) == "Europe/Rome"
    monkeypatch.setattr(schedule_times, "LOCAL", tmp_path / "none")
    assert local_zone() is UTC
