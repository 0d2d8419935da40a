"""A control plane with an audit log, in which objects are created fast and a scheduler is started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.kubernetes import audit
from bench.kubernetes.shapes import NAMESPACE, OURS, THEIRS
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.cluster_access import find_access
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.kubernetes.scheduler_cluster import install

WIDTH = 50
KINDS = {"Node": RESOURCES[Node], "Pod": RESOURCES[Pod], "PodGroup": RESOURCES[PodGroup]}
ROOT = Path(__file__).parents[2]
HIGH_LIMITS = ("--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000")
"""kube-scheduler has any number of binds in flight, and waits a second when it is throttled."""
SETTLED_AFTER = 2.0
"""Seconds without a write after which a scheduler has settled."""


class BenchCluster:
    """One control plane, for one measurement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(
            folder,
            api_server_flags=(*audit.flags(folder), *HIGH_LIMITS),
            scheduler_flags=(f"--kubeconfig={folder / 'kube-scheduler.kubeconfig'}",),
        )
        self.log = audit.AuditLog(folder / "audit.log")
        self._ours: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> BenchCluster:
        self.plane.__enter__()
        try:
            install(self.plane, NAMESPACE, self.folder)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours is not None:
            self._ours.kill()
            self._ours.wait()
        self.plane.__exit__()
        self.log.close()

    # -- objects

    def create(self, objects: Iterable[dict[str, Any]]) -> None:
        """As fast as the API server takes them."""
        asyncio.run(self._with_client(lambda client: _concurrently(client, objects)))

    def create_evenly(self, objects: Iterable[dict[str, Any]], rate: float) -> None:
        """So many a second, without waiting for responses."""
        asyncio.run(self._with_client(lambda client: _evenly(client, objects, rate)))

    def send_heartbeats(self, nodes: int, period: float, over: threading.Event) -> None:
        """Let every node report its status once in a period."""
        asyncio.run(self._with_client(lambda client: _heartbeat(client, nodes, period, over)))

    async def _with_client(self, work: Callable[[Client], Awaitable[None]]) -> None:
        async with Client(find_access(str(self.plane.kubeconfig))) as client:
            await work(client)

    # -- schedulers

    def start(self, scheduler: str, *flags: str) -> dict[str, int]:
        """Start one of the two; the process ids of the scheduler, the API server and etcd."""
        if scheduler == THEIRS:
            self.plane.start(THEIRS)
            own = self.plane.pid(THEIRS)
        else:
            self._ours = self._start_ours(flags)
            own = self._ours.pid
        return {scheduler: own, **{name: self.plane.pid(name) for name in ("kube-apiserver", "etcd")}}

    def _start_ours(self, flags: tuple[str, ...]) -> subprocess.Popen[bytes]:
        command = (
            *DIE_WITH_PARENT,
            *(sys.executable, "-m", "stromboli", "scheduler"),
            f"--kubeconfig={self.folder / 'scheduler.kubeconfig'}",
            "--leader-elect=false",
            "--kube-api-qps=0",
            *flags,
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        with (self.folder / f"{OURS}.log").open("wb") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    def log_tail(self, scheduler: str) -> str:
        return (self.folder / f"{scheduler}.log").read_text(errors="replace")[-2000:]

    # -- what they wrote

    def writes(
        self,
        until: Callable[[list[audit.Write]], bool],
        seconds: float,
        on_poll: Callable[[], None] = lambda: None,
    ) -> list[audit.Write]:
        """All writes so far, once `until` holds and the scheduler has settled, or has ended.

        `on_poll` is called a few times a second meanwhile.
        """
        seen: list[audit.Write] = []
        end, last = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end:
            on_poll()
            new = list(self.log.new_writes())
            seen += new
            last = time.monotonic() if new else last
            if time.monotonic() - last > SETTLED_AFTER and (until(seen) or self._ended()):
                break
            time.sleep(0.2)
        return seen

    def _ended(self) -> bool:
        return self._ours is not None and self._ours.poll() is not None


async def _concurrently(client: Client, objects: Iterable[dict[str, Any]]) -> None:
    remaining = iter(objects)

    async def worker() -> None:
        for manifest in remaining:
            await _create(client, manifest)

    await asyncio.gather(*(worker() for _ in range(WIDTH)))


async def _evenly(client: Client, objects: Iterable[dict[str, Any]], rate: float) -> None:
    begin = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number, manifest in enumerate(objects):
            await asyncio.sleep(max(0.0, begin + number / rate - time.monotonic()))
            group.create_task(_create(client, manifest))


async def _heartbeat(client: Client, nodes: int, period: float, over: threading.Event) -> None:
    number = 0
    while not over.is_set():
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": at}
        name = f"node-{number % nodes}"
        await client.patch(KINDS["Node"], name, {"status": {"conditions": [ready]}}, subresource="status")
        number += 1
        await asyncio.sleep(period / nodes)


async def _create(client: Client, manifest: dict[str, Any]) -> None:
    resource: Resource = KINDS[manifest["kind"]]
    await client.create(resource, manifest, manifest["metadata"].get("namespace", ""))
