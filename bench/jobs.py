"""Many jobs at once: how fast they come to their pods, beside how fast the API server takes pods at all.

The controller runs in this process, as does whoever lets groups in; bare pods of the same make are created before and
after, with the same watches open, since a machine is not equally busy all the time. Processor time, of the server and
of this process, is right on a busy machine too.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.apiserver import PODS, _Usage
from bench.measure import memory_peak
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.job.job_pods import Member, pod_of
from stromboli.controllers.options import Options
from stromboli.controllers.runner import ControllerRunner
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.embedded import EmbeddedPlane
from tests.kubernetes.program import cached

EACH = 10
"""Pods of a job."""
BARE = 2000
WIDTH = 32
NAMESPACE = "bench"
TARGET = 0.75
"""Of the rate at which bare pods are created."""


class Arrival(Struct):
    """How jobs came to their pods on one API server."""

    server: str
    jobs: int
    bare: float
    """Pods that the server takes per second, mean of before and after."""
    pods: float
    """Pods of jobs per second, from the first submission to the last pod."""
    writes: float
    """Per job, with its pods."""
    bare_cpu: float
    """Milliseconds of processor time for one bare pod, and for one pod of a job with all that this takes."""
    pod_cpu: float
    told_cpu: float
    """The same until the status of every job counts its pods, which comes after all of these."""
    memory_mib: float

    @property
    def share(self) -> float:
        return self.pods / self.bare

    @property
    def cpu_share(self) -> float:
        return self.bare_cpu / self.pod_cpu


def compare(count: int) -> list[Arrival]:
    """On the embedded server, and on the real one if this machine has it."""
    sorts: list[tuple[str, type[ControlPlane]]] = [("embedded", EmbeddedPlane)]
    if (cached() / "kubetest").exists():
        sorts.append(("real", ControlPlane))
    results = []
    for name, sort in sorts:
        print(f"jobs on the {name} API server ...", file=sys.stderr, flush=True)
        results.append(measure(name, sort, count))
    return results


def measure(name: str, sort: type[ControlPlane], count: int) -> Arrival:
    """On one API server."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, sort(Path(folder)) as plane:
        plane.kubectl("apply", "--server-side", "-k", "deploy/crds")
        plane.wait_established()
        plane.kubectl("create", "namespace", NAMESPACE)
        plane.apply(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "default"},
                "spec": {"weight": 1},
            }
        )
        return asyncio.run(_measured(name, plane, count))


async def _measured(name: str, plane: ControlPlane, count: int) -> Arrival:
    usage = _Usage([*(process.pid for process in plane._running.values()), os.getpid()])
    async with Client(find_access(str(plane.kubeconfig))) as client:
        runner = ControllerRunner(client, (JobController,), Options(leader_elect=False))
        running = asyncio.create_task(runner.run())
        admitting = asyncio.create_task(_admit(runner, client))
        while runner.unsynced:
            await asyncio.sleep(0.05)
        try:
            spent = usage.seconds()
            before = await _bare(client, "before")
            bare_cpu = (usage.seconds() - spent) / BARE * 1000
            begin, spent = time.perf_counter(), usage.seconds()
            await _many(count, lambda index: _submit(client, index))
            await _until(lambda: _made(runner) >= count * EACH)
            rate = count * EACH / (time.perf_counter() - begin)
            pod_cpu = (usage.seconds() - spent) / (count * EACH) * 1000
            await _until(lambda: runner.idle and _told(runner) >= count)
            told_cpu = (usage.seconds() - spent) / (count * EACH) * 1000
            writes = sum(sample.value for sample in runner.metrics.writes.collect()[0].samples) / count
            after = await _bare(client, "after")
        finally:
            admitting.cancel()
            runner.stop()
            await running
    return Arrival(
        name, count, (before + after) / 2, rate, writes, bare_cpu, pod_cpu, told_cpu, memory_peak()
    )


def _made(runner: ControllerRunner) -> int:
    created = [
        sample for sample in runner.metrics.writes.collect()[0].samples if sample.labels["resource"] == "pods"
    ]
    return int(sum(sample.value for sample in created))


def _told(runner: ControllerRunner) -> int:
    """Jobs whose status counts all their pods."""
    return sum(job.status.pending == EACH for job in runner.context.store(Job))


async def _admit(runner: ControllerRunner, client: Client) -> None:
    """Let every group in, as a scheduler with room for all would."""
    waiting: asyncio.Queue[PodGroup] = asyncio.Queue()

    def on_group_change(before: PodGroup | None, now: PodGroup | None) -> None:
        if now is not None and not now.status.phase:
            waiting.put_nowait(now)

    runner.context.store(PodGroup).add_event_handler(on_group_change)

    async def worker() -> None:
        while True:
            group = await waiting.get()
            await client.patch(
                WATCHED_RESOURCES[PodGroup], group.name, {"status": {"phase": "Inqueue"}}, group.namespace
            )

    await asyncio.gather(*(worker() for _ in range(8)))


async def _submit(client: Client, index: int) -> None:
    await client.create(WATCHED_RESOURCES[Job], manifest(f"job-{index}"), NAMESPACE)


async def _bare(client: Client, prefix: str) -> float:
    """Pods per second that nobody looks after."""
    whole = manifest("bare")
    whole["metadata"]["uid"] = "none"
    job = msgspec.convert(whole, Job)
    pod = pod_of(Member(job, job.spec.tasks[0], 0))
    for key in ("namespace", "ownerReferences"):
        del pod["metadata"][key]

    async def create(index: int) -> None:
        named = {**pod, "metadata": {**pod["metadata"], "name": f"{prefix}-{index}"}}
        await client.create(PODS, named, NAMESPACE)

    begin = time.perf_counter()
    await _many(BARE, create)
    return BARE / (time.perf_counter() - begin)


async def _many(count: int, work: Callable[[int], Awaitable[Any]]) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(WIDTH)))


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


def manifest(name: str) -> dict[str, Any]:
    """A job of ten pods that must start together."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "worker", "replicas": EACH, "template": {"spec": {"containers": [container]}}}
    spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": EACH, "tasks": [task]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": spec,
    }


def report(results: list[Arrival], markdown: bool = False) -> str:
    from bench.run import table

    head = ["API server", "jobs", "bare/s", "pods/s", "share"]
    head += ["cpu ms bare", "of a job", "with status", "share", "writes", "MiB"]
    body = [
        [
            result.server,
            f"{result.jobs:,}",
            f"{result.bare:,.0f}",
            f"{result.pods:,.0f}",
            f"{result.share:.2f}",
            f"{result.bare_cpu:.2f}",
            f"{result.pod_cpu:.2f}",
            f"{result.told_cpu:.2f}",
            f"{result.cpu_share:.2f}",
            f"{result.writes:.1f}",
            f"{result.memory_mib:.0f}",
        ]
        for result in results
    ]
    title = f"jobs of {EACH} pods each, submitted at once; the share should be at least {TARGET}"
    return "\n".join([title, "", *table([head, *body], markdown)])
