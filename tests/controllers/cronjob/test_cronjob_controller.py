"""CronJobs at work: on time, once, and through crashes and lost answers."""

from __future__ import annotations

import asyncio
from typing import Any

from stromboli.controllers.cronjob.controller import CronJobController
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import (
    NOW,
    SettableClock,
    names,
    running_controllers,
    wait_until,
    wait_until_idle,
)

MINUTE = int(NOW) // 60


def cron(api: InMemoryApi, name: str = "c", schedule: str = "*/5 * * * *", **spec: Any) -> None:
    meta = {"name": name, "namespace": "ns", "creationTimestamp": "2025-12-31T23:59:30Z"}
    api.put(
        "cronjobs",
        {
            "metadata": meta,
            "spec": {"schedule": schedule, "timeZone": "UTC", "jobTemplate": {"spec": {}}, **spec},
        },
    )


def finish(api: InMemoryApi, name: str, phase: str = "Completed") -> None:
    job = api.find("jobs", name, "ns")
    api.put(
        "jobs", {**job, "status": {"state": {"phase": phase, "lastTransitionTime": "2026-01-01T00:01:00Z"}}}
    )


def status(api: InMemoryApi) -> Any:
    return api.find("cronjobs", "c", "ns").get("status", {})


def test_a_job_is_started_when_its_time_comes_and_only_once() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW - 0.05)
        cron(api)
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until_idle(api, runner)
            assert api.every("jobs") == []
            clock.now = NOW + 0.1
            await wait_until(lambda: bool(api.every("jobs")))
            await wait_until_idle(api, runner)
            assert names(api.every("jobs")) == [f"c-{MINUTE}"]
            assert status(api)["lastScheduleTime"] == "2026-01-01T00:00:00Z"
            assert [reference["name"] for reference in status(api)["active"]] == [f"c-{MINUTE}"]
            assert len(api.writes) == 2
            finish(api, f"c-{MINUTE}")
            await wait_until_idle(api, runner)
            assert status(api)["active"] == []
            assert status(api)["lastSuccessfulTime"] == "2026-01-01T00:01:00Z"
            writes = len(api.writes)
            await wait_until_idle(api, runner)
            assert len(api.writes) == writes
        assert [reason for reason, _ in api.events] == ["SuccessfulCreate", "SawCompletedJob"]

    asyncio.run(run())


def test_a_controller_that_dies_before_it_wrote_the_status_starts_no_second_job() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW + 1)
        cron(api)

        def die(request: Request) -> None:
            if request.method == "PATCH":
                raise ApiError(422, "Invalid", "dead")

        api.before = die
        async with running_controllers(api, CronJobController, clock=clock):
            await wait_until(lambda: bool(api.every("jobs")))
            finish(api, f"c-{MINUTE}")
        api.before = lambda _: None
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until_idle(api, runner)
        assert names(api.every("jobs")) == [f"c-{MINUTE}"]
        assert status(api)["lastScheduleTime"] == "2026-01-01T00:00:00Z"

    asyncio.run(run())


def test_an_event_is_recorded_once_though_the_write_after_it_is_retried() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW + 1)
        cron(api)
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until_idle(api, runner)
            conflicts = [ApiError(409, "Conflict", "changed")] * 3

            def refuse(request: Request) -> None:
                if request.method == "PATCH" and "/cronjobs" in request.path and conflicts:
                    raise conflicts.pop()

            api.before = refuse
            finish(api, f"c-{MINUTE}")
            await wait_until(lambda: "lastSuccessfulTime" in status(api))
            await wait_until_idle(api, runner)
        counts = {event["reason"]: event["count"] for event in api.every("events")}
        assert counts == {"SuccessfulCreate": 1, "SawCompletedJob": 1}

    asyncio.run(run())


def test_a_lost_answer_makes_no_second_job_and_the_first_is_adopted() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW + 1)
        cron(api)
        lost = iter([True])

        def lose(request: Request) -> None:
            if request.method == "POST" and "/jobs" in request.path and next(lost, False):
                raise NoResponse("lost")

        api.after = lose
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until(lambda: bool(status(api).get("active")))
            await wait_until_idle(api, runner)
        assert names(api.every("jobs")) == [f"c-{MINUTE}"]
        assert all(reason != "ForeignJob" for reason, _ in api.events)

    asyncio.run(run())


def test_a_job_of_somebody_elses_in_the_way_is_told() -> None:
    async def run() -> None:
        api = InMemoryApi()
        cron(api)
        api.put("jobs", {"metadata": {"name": f"c-{MINUTE}", "namespace": "ns"}})
        async with running_controllers(api, CronJobController, clock=SettableClock(NOW + 1)) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
        assert api.events[0][0] == "ForeignJob"
        assert "active" not in status(api)

    asyncio.run(run())


def test_a_job_that_is_refused_is_told_and_tried_again() -> None:
    async def run() -> None:
        api = InMemoryApi()
        cron(api)
        refusals = iter([ApiError(403, "Forbidden", "exceeded quota: small")])

        def refuse(request: Request) -> None:
            if request.method == "POST" and "/jobs" in request.path and (error := next(refusals, None)):
                raise error

        api.before = refuse
        async with running_controllers(api, CronJobController, clock=SettableClock(NOW + 1)) as runner:
            await wait_until(lambda: bool(api.every("jobs")))
            await wait_until_idle(api, runner)
        assert ("FailedCreate", "Error creating job: exceeded quota: small") in api.events

    asyncio.run(run())


def test_a_job_that_is_rejected_for_good_is_told_and_the_next_time_is_served() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW + 1)
        cron(api)

        def reject(request: Request) -> None:
            if request.method == "POST" and f'"c-{MINUTE}"'.encode() in (request.body or b""):
                raise ApiError(422, "Invalid", "tasks is required")

        api.before = reject
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
            assert runner.controllers[0].queue.failing == 0
            clock.now = NOW + 301
            cron(api, suspend=False)
            await wait_until(lambda: names(api.every("jobs")) == [f"c-{MINUTE + 5}"])
        assert ("FailedCreate", "Error creating job: tasks is required") in api.events

    asyncio.run(run())


def test_a_status_that_is_rejected_for_good_is_told_and_not_sent_again() -> None:
    async def run() -> None:
        api = InMemoryApi()
        cron(api)

        def reject(request: Request) -> None:
            if request.method == "PATCH":
                raise ApiError(413, "", "etcdserver: request is too large")

        api.before = reject
        async with running_controllers(api, CronJobController, clock=SettableClock(NOW + 1)) as runner:
            await wait_until(lambda: any(reason == "SyncCronJob" for reason, _ in api.events))
            await wait_until_idle(api, runner)
            assert runner.controllers[0].queue.failing == 0
        told = "SyncCronJob CronJob failed for etcdserver: request is too large"
        assert api.events.count(("SyncCronJob", told)) == 1

    asyncio.run(run())


def test_a_job_of_somebody_elses_that_the_status_names_is_not_replaced() -> None:
    async def run() -> None:
        api = InMemoryApi()
        cron(api, concurrencyPolicy="Replace")
        api.put("jobs", {"metadata": {"name": "theirs", "namespace": "ns", "uid": "u9"}})
        named = api.find("cronjobs", "c", "ns")
        active = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "theirs", "uid": "u9"}
        api.put("cronjobs", {**named, "status": {"active": [{**active, "namespace": "ns"}]}})
        async with running_controllers(api, CronJobController, clock=SettableClock(NOW + 1)) as runner:
            await wait_until(lambda: len(api.every("jobs")) == 2)
            await wait_until_idle(api, runner)
        assert names(api.every("jobs")) == [f"c-{MINUTE}", "theirs"]

    asyncio.run(run())


def test_replacing_deletes_the_job_before() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW + 1)
        cron(api, concurrencyPolicy="Replace")
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until_idle(api, runner)
            clock.now = NOW + 301
            cron(api, concurrencyPolicy="Replace", suspend=False)
            await wait_until(lambda: names(api.every("jobs")) == [f"c-{MINUTE + 5}"])
            await wait_until_idle(api, runner)
        assert [reference["name"] for reference in status(api)["active"]] == [f"c-{MINUTE + 5}"]

    asyncio.run(run())


def test_another_schedule_starts_nothing_for_times_that_are_past() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW - 1)
        cron(api, schedule="0 12 * * *")
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until_idle(api, runner)
            clock.now = NOW + 90
            cron(api, schedule="* * * * *")
            await wait_until_idle(api, runner)
            assert api.every("jobs") == []
            clock.now = NOW + 121
            cron(api, schedule="* * * * *", suspend=False)
            await wait_until(lambda: bool(api.every("jobs")))
        assert names(api.every("jobs")) == [f"c-{MINUTE + 2}"]

    asyncio.run(run())


def test_surplus_jobs_are_deleted_and_told() -> None:
    async def run() -> None:
        api, clock = InMemoryApi(), SettableClock(NOW + 1)
        cron(api, successfulJobsHistoryLimit=0)
        async with running_controllers(api, CronJobController, clock=clock) as runner:
            await wait_until_idle(api, runner)
            finish(api, f"c-{MINUTE}")
            await wait_until(lambda: not api.every("jobs"))
            await wait_until_idle(api, runner)
        assert ("SuccessfulDelete", f"Deleted job c-{MINUTE}") in api.events
        assert status(api)["active"] == []

    asyncio.run(run())
