"""One reconcile at a CronJob: what is due, who may run beside whom, what is kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from stromboli.api.types.cronjob import CronJob
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.cronjob.cron_outcome import START_DELAY, job_name
from stromboli.controllers.cronjob.reconcile import Outcome, reconcile, started

AT = "volcano.sh/cronjob-scheduled-timestamp"


def at(text: str) -> float:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00").timestamp()


def stamp(text: str) -> str:
    return f"2026-01-01T{text}Z"


def cron(schedule: str = "0 * * * *", status: Any = None, **spec: Any) -> CronJob:
    return msgspec.convert(
        {
            "metadata": {
                "name": "c",
                "namespace": "ns",
                "uid": "cron-uid",
                "creationTimestamp": stamp("00:30:00"),
            },
            "spec": {
                "schedule": schedule,
                "timeZone": "UTC",
                "jobTemplate": {
                    "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}, "name": "ignored"},
                    "spec": {"minAvailable": 3, "tasks": [{"anything": ["is", "kept"]}]},
                },
                **spec,
            },
            "status": status or {},
        },
        CronJob,
    )


def job(
    name: str, phase: str = "Running", created: str = "01:00:00", scheduled: str = "01:00:00", **meta: Any
) -> Job:
    marks = {AT: stamp(scheduled)} if scheduled else {}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": f"u-{name}",
                "creationTimestamp": stamp(created),
                "annotations": marks,
                **meta,
            },
            "status": {"state": {"phase": phase, "lastTransitionTime": stamp(created)}},
        },
        Job,
    )


def active(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "uid": f"u-{name}"} for name in names]


def reasons(outcome: Outcome) -> list[str]:
    return [word.reason for word in outcome.events]


def test_nothing_is_due_before_the_first_time() -> None:
    outcome = reconcile(cron(), [], at("00:59:59"))
    assert outcome.start is None
    assert outcome.requeue_after == pytest.approx(1 + START_DELAY)


def test_a_job_is_made_for_the_time_that_is_due() -> None:
    outcome = reconcile(cron(), [], at("01:00:00"))
    assert outcome.start == {
        "metadata": {
            "name": f"c-{int(at('01:00:00')) // 60}",
            "namespace": "ns",
            "labels": {"l": "1"},
            "annotations": {"a": "2", AT: stamp("01:00:00")},
            "ownerReferences": [
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "kind": "CronJob",
                    "name": "c",
                    "uid": "cron-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"minAvailable": 3, "tasks": [{"anything": ["is", "kept"]}]},
    }
    status = started(outcome, job("new"), at("01:00:00"))
    assert [reference.name for reference in status.active] == ["new"]
    assert status.last_schedule_time == datetime.fromisoformat(stamp("01:00:00"))


def test_the_stamp_of_a_job_is_in_the_time_zone_of_its_schedule() -> None:
    outcome = reconcile(cron("0 10 * * *", timeZone="Asia/Tokyo"), [], at("01:00:00"))
    assert outcome.start is not None
    assert outcome.start["metadata"]["annotations"][AT] == "2026-01-01T10:00:00+09:00"


def test_of_many_missed_times_the_last_is_served() -> None:
    outcome = reconcile(cron(), [], at("07:20:00"))
    assert outcome.due == at("07:00:00")
    assert reasons(outcome) == []
    outcome = reconcile(cron("* * * * *"), [], at("07:20:30"))
    assert outcome.due == at("07:20:00")
    assert reasons(outcome) == ["TooManyMissedTimes"]
    assert "too many missed start times: 410." in outcome.events[0].message


@pytest.mark.parametrize(("seconds", "starts"), [(None, True), (601, True), (600, False), (10, False)])
def test_a_time_that_is_missed_by_too_much_is_not_served(seconds: int | None, starts: bool) -> None:
    outcome = reconcile(cron(startingDeadlineSeconds=seconds), [], at("01:10:00"))
    assert (outcome.start is not None) is starts


def test_times_before_the_schedule_was_changed_are_not_made_up_for() -> None:
    assert reconcile(cron(), [], at("01:10:00"), since=at("01:05:00")).start is None
    assert reconcile(cron(), [], at("02:00:00"), since=at("01:05:00")).due == at("02:00:00")


def test_every_is_served_even_if_its_interval_is_longer_than_the_deadline() -> None:
    outcome = reconcile(cron("@every 1h", startingDeadlineSeconds=20), [], at("01:30:05"))
    assert outcome.due == at("01:30:00")


def test_what_was_served_is_not_served_again() -> None:
    done = {"lastScheduleTime": stamp("01:00:00")}
    assert reconcile(cron(status=done), [], at("01:10:00")).start is None


def test_a_status_that_was_not_written_is_read_off_the_jobs() -> None:
    left = job(job_name(cron(), at("01:00:00")), scheduled="01:00:00")
    outcome = reconcile(cron(), [left], at("01:10:00"))
    assert outcome.start is None
    assert [reference.name for reference in outcome.status.active] == [left.name]
    assert outcome.status.last_schedule_time == datetime.fromisoformat(stamp("01:00:00"))
    forged = job("x", scheduled="23:00:00")
    assert reconcile(cron(), [forged], at("01:10:00")).start is not None


def test_a_job_that_has_ended_leaves_the_list_and_its_success_is_noted() -> None:
    status = {"active": active("a", "b"), "lastScheduleTime": stamp("01:00:00")}
    outcome = reconcile(cron(status=status), [job("a", "Completed"), job("b")], at("01:10:00"))
    assert [reference.name for reference in outcome.status.active] == ["b"]
    assert reasons(outcome) == ["SawCompletedJob"]
    assert outcome.status.last_successful_time == datetime.fromisoformat(stamp("01:00:00"))


def test_references_to_jobs_that_are_gone_and_jobs_of_nobody_are_told() -> None:
    status = {"active": active("gone"), "lastScheduleTime": stamp("01:00:00")}
    outcome = reconcile(cron(status=status), [job("strange", scheduled="")], at("01:10:00"))
    assert reasons(outcome) == ["StaleReference", "OrphanedJob"]
    assert outcome.status.active == ()


@pytest.mark.parametrize(
    ("policy", "starts", "replaced", "event_reasons"),
    [
        ("Allow", True, [], []),
        ("Forbid", False, [], ["ForbidConcurrent"]),
        ("Replace", True, ["a"], ["ReplaceConcurrent"]),
    ],
)
def test_the_concurrency_policy(
    policy: str, starts: bool, replaced: list[str], event_reasons: list[str]
) -> None:
    status = {"active": active("a"), "lastScheduleTime": stamp("01:00:00")}
    outcome = reconcile(cron(status=status, concurrencyPolicy=policy), [job("a")], at("02:00:01"))
    assert (outcome.start is not None) is starts
    assert [job.name for job in outcome.replace] == replaced
    assert reasons(outcome) == event_reasons
    assert len(outcome.status.active) == (0 if replaced else 1)
    assert outcome.requeue_after is not None


@pytest.mark.parametrize("running", [999, 1000, 1500])
def test_no_job_is_started_beside_a_thousand_and_the_status_lists_no_more(running: int) -> None:
    jobs = [job(f"j{number:04}") for number in range(running)]
    known = {"active": active(*(job.name for job in jobs[:10])), "lastScheduleTime": stamp("01:00:00")}
    outcome = reconcile(cron(status=known), jobs, at("02:00:01"))
    assert len(outcome.status.active) == min(running, 1000)
    assert (outcome.start is not None) is (running < 1000)
    if running >= 1000:
        (event,) = outcome.events
        assert event.reason == "TooManyActiveJobs"
        assert "1000 are under way" in event.message
        assert event.message.endswith("j0000, j0001, j0002, j0003, j0004 and 995 more")
    again = reconcile(cron(status=msgspec.to_builtins(outcome.status)), jobs, at("02:00:02"))
    assert again.status.active == outcome.status.active


def test_a_forbidden_time_is_served_when_the_job_before_has_ended() -> None:
    status = {"active": active("a"), "lastScheduleTime": stamp("01:00:00")}
    outcome = reconcile(cron(status=status, concurrencyPolicy="Forbid"), [job("a", "Failed")], at("02:20:00"))
    assert outcome.due == at("02:00:00")


def test_nothing_is_started_while_suspended_but_all_else_goes_on() -> None:
    status = {"active": active("a")}
    outcome = reconcile(cron(status=status, suspend=True), [job("a", "Completed")], at("05:00:00"))
    assert (outcome.start, outcome.requeue_after) == (None, None)
    assert outcome.status.active == ()


def test_the_oldest_ended_jobs_go_when_there_are_too_many() -> None:
    jobs = [job(f"ok{n}", "Completed", created=f"01:0{n}:00") for n in range(5)]
    jobs += [
        job(f"bad{n}", phase, created=f"01:0{n}:00")
        for n, phase in enumerate(("Failed", "Terminated", "Failed"))
    ]
    outcome = reconcile(cron(successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1), jobs, at("00:40:00"))
    assert [job.name for job in outcome.prune] == ["ok0", "ok1", "bad0", "bad1"]
    assert reconcile(cron(), jobs, at("00:40:00")).prune == []
    only = reconcile(cron(successfulJobsHistoryLimit=0), jobs, at("00:40:00"))
    assert [job.name for job in only.prune] == [f"ok{n}" for n in range(5)]


def test_jobs_of_the_same_age_go_by_name() -> None:
    jobs = [job(name, "Completed") for name in "cab"]
    outcome = reconcile(cron(successfulJobsHistoryLimit=1), jobs, at("00:40:00"))
    assert [job.name for job in outcome.prune] == ["a", "b"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"timeZone": "Mars/Base"}, "InvalidTimeZone"),
        ({"schedule": "often"}, "UnParseableCronJobSchedule"),
        ({"schedule": "TZ=Asia/Tokyo 0 * * * *"}, "UnsupportedSchedule"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_told(spec: Any, reason: str) -> None:
    outcome = reconcile(cron(**{"schedule": "0 * * * *", **spec}), [], at("00:40:00"))
    assert reasons(outcome) == [reason]
    assert (outcome.requeue_after is None) is (reason != "UnsupportedSchedule")
