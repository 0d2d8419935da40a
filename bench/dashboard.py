"""What the dashboard costs at 5,000 nodes and 50,000 pods, with ten viewers and twenty changes a second.

`python -m bench dashboard` fills the embedded API server, starts `stromboli dashboard` on it and lets ten browsers'
worth of streams look at different pages. The processor time is that of the dashboard's process alone. Where Debian's
Chromium is installed, it opens every page: the first paint by its own clock, and the memory of its renderer.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from bench.run import table
from stromboli.api import names
from stromboli.api.patches import MERGE
from stromboli.cli.cluster.cluster_kinds import HYPER_NODES, NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import Request
from tests.chromium import CHROMIUM, Browser, browser
from tests.kubernetes.embedded import EmbeddedPlane

SEED = 20261117
WIDTH = 50
"""Requests in flight while the cluster is filled."""
PODS_OF_A_JOB = 20
NODES_OF_A_RACK = 32
QUEUE_COUNT = 20
TEAMS = 8
VIEWERS = 10
CHANGES = 20.0
"""Of objects, per second."""
WATCHED = 40.0
"""Seconds for which viewers look."""
LARGEST_PAGE, SLOWEST_PAINT, MOST_MEMORY, MOST_CPU = 1024.0, 1.0, 150.0, 0.10
"""KiB, seconds, MiB of the page, part of a core: what was asked for."""
PAGES = (
    "/",
    "/queues",
    "/queues/queue-03",
    "/jobs",
    "/jobs?waiting=1",
    "/nodes",
    "/nodes?resource=memory",
    "/nodes/node-00042",
    "/topology",
    "/podgroups/team-1/job-0001",
    "/policy",
    "/decisions",
)
Manifest = dict[str, Any]


class PageFigures(Struct):
    """A page: as the server sends it, and as a browser shows it."""

    path: str
    kibibytes: float
    seconds: float
    """Until it was received."""
    paint: float = 0.0
    memory: float = 0.0
    """MiB of the renderer after a while of live updates."""


class Figures(Struct):
    """What was measured."""

    nodes: int
    pods: int
    listed: float
    """Seconds until everything was read."""
    resident: float
    """MiB of the dashboard's process."""
    idle: float
    """Part of a core with changes and nobody looking."""
    busy: float
    """Part of a core with all viewers."""
    updates: int
    sent: float
    """KiB that a viewer was sent in a second."""
    pages: list[PageFigures]


def measure(nodes: int, pods: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        plane = EmbeddedPlane(Path(folder), crds=True)
        with plane:
            return asyncio.run(_measure(plane.kubeconfig, Path(folder), nodes, pods))


async def _measure(kubeconfig: Path, folder: Path, nodes: int, pods: int) -> Figures:
    async with Client(find_access(str(kubeconfig))) as client:
        print(
            f"filling the API server with {nodes:,} nodes and {pods:,} pods ...", file=sys.stderr, flush=True
        )
        placed = await _fill(client, nodes, pods)
        async with _dashboard(kubeconfig) as (process, address):
            base = address.partition("/?")[0]
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as viewer:
                async with viewer.get(address) as answer:
                    assert answer.status == 200, await answer.text()
                listed = await _until_listed(viewer, base)
                pages = [await _page(viewer, base, path) for path in PAGES]
                changing = asyncio.create_task(_change(client, placed))
                await asyncio.sleep(3.0)
                idle = await _share(process.pid, asyncio.sleep(10.0))
                updates: list[int] = []
                busy = await _share(process.pid, _look(viewer, base, updates))
                resident = _memory(process.pid, "VmRSS")
                if CHROMIUM:
                    await _paint(process, kubeconfig, folder, pages)
                changing.cancel()
    sent = sum(updates) / 1024 / WATCHED / VIEWERS
    return Figures(nodes, pods, listed, resident, idle, busy, len(updates), sent, pages)


# -- the cluster


async def _fill(client: Client, nodes: int, pods: int) -> list[tuple[str, str]]:
    """The names of all pods that were placed."""
    rng = random.Random(SEED)
    await _all(client, NAMESPACES, (_namespace(number) for number in range(TEAMS)))
    await _all(client, QUEUES, (_queue(number) for number in range(QUEUE_COUNT)))
    await _all(client, HYPER_NODES, _racks(nodes))
    await _all(client, NODES, (_node(number) for number in range(nodes)))
    groups = [_group(number, rng) for number in range(pods // PODS_OF_A_JOB)]
    await _all(client, POD_GROUPS, groups)
    placed: list[tuple[str, str]] = []
    manifests = []
    for group in groups:
        waits = group["status"]["phase"] != names.GROUP_RUNNING
        for index in range(PODS_OF_A_JOB):
            pod = _pod(group, index, "" if waits else f"node-{rng.randrange(nodes):05d}")
            manifests.append(pod)
            if not waits:
                placed.append((pod["metadata"]["namespace"], pod["metadata"]["name"]))
    await _all(client, PODS, manifests)

    async def run(key: tuple[str, str]) -> None:
        await _patch_phase(client, *key, names.POD_RUNNING)

    await _in_parallel(run, placed)
    return placed


async def _all(client: Client, resource: Resource, manifests: Iterable[Manifest]) -> None:
    async def create(manifest: Manifest) -> None:
        await client.create(resource, manifest, manifest["metadata"].get("namespace", ""))

    await _in_parallel(create, manifests)


async def _in_parallel(work: Callable[[Any], Awaitable[None]], items: Iterable[Any]) -> None:
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(WIDTH)))


def _namespace(number: int) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}


def _queue(number: int) -> Manifest:
    spec = {"weight": 1 + number % 4}
    metadata = {"name": f"queue-{number:02d}"}
    return {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": metadata, "spec": spec}


def _racks(nodes: int) -> Iterable[Manifest]:
    """HyperNodes of tier 1, and of tier 2 above sixteen of these each."""
    racks = -(-nodes // NODES_OF_A_RACK)
    for rack in range(racks):
        first = rack * NODES_OF_A_RACK
        members = [f"node-{number:05d}" for number in range(first, min(first + NODES_OF_A_RACK, nodes))]
        yield _hyper_node(f"rack-{rack:03d}", 1, "Node", members)
    for row in range(-(-racks // 16)):
        below = [f"rack-{rack:03d}" for rack in range(row * 16, min(row * 16 + 16, racks))]
        yield _hyper_node(f"row-{row:02d}", 2, "HyperNode", below)


def _hyper_node(name: str, tier: int, kind: str, members: list[str]) -> Manifest:
    selectors = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return {
        "apiVersion": HYPER_NODES.api_version,
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": selectors},
    }


def _node(number: int) -> Manifest:
    resources = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:05d}", "labels": {"zone": f"zone-{number % 3}"}},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _group(number: int, rng: random.Random) -> Manifest:
    waits = number % 25 == 0
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": f"job-{number:04d}", "namespace": f"team-{number % TEAMS}"},
        "spec": {"minMember": PODS_OF_A_JOB, "queue": f"queue-{rng.randrange(QUEUE_COUNT):02d}"},
        "status": {"phase": names.GROUP_INQUEUE if waits else names.GROUP_RUNNING},
    }


def _pod(group: Manifest, index: int, node: str) -> Manifest:
    name, namespace = group["metadata"]["name"], group["metadata"]["namespace"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-worker-{index}",
            "namespace": namespace,
            "annotations": {names.GROUP_NAME: name},
        },
        "spec": {
            "schedulerName": names.SCHEDULER_NAME,
            **({"nodeName": node} if node else {}),
            "containers": [
                {"name": "main", "image": "train", "resources": {"requests": {"cpu": "4", "memory": "32Gi"}}}
            ],
        },
    }


async def _patch_phase(client: Client, namespace: str, name: str, phase: str) -> None:
    body = msgspec.json.encode({"status": {"phase": phase}})
    await client.send(Request("PATCH", PODS.path(namespace, name, "status"), body, MERGE))


async def _change(client: Client, placed: list[tuple[str, str]]) -> None:
    """Pods start and stop running, so many in a second."""
    rng, begin = random.Random(SEED + 1), time.monotonic()
    count = 0
    while True:
        count += 1
        phase = names.POD_PENDING if count % 2 else names.POD_RUNNING
        await _patch_phase(client, *rng.choice(placed), phase)
        await asyncio.sleep(max(0.0, begin + count / CHANGES - time.monotonic()))


# -- the dashboard


@asynccontextmanager
async def _dashboard(kubeconfig: Path) -> AsyncIterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "stromboli", "dashboard", "--kubeconfig", str(kubeconfig)]
    command += ["--listen-address", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = await asyncio.to_thread(process.stdout.readline)
            yield process, line.split()[-1]
        finally:
            process.terminate()


async def _until_listed(viewer: aiohttp.ClientSession, base: str) -> float:
    begin = time.perf_counter()
    while True:
        async with viewer.get(base) as answer:
            if "reading the cluster" not in await answer.text():
                return time.perf_counter() - begin
        await asyncio.sleep(0.2)


async def _page(viewer: aiohttp.ClientSession, base: str, path: str) -> PageFigures:
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        async with viewer.get(base + path) as answer:
            body = await answer.read()
            assert answer.status == 200, (path, answer.status)
        times.append(time.perf_counter() - begin)
    return PageFigures(path, len(body) / 1024, min(times))


async def _look(viewer: aiohttp.ClientSession, base: str, updates: list[int]) -> None:
    """Ten viewers, each of another page."""

    async def follow(path: str) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        async with viewer.get(f"{base}/live", params={"view": path}, timeout=timeout) as answer:
            assert answer.status == 200, (path, answer.status)
            size = 0
            async for line in answer.content:
                size += len(line)
                if line == b"\n" and size > 100:
                    updates.append(size)
                    size = 0

    tasks = [asyncio.create_task(follow(path)) for path in PAGES[:VIEWERS]]
    await asyncio.sleep(WATCHED)
    for task in tasks:
        assert not task.done() or task.cancelled(), task.exception()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _share(pid: int, work: Awaitable[Any]) -> float:
    """The part of a core that a process takes meanwhile."""
    begin, before = time.perf_counter(), _processor_seconds(pid)
    await work
    return (_processor_seconds(pid) - before) / (time.perf_counter() - begin)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


# -- the browser


async def _paint(
    process: subprocess.Popen[str], kubeconfig: Path, folder: Path, pages: list[PageFigures]
) -> None:
    """Open every page as somebody would who was let in already."""
    assert process.stderr is not None
    line = await asyncio.to_thread(process.stderr.readline)  # the address for another browser
    address = line.split()[-1]
    base = address.partition("/?")[0]
    async with browser(folder / "profile") as tab:
        await tab.open(address)
        for page in pages:
            await tab.open(base + page.path)
            page.paint = await _first_paint(tab)
            await asyncio.sleep(5.0)
            page.memory = _renderer_memory(folder / "profile")


async def _first_paint(tab: Browser) -> float:
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    return float(await tab.until(paint)) / 1000


def _renderer_memory(profile: Path) -> float:
    """What the renderer has for itself: the page, its script and the engine."""
    return max(map(_private, _processes("--type=renderer", str(profile))), default=0.0)


def _processes(*words: str) -> Iterable[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue
            if all(word in line for word in words):
                yield int(entry.name)


def _private(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


# -- the report


def report(figures: Figures, markdown: bool = False) -> str:
    """Tables, and what was missed."""
    head = ["page", "KiB", "received s", "first paint s", "renderer MiB"]
    rows = [
        [page.path, f"{page.kibibytes:.0f}", f"{page.seconds:.3f}", f"{page.paint:.2f}", f"{page.memory:.0f}"]
        for page in figures.pages
    ]
    title = (
        f"Dashboard: {figures.nodes:,} nodes, {figures.pods:,} pods, {VIEWERS} viewers, {CHANGES:g} changes a second,"
        f" seed {SEED}"
    )
    summary = (
        f"read in {figures.listed:.1f} s, {figures.resident:.0f} MiB; {figures.idle:.1%} of a core with changes and"
        f" nobody looking, {figures.busy:.1%} with all viewers, who were sent {figures.updates:,} updates,"
        f" {figures.sent:.1f} KiB a second each"
    )
    missed = misses(figures)
    return "\n".join(
        [title, *table([head, *rows], markdown), summary, *(f"MISSED: {miss}" for miss in missed)]
    )


def misses(figures: Figures) -> list[str]:
    """What is worse than was asked for."""
    found = [
        f"{page.path} has {page.kibibytes:.0f} KiB" for page in figures.pages if page.kibibytes > LARGEST_PAGE
    ]
    found += [
        f"{page.path} is painted after {page.paint:.2f} s"
        for page in figures.pages
        if page.paint > SLOWEST_PAINT
    ]
    found += [
        f"{page.path} takes {page.memory:.0f} MiB" for page in figures.pages if page.memory > MOST_MEMORY
    ]
    return found + ([f"{figures.busy:.1%} of a core"] if figures.busy > MOST_CPU else [])
