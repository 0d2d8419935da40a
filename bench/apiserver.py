"""The embedded API server, and the real one beside it where it is built: how fast they take what a scheduler writes.

The same client, from another process, with watches open in a third. Processor time is the server's own (with etcd's),
so it is right on a busy machine too.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from stromboli.api.types.pod import Pod
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.cluster_access import find_access
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.embedded import EmbeddedPlane
from tests.kubernetes.program import cached
from tests.manifests import binding, pod

PODS = RESOURCES[Pod]
COUNT = 10_000
WIDTH = 50
"""Requests in flight."""
WATCHES = 20
IDLE = 5.0
TARGETS = {"creates": 900.0, "binds": 1000.0}
"""Per second: half of what the real one takes on two cores."""


class Speed(Struct):
    """What one server did."""

    server: str
    ready: float
    creates: float
    create_cpu: float
    """Milliseconds of processor time for result."""
    binds: float
    bind_cpu: float
    listed: float
    """Seconds for all pods in one list."""
    pods: int
    memory_mib: float
    idle: float
    """Share of a core while nobody asks anything, with the watches open."""


def compare(count: int = COUNT) -> list[Speed]:
    """The embedded server, and the real one if this machine has it."""
    sorts: list[tuple[str, type[ControlPlane]]] = [("embedded", EmbeddedPlane)]
    if (cached() / "kubetest").exists():
        sorts.append(("real", ControlPlane))
    results = []
    for name, sort in sorts:
        print(f"{name} API server ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            results.append(_measured(name, sort(Path(folder)), count))
    return results


def _measured(name: str, plane: ControlPlane, count: int) -> Speed:
    begin = time.perf_counter()
    with plane:
        ready = time.perf_counter() - begin
        command = (sys.executable, "-m", "bench.apiserver", str(plane.kubeconfig), str(WATCHES))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        try:
            assert watcher.stdout is not None
            watcher.stdout.readline()
            return asyncio.run(_driven(name, plane, ready, count))
        finally:
            watcher.kill()
            watcher.wait()
            if watcher.stdout is not None:
                watcher.stdout.close()


async def _driven(name: str, plane: ControlPlane, ready: float, count: int) -> Speed:
    usage = _Usage([process.pid for process in plane._running.values()])
    async with Client(find_access(str(plane.kubeconfig))) as client:

        async def create(index: int) -> None:
            await client.create(PODS, pod(f"p{index}", "g", cpu="100m"), "default")

        async def bind(index: int) -> None:
            target = binding(f"p{index}", "default", f"node-{index % 10}")
            await client.create(PODS, target, "default", f"p{index}", "binding")

        creates, create_cpu = await _timed(create, count, usage)
        binds, bind_cpu = await _timed(bind, count, usage)
        begin = time.perf_counter()
        await client.list(PODS)
        listed = time.perf_counter() - begin
        await asyncio.sleep(2.0)  # what is left to do, such as to clear garbage, is not idleness
        before = usage.seconds()
        await asyncio.sleep(IDLE)
        idle = (usage.seconds() - before) / IDLE
    return Speed(name, ready, creates, create_cpu, binds, bind_cpu, listed, count, usage.mebibytes(), idle)


async def _timed(work: Callable[[int], Awaitable[Any]], count: int, usage: _Usage) -> tuple[float, float]:
    """Per second, and milliseconds of the server's processor time for each."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    begin, before = time.perf_counter(), usage.seconds()
    await asyncio.gather(*(worker() for _ in range(WIDTH)))
    return count / (time.perf_counter() - begin), (usage.seconds() - before) / count * 1000


class _Usage:
    """Of some processes, as the kernel counts."""

    def __init__(self, processes: Sequence[int]):
        self._processes = processes

    def seconds(self) -> float:
        ticks = 0
        for process in self._processes:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def mebibytes(self) -> float:
        pages = sum(int(Path(f"/proc/{process}/statm").read_text().split()[1]) for process in self._processes)
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def rows(results: Sequence[Speed]) -> list[list[str]]:
    """A table."""
    head = ["API server", "ready s", "creates/s", "cpu ms", "binds/s", "cpu ms", "list s", "MiB", "idle"]
    body = [
        [
            result.server,
            f"{result.ready:.1f}",
            f"{result.creates:,.0f}",
            f"{result.create_cpu:.2f}",
            f"{result.binds:,.0f}",
            f"{result.bind_cpu:.2f}",
            f"{result.listed:.2f}",
            f"{result.memory_mib:.0f}",
            f"{result.idle:.1%}",
        ]
        for result in results
    ]
    return [head, *body]


def report(results: Sequence[Speed], markdown: bool = False) -> str:
    from bench.run import table

    pods = results[0].pods if results else 0
    title = (
        f"API servers: {pods:,} pods created, bound and listed, {WIDTH} requests at a time, {WATCHES} watches"
    )
    return "\n".join([title, *table(rows(results), markdown)])


# -- watches, in a process of their own


async def watch(kubeconfig: str, count: int) -> None:
    """Open watches on all pods and read whatever comes."""
    async with Client(find_access(kubeconfig)) as client:
        opened = asyncio.Semaphore(0)

        async def request() -> None:
            async with client.stream("/api/v1/pods?watch=true", 3600) as pieces:
                opened.release()
                async for _ in pieces:
                    pass

        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(request())
            for _ in range(count):
                await opened.acquire()
            print("open", flush=True)


if __name__ == "__main__":
    asyncio.run(watch(sys.argv[1], int(sys.argv[2])))
