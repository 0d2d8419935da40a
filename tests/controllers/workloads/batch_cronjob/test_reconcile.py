"""One reconcile of a CronJob of `batch/v1`: what is due, what may run beside what, what is kept."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from stromboli.controllers.cronjob.cron_outcome import MAX_ACTIVE, RESYNC, START_DELAY, job_name
from stromboli.controllers.workloads.batch_cronjob.batch_cronjob_kind import BatchCronJob
from stromboli.controllers.workloads.batch_cronjob.reconcile import (
    SCHEDULED_AT,
    Outcome,
    reconcile,
    reference_to,
    started,
)
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob


def at(text: str) -> float:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00").timestamp()


def stamp(text: str) -> str:
    return f"2026-01-01T{text}Z"


def cron(schedule: str = "0 * * * *", active: Any = (), status: Any = None, **spec: Any) -> BatchCronJob:
    meta = {"name": "c", "namespace": "ns", "uid": "cron-uid", "creationTimestamp": stamp("00:30:00")}
    template = {"metadata": {"labels": {"l": "1"}, "name": "ignored"}, "spec": {"parallelism": 3}}
    content = {"schedule": schedule, "timeZone": "UTC", "jobTemplate": template, **spec}
    content = {"metadata": meta, "spec": content, "status": status or {}}
    made = msgspec.convert(content, BatchCronJob)
    made.status.active = tuple(reference_to(job) for job in active)
    return made


def job(name: str, end: str = "", started_at: str = "", completed_at: str = "") -> BatchJob:
    status: dict[str, Any] = {"conditions": [{"type": end, "status": "True"}]} if end else {}
    if started_at:
        status["startTime"] = stamp(started_at)
    if completed_at:
        status["completionTime"] = stamp(completed_at)
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return msgspec.convert({"metadata": meta, "status": status}, BatchJob)


def reasons(outcome: Outcome) -> list[str]:
    return [event.reason for event in outcome.events]


@pytest.mark.parametrize(
    ("now", "last", "due"),
    [
        ("00:59:59", None, None),
        ("01:00:00", None, "01:00:00"),
        ("05:10:00", None, "05:00:00"),
        ("05:10:00", "05:00:00", None),
        ("05:10:00", "03:00:00", "05:00:00"),
    ],
)
def test_the_last_time_that_has_passed_is_due(now: str, last: str | None, due: str | None) -> None:
    status = {"lastScheduleTime": stamp(last)} if last else None
    outcome = reconcile(cron(status=status), [], at(now))
    assert outcome.due == (at(due) if due else None)


def test_a_job_is_made_of_the_template() -> None:
    owner = cron(timeZone="Europe/Rome")
    outcome = reconcile(owner, [], at("02:00:01"))
    assert outcome.start is not None
    assert outcome.start["metadata"]["name"] == job_name(owner, at("02:00:00")) == f"c-{29453880}"
    assert outcome.start["metadata"]["labels"] == {"l": "1"}
    assert outcome.start["metadata"]["annotations"] == {SCHEDULED_AT: "2026-01-01T03:00:00+01:00"}
    assert outcome.start["spec"] == {"parallelism": 3}
    assert outcome.requeue_after == RESYNC
    status = started(outcome, job("c-1"), at("02:00:00"))
    assert [reference.name for reference in status.active] == ["c-1"]
    assert status.last_schedule_time is not None
    assert status.last_schedule_time.timestamp() == at("02:00:00")


def test_it_is_looked_at_again_just_after_the_next_time() -> None:
    assert reconcile(cron(), [], at("00:58:00")).requeue_after == 120 + START_DELAY


@pytest.mark.parametrize(("deadline", "starts"), [(599, False), (600, False), (601, True)])
def test_after_the_deadline_a_time_is_not_made_up_for(deadline: int, starts: bool) -> None:
    outcome = reconcile(cron(startingDeadlineSeconds=deadline), [], at("02:10:00"))
    assert (outcome.start is not None) == starts


def test_many_missed_times_are_told_of_unless_they_are_past_the_deadline() -> None:
    assert reasons(reconcile(cron("* * * * *"), [], at("03:00:00"))) == ["TooManyMissedTimes"]
    short = cron("* * * * *", startingDeadlineSeconds=600)
    assert reasons(reconcile(short, [], at("03:00:00"))) == []


@pytest.mark.parametrize(
    ("policy", "starts", "deleted", "told"),
    [("Allow", True, [], []), ("Forbid", False, [], ["JobAlreadyActive"]), ("Replace", True, ["old"], [])],
)
def test_the_concurrency_policy(policy: str, starts: bool, deleted: list[str], told: list[str]) -> None:
    running = job("old")
    outcome = reconcile(cron(active=[running], concurrencyPolicy=policy), [running], at("02:00:00"))
    assert (outcome.start is not None) == starts
    assert [each.name for each in outcome.delete] == deleted
    assert reasons(outcome) == told
    assert len(outcome.status.active) == (policy != "Replace")


def test_no_more_jobs_run_at_a_time_than_a_status_can_list() -> None:
    running = [job(f"j{number}") for number in range(MAX_ACTIVE)]
    outcome = reconcile(cron(active=running), running, at("02:00:00"))
    assert (outcome.start, reasons(outcome)) == (None, ["TooManyActiveJobs"])


def test_jobs_that_ended_or_went_are_no_longer_active() -> None:
    done = job("done", "Complete", completed_at="01:10:00")
    jobs = [done, job("mine"), job("foreign")]
    owner = cron(active=[done, job("mine"), job("gone")], suspend=True)
    outcome = reconcile(owner, jobs, at("02:00:00"))
    assert [reference.name for reference in outcome.status.active] == ["mine"]
    assert reasons(outcome) == ["SawCompletedJob", "MissingJob", "UnexpectedJob"]
    assert outcome.status.last_successful_time is not None
    assert outcome.status.last_successful_time.timestamp() == at("01:10:00")


def test_the_oldest_ended_jobs_go_beyond_the_limits() -> None:
    jobs = [
        job("b", "Complete", "02:00:00"),
        job("a", "Complete", "03:00:00"),
        job("c", "Complete", "01:00:00"),
        job("f", "Failed", "01:00:00"),
        job("r"),
    ]
    owner = cron(suspend=True, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    assert [each.name for each in reconcile(owner, jobs, at("04:00:00")).delete] == ["c", "b", "f"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"schedule": "nonsense"}, ["UnparseableSchedule"]),
        ({"schedule": "0 0 31 2 *"}, ["UnparseableSchedule"]),
        ({"timeZone": "Moon/Sea"}, ["UnknownTimeZone"]),
        ({"schedule": "TZ=UTC 0 * * * *"}, ["UnsupportedSchedule"]),
    ],
)
def test_a_schedule_that_cannot_be_told_starts_nothing_and_says_so(spec: Any, told: list[str]) -> None:
    outcome = reconcile(cron(**spec), [], at("00:45:00"))
    assert (outcome.start, reasons(outcome)) == (None, told)


def test_times_of_a_schedule_from_before_it_was_set_are_not_made_up_for() -> None:
    assert reconcile(cron(), [], at("02:10:00"), since=at("02:05:00")).start is None
    assert reconcile(cron(), [], at("03:00:00"), since=at("02:05:00")).due == at("03:00:00")


def test_a_cron_job_that_is_being_deleted_starts_nothing() -> None:
    owner = cron()
    owner.metadata.deletion_timestamp = owner.metadata.creation_timestamp
    assert reconcile(owner, [], at("02:00:00")).start is None
