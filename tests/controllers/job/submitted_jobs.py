"""A job on an API server in memory: submitted, looked after by the job controller, and what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from stromboli.controllers.job.controller import JobController
from stromboli.controllers.runner import ControllerRunner
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.job.simulated_job import job_manifest
from tests.controllers.running import running_controllers, wait_until_idle


class Prompt(JobController):
    """Tells counts at once."""

    status_period = 0.0


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


@asynccontextmanager
async def at_work(
    api: InMemoryApi, kind: type[JobController] = Prompt, **more: Any
) -> AsyncIterator[ControllerRunner]:
    async with running_controllers(api, kind, **more) as runner:
        await wait_until_idle(api, runner)
        yield runner


def submitted(*tasks: dict[str, Any], **spec: Any) -> InMemoryApi:
    """An API server with a queue and a job."""
    api = InMemoryApi()
    api.put("queues", {"metadata": {"name": "default"}})
    api.put("jobs", job_manifest(*tasks, **spec))
    return api


def admit(api: InMemoryApi) -> None:
    """The scheduler lets every group in."""
    for group in api.every("podgroups"):
        api.put("podgroups", {**group, "status": {"phase": "Inqueue"}})


def live(api: InMemoryApi, phase: str, *only: str, **status: Any) -> None:
    for pod in api.every("pods"):
        if not only or pod["metadata"]["name"] in only:
            api.put("pods", {**pod, "status": {"phase": phase, **status}})


def phase(api: InMemoryApi) -> str:
    return str(api.find("jobs", "j", "team").get("status", {}).get("state", {}).get("phase", ""))


def writes(api: InMemoryApi, since: int = 0) -> list[tuple[str, str]]:
    return [(request.method, request.path.rpartition("team/")[2]) for request in api.writes[since:]]


def touch(api: InMemoryApi) -> None:
    job = api.find("jobs", "j", "team")
    job["metadata"].setdefault("labels", {})["touched"] = str(len(api.requests))
    api.put("jobs", job)
