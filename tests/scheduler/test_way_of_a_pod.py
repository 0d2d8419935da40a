"""The way of a pod from the line of a watch to its bind: docs/design.md lists the files that run for it."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.scheduler.options import parse
from stromboli.scheduler.replica import Replica
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from tests import manifests

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stromboli"
MAX_FILES = 27
BESIDE_THE_WAY = {
    "kube/api_resources.py",
    "kube/credentials.py",
    "scheduler/writes/prebind/grant_writer.py",
    "scheduler/scheduler_metrics.py",
    "scheduler/job_metrics.py",
    "scheduler/queue_metrics.py",
    "scheduler/node_metrics.py",
}
"""What a request looks up, what is shown every change of an object, and metrics."""


class ApiServer:
    """Lists a node, queues and a PodGroup, keeps watches open, and notes a bind."""

    def __init__(self) -> None:
        self.bound = asyncio.Event()
        self._watches: dict[str, asyncio.StreamWriter] = {}
        self._objects = {
            "/api/v1/nodes": [manifests.node("n1")],
            "/apis/scheduling.volcano.sh/v1beta1/queues": [
                manifests.queue("root"),
                manifests.queue("default"),
            ],
            "/apis/scheduling.volcano.sh/v1beta1/podgroups": [manifests.group("web", 1)],
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while True:
                await self._respond(reader, writer)
        writer.transport.abort()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split(" ", 2)
        length = re.search(r"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        path, _, query = target.partition("?")
        if "watch=true" in query:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            self._watches[path] = writer
            return
        items = self._objects.get(path, [])
        body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        if method == "POST" and path.endswith("/binding"):
            self.bound.set()

    @property
    def watches_pods(self) -> bool:
        return "/api/v1/pods" in self._watches

    def send(self, pod: dict[str, Any]) -> None:
        line = json.dumps({"type": "ADDED", "object": pod}).encode() + b"\n"
        self._watches["/api/v1/pods"].write(b"%x\r\n%s\r\n" % (len(line), line))


class Trace:
    """Notes, while it is on, the files of the package in which functions run, in all threads started within it."""

    def __init__(self) -> None:
        self.on = False
        self.files: dict[str, set[str]] = {}
        """The names of the functions by file, in the order of the files."""

    def __enter__(self) -> Trace:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if self.on and event == "call" and name.startswith(str(SOURCE)):
            functions = self.files.setdefault(str(Path(name).relative_to(SOURCE)), set())
            functions.add(frame.f_code.co_qualname)


async def bind_a_pod(trace: Trace) -> None:
    """Let a pod arrive at a leader that is idle, and trace what runs until its bind is sent."""
    server = ApiServer()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    catalog = load_catalog()
    policy = load_policy(PRESETS["default"], catalog, "default")
    access = Access(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    async with asyncio.timeout(60), Client(access) as client:
        metrics = SchedulerMetrics()
        replica = Replica(parse([]), client, "test", lambda: 60.0, catalog, policy, metrics)
        async with replica:
            await replica.watches.synced()
            leading = asyncio.create_task(replica.lead())
            await replica.thread.decided.wait()
            while not server.watches_pods or len(replica.writer):
                await asyncio.sleep(0.01)
            pod = manifests.pod("web-0", "web")
            trace.on = True
            server.send(pod)
            await server.bound.wait()
            trace.on = False
            replica.stop()
            await leading
    listener.close()


def test_the_way_of_a_pod_is_as_the_design_lists_it() -> None:
    with Trace() as trace:
        asyncio.run(bind_a_pod(trace))
    page = (ROOT / "docs" / "design.md").read_text()
    steps = (
        page.partition("### From a watch event to a bind")[2]
        .partition("| Step | Files |")[2]
        .partition("\n\n")[0]
    )
    listed = [
        name for row in steps.splitlines() for name in re.findall(r"`([\w/]+\.py)`", row.rpartition(" | ")[2])
    ]
    ours = {name for name in trace.files if name.startswith(("kube/", "scheduler"))}
    assert sorted(set(listed) - trace.files.keys()) == []
    assert sorted(ours - set(listed) - BESIDE_THE_WAY) == []
    assert len(listed) == len(set(listed)) <= MAX_FILES


if __name__ == "__main__":
    with Trace() as trace:
        asyncio.run(bind_a_pod(trace))
    for name, functions in trace.files.items():
        print(name, *sorted(functions)[:8])
