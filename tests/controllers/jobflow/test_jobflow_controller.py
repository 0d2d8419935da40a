"""Flows at work: job after job, with probes, to their end; and what templates tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from stromboli.controllers.jobflow import reconcile
from stromboli.controllers.jobflow.controller import JobFlowController
from stromboli.controllers.jobtemplate import JobTemplateController
from stromboli.kube.request import ApiError, Request
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.running import names, running_controllers, wait_until, wait_until_idle

STAMP = "2026-01-01T00:00:00Z"


def template(api: InMemoryApi, *wanted: str) -> None:
    for name in wanted:
        tasks = [{"name": "w", "replicas": 1, "template": {}}]
        api.put("jobtemplates", {"metadata": {"name": name, "namespace": "ns"}, "spec": {"tasks": tasks}})


def flow(api: InMemoryApi, *steps: Any, policy: str = "retain") -> None:
    meta = {"name": "f", "namespace": "ns"}
    api.put("jobflows", {"metadata": meta, "spec": {"flows": list(steps), "jobRetainPolicy": policy}})


def after(name: str, *targets: str, **probe: Any) -> dict[str, Any]:
    return {"name": name, "dependsOn": {"targets": list(targets), **({"probe": probe} if probe else {})}}


def become(api: InMemoryApi, name: str, phase: str, **status: Any) -> None:
    job = api.find("jobs", name, "ns")
    api.put("jobs", {**job, "status": {"state": {"phase": phase, "lastTransitionTime": STAMP}, **status}})


def phase(api: InMemoryApi) -> str:
    current_phase: str = api.find("jobflows", "f", "ns").get("status", {}).get("state", {}).get("phase", "")
    return current_phase


def test_three_jobs_follow_one_another_and_are_deleted_at_the_end() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a", "b", "c")
        flow(api, {"name": "a"}, after("b", "a"), after("c", "a", "b"), policy="delete")
        async with running_controllers(api, JobFlowController, JobTemplateController) as runner:
            for name, made in (("a", 1), ("b", 2), ("c", 3)):
                await wait_until(lambda made=made: len(api.every("jobs")) == made)  # type: ignore[misc]
                await wait_until_idle(api, runner)
                assert len(api.every("jobs")) == made
                become(api, f"f-{name}", "Running")
                await wait_until(lambda: phase(api) == "Running")
                become(api, f"f-{name}", "Completed")
            await wait_until(lambda: phase(api) == "Succeed")
            await wait_until(lambda: not api.every("jobs"))
            await wait_until_idle(api, runner)
            writes = len(api.writes)
            await wait_until_idle(api, runner)
            assert len(api.writes) == writes
            assert 'jobflow_succeed_phase_count{jobflow_namespace="ns"} 1.0' in runner.metrics.text().decode()
        created = [message for reason, message in api.events if reason == "Created"]
        assert created == [f"create a job named f-{name}!" for name in "abc"]
        assert api.find("jobtemplates", "a", "ns")["status"] == {"jobDependsOnList": ["f-a"]}

    asyncio.run(run())


def test_a_job_that_fails_ends_the_flow() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a", "b")
        flow(api, {"name": "a"}, after("b", "a"))
        async with running_controllers(api, JobFlowController) as runner:
            await wait_until(lambda: bool(api.every("jobs")))
            become(api, "f-a", "Pending", taskStatusCount={"w": {"phase": {"Pending": 1}}})
            await wait_until_idle(api, runner)
            assert api.find("jobflows", "f", "ns")["status"]["pendingJobs"] == ["f-a"]
            become(api, "f-a", "Failed", taskStatusCount={"w": {"phase": {"Failed": 1}}})
            await wait_until(lambda: phase(api) == "Failed")
            await wait_until_idle(api, runner)
        assert names(api.every("jobs")) == ["f-a"]
        status = api.find("jobflows", "f", "ns")["status"]
        assert status["failedJobs"] == ["f-a"]
        assert status["pendingJobs"] == []
        assert status["conditions"]["f-a"]["taskStatusCount"] == {"w": {"phase": {"Failed": 1}}}

    asyncio.run(run())


def test_a_template_that_comes_late_lets_its_flow_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        api = InMemoryApi()
        flow(api, {"name": "a"})
        async with running_controllers(api, JobFlowController) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
            assert api.events == [
                (
                    "SyncJobFlow",
                    "SyncJobFlow JobFlow failed for there is no JobTemplate a in namespace ns: create it",
                )
            ]
            assert "status" not in api.find("jobflows", "f", "ns")
            template(api, "a")
            await wait_until(lambda: bool(api.every("jobs")))
            await wait_until_idle(api, runner)
        # it waits for the template, and does not try again and again
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    asyncio.run(run())


def test_a_job_of_somebody_elses_in_the_way_is_told() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a")
        theirs = api.put("jobs", {"metadata": {"name": "f-a", "namespace": "ns"}})
        template(api, "b")
        flow(api, {"name": "a"}, {"name": "b"})
        async with running_controllers(api, JobFlowController) as runner:
            await wait_until(lambda: len(api.events) == 2)
            await wait_until_idle(api, runner)
        assert (
            "SyncJobFlow",
            'SyncJobFlow JobFlow failed for Job "f-a" exists already and is not of this JobFlow:'
            " delete or rename it, or give the JobFlow another name",
        ) in api.events
        assert names(api.every("jobs")) == ["f-a", "f-b"]
        assert api.find("jobs", "f-a", "ns") == theirs


def test_a_job_that_the_api_server_rejects_is_told_and_not_tried_again_and_again() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a")
        template(api, "b")
        flow(api, {"name": "a"}, {"name": "b"})

        def reject(request: Request) -> None:
            if request.method == "POST" and b'"f-a"' in (request.body or b""):
                raise ApiError(413, "", "request is too large")

        api.before = reject
        async with running_controllers(api, JobFlowController) as runner:
            await wait_until(lambda: len(api.events) == 2)
            await wait_until_idle(api, runner)
            assert runner.controllers[0].queue.failing == 0
        assert names(api.every("jobs")) == ["f-b"]
        assert any("job f-a is refused: request is too large" in text for _, text in api.events)

    asyncio.run(run())


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[int], asyncio.Event]]:
    """A web server that answers with the status in the list, and whether it was asked."""
    says, probed = [503], asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["X-Probe"] == "yes"
        probed.set()
        return web.Response(status=says[0])

    app = web.Application()
    app.router.add_get("/ready", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield int(runner.addresses[0][1]), says, probed
    finally:
        await runner.cleanup()


def pod(api: InMemoryApi, address: str, state: str = "Running") -> None:
    job = api.find("jobs", "f-a", "ns")["metadata"]
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "f-a", "controller": True}
    meta = {
        "name": "f-a-w-0",
        "namespace": "ns",
        "labels": {"volcano.sh/task-spec": "w"},
        "annotations": {"volcano.sh/job-name": "f-a"},
        "ownerReferences": [{**owner, "uid": job["uid"]}],
    }
    api.put("pods", {"metadata": meta, "status": {"phase": state, "podIP": address}})


def test_a_job_starts_when_the_pods_of_the_job_before_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "PROBE_PERIOD", 0.02)

    async def run() -> None:
        api = InMemoryApi()
        template(api, "a", "b")
        async with listening() as (port, says, probed):
            get = {
                "taskName": "w",
                "port": port,
                "path": "ready",
                "httpHeader": {"name": "X-Probe", "value": "yes"},
            }
            tcp = {"taskName": "w", "port": port}
            flow(api, {"name": "a"}, after("b", "a", httpGetList=[get], tcpSocketList=[tcp]))
            async with running_controllers(api, JobFlowController) as runner:
                await wait_until(lambda: bool(api.every("jobs")))
                become(api, "f-a", "Running")
                await wait_until_idle(api, runner)
                assert not probed.is_set()
                pod(api, "127.0.0.1")
                await asyncio.wait_for(probed.wait(), 60)
                await wait_until_idle(api, runner)
                assert names(api.every("jobs")) == ["f-a"]
                says[0] = 204
                await wait_until(lambda: names(api.every("jobs")) == ["f-a", "f-b"])

    asyncio.run(run())


def test_a_job_starts_when_a_task_of_the_job_before_is_in_a_phase() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a", "b")
        flow(api, {"name": "a"}, after("b", "a", taskStatusList=[{"taskName": "w", "phase": "Running"}]))
        async with running_controllers(api, JobFlowController) as runner:
            await wait_until(lambda: bool(api.every("jobs")))
            become(api, "f-a", "Running", taskStatusCount={"w": {"phase": {"Pending": 1}}})
            await wait_until_idle(api, runner)
            assert names(api.every("jobs")) == ["f-a"]
            become(api, "f-a", "Running", taskStatusCount={"w": {"phase": {"Running": 1}}})
            await wait_until(lambda: names(api.every("jobs")) == ["f-a", "f-b"])

    asyncio.run(run())


def test_templates_list_their_jobs_in_order_and_keep_the_last_list() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "with.dots")
        label = {"volcano.sh/createdByJobTemplate": "ns.with.dots"}
        for name in ("z", "y"):
            api.put("jobs", {"metadata": {"name": name, "namespace": "ns", "labels": label}})
        api.put("jobs", {"metadata": {"name": "x", "namespace": "elsewhere", "labels": label}})
        async with running_controllers(api, JobTemplateController) as runner:
            await wait_until_idle(api, runner)
            job_template = api.find("jobtemplates", "with.dots", "ns")
            assert job_template["status"]["jobDependsOnList"] == ["y", "z"]
            for name in ("z", "y"):
                api.remove("jobs", name, "ns")
                await wait_until_idle(api, runner)
            job_template = api.find("jobtemplates", "with.dots", "ns")
            assert job_template["status"]["jobDependsOnList"] == ["y"]

    asyncio.run(run())


def test_a_flow_that_got_past_admission_and_is_too_long_says_so() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a")
        flow(api, *({"name": f"s{number}"} for number in range(1001)))
        async with running_controllers(api, JobFlowController) as runner:
            await wait_until(lambda: bool(api.events))
            await wait_until_idle(api, runner)
        ((_, text),) = api.events
        assert text.endswith("the flow has 1001 steps, at most 1000 are allowed: use several flows")
        assert api.writes == []

    asyncio.run(run())


def test_a_template_lists_so_many_jobs_and_no_more() -> None:
    async def run() -> None:
        api = InMemoryApi()
        template(api, "a")
        for number in range(1100):
            labels = {"volcano.sh/createdByJobTemplate": "ns.a"}
            meta = {"name": f"j{number:04}", "namespace": "ns", "labels": labels}
            api.put("jobs", {"metadata": meta})
        async with running_controllers(api, JobTemplateController) as runner:
            await wait_until_idle(api, runner)
        listed = api.find("jobtemplates", "a", "ns")["status"]["jobDependsOnList"]
        assert (len(listed), listed[0], listed[-1]) == (1000, "j0100", "j1099")

    asyncio.run(run())
