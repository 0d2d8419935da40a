"""The whole life of one large job: what it costs the controllers, phase by phase.

On an API server in memory, whose own processor time is counted apart, so that this is measured without one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from msgspec import Struct, json

from bench import jobs
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.volcano_controllers import CONTROLLERS
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.request import Request
from tests.controllers.in_memory_api import InMemoryApi, Manifest
from tests.controllers.running import running_controllers

PODS = 10_000


class Phase(Struct):
    """What happened to all pods, and what that took."""

    name: str
    pods: int
    cpu: float
    """Seconds of processor time of all controllers."""
    writes: int


class TimedApi(InMemoryApi):
    """Counts the processor time that it takes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0.0

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        self.requests.append(request)
        await asyncio.sleep(0)
        begin = time.thread_time()
        try:
            return json.encode(self._answer(request))
        finally:
            self.spent += time.thread_time() - begin

    async def _lines(
        self, plural: str, since: int, wanted: Callable[[Manifest], bool]
    ) -> AsyncIterator[bytes]:
        seen = 0
        while True:
            while seen < len(self._changes):
                begin = time.thread_time()
                version, kind, type_, obj = self._changes[seen]
                seen += 1
                line = b""
                if version > since and kind == plural:
                    line = json.encode({"type": type_, "object": obj}) + b"\n"
                self.spent += time.thread_time() - begin
                if line:
                    yield line
            await asyncio.sleep(0.02)


def measure(count: int = PODS) -> list[Phase]:
    return asyncio.run(_measured(count))


async def _measured(count: int) -> list[Phase]:
    api = TimedApi()
    api.put("queues", {"metadata": {"name": "default"}, "spec": {"weight": 1}})
    whole = jobs.manifest("large")
    whole["metadata"]["namespace"] = jobs.NAMESPACE
    whole["spec"]["minAvailable"] = whole["spec"]["tasks"][0]["replicas"] = count
    phases: list[Phase] = []
    async with running_controllers(api, *CONTROLLERS) as runner:
        while runner.unsynced:
            await asyncio.sleep(0.01)

        async def phase(name: str, begin: Callable[[], None], ended: Callable[[], bool]) -> None:
            done = len(api.writes)
            begin()
            api.spent, spent = 0.0, time.process_time()
            while not (ended() and runner.idle):
                await asyncio.sleep(0.05)
            cpu = time.process_time() - spent - api.spent
            phases.append(Phase(name, count, cpu, len(api.writes) - done))

        await phase(
            "submitted", lambda: _submit(api, whole), lambda: _admit(api) and _told(runner, "pending", count)
        )
        await phase("running", lambda: _live(api, "Running"), lambda: _told(runner, "running", count))
        await phase("completed", lambda: _live(api, "Succeeded"), lambda: _told(runner, "succeeded", count))
        await phase("deleted", lambda: _delete(api), lambda: not len(runner.context.store(Pod)))
    return phases


def _submit(api: InMemoryApi, job: Manifest) -> None:
    api.put("jobs", job)


def _admit(api: InMemoryApi) -> bool:
    """Let the group in as soon as there is one; whether it is."""
    for group in api.every("podgroups"):
        if group.get("status", {}).get("phase") != "Inqueue":
            api.put("podgroups", {**group, "status": {"phase": "Inqueue"}})
    return bool(api.every("podgroups"))


def _live(api: InMemoryApi, phase: str) -> None:
    for pod in api.every("pods"):
        api.put("pods", {**pod, "status": {"phase": phase}})


def _delete(api: InMemoryApi) -> None:
    """The job, and what it owns, as the garbage collector of a cluster would."""
    api.remove("jobs", "large", jobs.NAMESPACE)
    for plural in ("podgroups", "pods"):
        for obj in api.every(plural):
            api.remove(plural, obj["metadata"]["name"], jobs.NAMESPACE)


def _told(runner: ControllerRunner, what: str, count: int) -> bool:
    """Whether the status of the job counts all pods as such, and the controllers have seen them."""
    (job,) = runner.context.store(Job)
    return bool(getattr(job.status, what) == count == len(runner.context.store(Pod)))


def report(phases: list[Phase], markdown: bool = False) -> str:
    from bench.run import table

    head = ["all pods are", "cpu s", "us per pod", "writes"]
    body = [
        [phase.name, f"{phase.cpu:.2f}", f"{phase.cpu / phase.pods * 1e6:.0f}", f"{phase.writes:,}"]
        for phase in phases
    ]
    title = f"the life of one job of {phases[0].pods:,} pods: processor time of all controllers"
    return "\n".join([title, "", *table([head, *body], markdown)])
