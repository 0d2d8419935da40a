"""A control plane with an audit log, in which objects are created fast and a scheduler is started."""

from __future__ import annotations

import asyncio
import compileall
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.kubernetes import audit
from bench.kubernetes.shapes import BARE, NAMESPACE, OURS, PLAIN, THEIRS, node
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.cluster_access import find_access
from tests.kubernetes.controlling import ControllerCluster
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane
from tests.kubernetes.scheduler_cluster import install

WIDTH = 50
KINDS = {"Node": RESOURCES[Node], "Pod": RESOURCES[Pod], "PodGroup": RESOURCES[PodGroup]}
ROOT = Path(__file__).parents[2]
HIGH_LIMITS = ("--max-requests-inflight=4000", "--max-mutating-requests-inflight=2000")
"""kube-scheduler has any number of binds in flight, and waits a second when it is throttled."""
SETTLED_AFTER = 2.0
"""Seconds without a write after which a scheduler has settled."""


@contextmanager
def fresh_cluster() -> Iterator[BenchCluster]:
    """A control plane with nothing in it, for one measurement."""
    with (
        tempfile.TemporaryDirectory(prefix="stromboli-bench-") as folder,
        BenchCluster(Path(folder)) as cluster,
    ):
        yield cluster


class BenchCluster:
    """One control plane; measurements on it take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(
            folder,
            api_server_flags=(*audit.flags(folder), *HIGH_LIMITS),
            scheduler_flags=(f"--kubeconfig={folder / 'kube-scheduler.kubeconfig'}",),
        )
        self.log = audit.AuditLog(folder / "audit.log")
        self._nodes = 0
        self._started = ""
        """The scheduler that runs."""
        self._process: subprocess.Popen[bytes] | None = None
        """Its process, unless the control plane has it."""
        self._controllers = ControllerCluster(folder, self.plane)

    def __enter__(self) -> BenchCluster:
        compileall.compile_dir(ROOT / "src", quiet=2)  # as an installed package is
        self.plane.__enter__()
        try:
            install(self.plane, NAMESPACE, self.folder)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.plane.__exit__()
        self.log.close()

    # -- objects

    def add_nodes(self, count: int) -> None:
        """Until there are so many."""
        self.create(node(number) for number in range(self._nodes, count))
        self._nodes = max(count, self._nodes)

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

    def start(self, scheduler: str) -> dict[str, int]:
        """Start a scheduler; the process ids of it, of what it needs, of the API server and of etcd."""
        self.stop()
        self._started = scheduler
        if scheduler == THEIRS:
            self.plane.start(THEIRS)
            own = {scheduler: self.plane.pid(THEIRS)}
        else:
            self._process = self._start_ours(scheduler)
            own = {scheduler: self._process.pid}
        if scheduler == PLAIN:
            own["controllers"] = self._start_controllers()
        return {**own, **{name: self.plane.pid(name) for name in ("kube-apiserver", "etcd")}}

    def stop(self) -> None:
        """Stop the scheduler that runs, if there is one."""
        if self._started == THEIRS:
            self.plane.kill(THEIRS)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._controllers.close()
        self._started, self._process = "", None

    def _start_ours(self, scheduler: str) -> subprocess.Popen[bytes]:
        kubeconfig = str(self.folder / "scheduler.kubeconfig")
        program: tuple[str, ...] = (
            *("stromboli", "scheduler", f"--kubeconfig={kubeconfig}"),
            *("--leader-elect=false", "--kube-api-qps=0"),
        )
        if scheduler == BARE:
            program = ("bench.kubernetes.bare_binder", kubeconfig, str(self._nodes))
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        with (self.folder / f"{OURS}.log").open("wb") as log:
            return subprocess.Popen(
                (*DIE_WITH_PARENT, sys.executable, "-m", *program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def _start_controllers(self) -> int:
        """What makes PodGroups for plain pods."""
        self._controllers.install_rights()
        flags = ("--controllers=pg-controller", "--leader-elect=false", "--kube-api-qps=0")
        return self._controllers.start(*flags).process.pid

    def log_tail(self, scheduler: str) -> str:
        name = THEIRS if scheduler == THEIRS else OURS
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

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
        return self._process is not None and self._process.poll() is not None


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
