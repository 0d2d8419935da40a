"""Pods that cannot be read fully, from the watch to the bind: they free their node, or count on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from stromboli.engine.decisions import Bind
from stromboli.extensions import load_catalog
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import UnusableObject
from stromboli.kube.request import Request
from stromboli.policy.policy import load_policy
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduling_loop import Scheduler
from tests.manifests import EPOCH, Manifest, group, node, pod, policy, queue

CATALOG = load_catalog()
POLICY = load_policy(policy("enqueue, allocate", "gang | predicates proportion"), CATALOG, "test")
UNLIMITED = "9007199254740988Ki"
"""The memory limit that kubelet 1.36 reports on cgroup v1 for a container without one."""
REPORTED = {
    "resources": {"requests": {"cpu": "4"}, "limits": {"memory": UNLIMITED}},
    "containerStatuses": [{"name": "main", "resources": {"limits": {"memory": UNLIMITED}}}],
}
GIANT = {"allocatedResources": {"memory": "9223372036854775807000"}}
"""A status that fits no 64 bits."""


class Server:
    """An API server with these objects that sends updates of pods to its watch."""

    def __init__(self, *manifests: Manifest) -> None:
        self.manifests = manifests
        self.updates: asyncio.Queue[Manifest] = asyncio.Queue()

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        items = [manifest for manifest in self.manifests if manifest["kind"] == resource.kind]
        return msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": items})

    async def send_with_retries(self, request: Request) -> bytes:
        return b"{}"

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._updates() if path.startswith("/api/v1/pods") else self._silence()

    async def _updates(self) -> AsyncIterator[bytes]:
        while True:
            event = {"type": "MODIFIED", "object": await self.updates.get()}
            yield msgspec.json.encode(event) + b"\n"

    async def _silence(self) -> AsyncIterator[bytes]:
        await asyncio.sleep(3600)
        yield b""


class Story:
    """A scheduler that has just been started on a server."""

    def __init__(self, server: Server, mirror: ClusterMirror, problems: list[UnusableObject]) -> None:
        self.server = server
        self.mirror = mirror
        self.problems = problems
        world = KubernetesWorld(mirror, lambda orders: None, lambda: EPOCH, clock=lambda: 0.0)
        self.scheduler = Scheduler(world, POLICY, CATALOG)

    def cycle(self) -> dict[str, str]:
        """The node of each pod that a cycle binds."""
        decisions = self.scheduler.cycle().decisions
        return {bind.name: bind.node for bind in decisions if isinstance(bind, Bind)}

    async def send(self, update: Manifest) -> None:
        """Send an update, and wait until the mirror has it."""
        seen = self.mirror.watches.reflectors
        before = sum(reflector.events for reflector in seen)
        self.server.updates.put_nowait(update)
        async with asyncio.timeout(30):
            while sum(reflector.events for reflector in seen) == before:
                await asyncio.sleep(0.001)


def play(manifests: list[Manifest], acts: Callable[[Story], Awaitable[None]]) -> None:
    async def story() -> None:
        server = Server(*(stored(manifest) for manifest in manifests))
        problems: list[UnusableObject] = []
        async with ClusterMirror(ClusterWatches(server), report=problems.append) as mirror:  # type: ignore[arg-type]
            await asyncio.wait_for(mirror.watches.synced(), 30)
            await acts(Story(server, mirror, problems))

    asyncio.run(story())


def stored(manifest: Manifest, version: int = 1) -> Manifest:
    """An object with uid and version, as an API server returns it."""
    meta = manifest["metadata"]
    return manifest | {"metadata": meta | {"uid": meta["name"], "resourceVersion": str(version)}}


def world(*pods: Manifest) -> list[Manifest]:
    """A node of 4 CPUs, these pods, and a gang that needs the node for itself."""
    gang = [pod(f"gang-{number}", "gang", cpu=2) for number in range(2)]
    return [queue(), node("n1", cpu=4), group("gang", 2), *pods, *gang]


def old(**more: Any) -> Manifest:
    return pod("old", on="n1", cpu=4, **more)


BOUND = {"gang-0": "n1", "gang-1": "n1"}


@pytest.mark.parametrize("status", [REPORTED, GIANT])
def test_after_a_restart_a_running_pod_counts_and_no_gang_is_bound_onto_a_full_node(status: Any) -> None:
    async def acts(story: Story) -> None:
        assert story.cycle() == {}
        assert story.mirror.cluster.columns.row("n1")["used"]["cpu"] == 4000
        assert [problem.name for problem in story.problems] == ([] if status is REPORTED else ["old"])

    play(world(old(status=status)), acts)


@pytest.mark.parametrize("status", [REPORTED, GIANT])
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_node(phase: str, status: Any) -> None:
    async def acts(story: Story) -> None:
        assert story.cycle() == {}
        await story.send(stored(old(phase=phase, status=status), 2))
        assert story.cycle() == BOUND

    play(world(old()), acts)


def test_a_pod_that_is_being_deleted_is_seen_to_leave() -> None:
    async def acts(story: Story) -> None:
        await story.send(stored(old(status=GIANT, terminating=True), 2))
        assert story.cycle() == {}
        assert story.mirror.cluster.columns.row("n1")["releasing"]["cpu"] == 4000

    play(world(old()), acts)


def test_a_pod_that_another_scheduler_bound_counts_once_it_has_a_node() -> None:
    async def acts(story: Story) -> None:
        await story.send(stored(old(scheduler="other", status=GIANT), 2))
        assert story.cycle() == {}

    play(world(pod("old", scheduler="other", cpu=4)), acts)


def test_a_pending_pod_that_cannot_be_read_is_not_bound() -> None:
    async def acts(story: Story) -> None:
        assert story.cycle() == {}
        assert "bad" not in {task.name for task in story.mirror.cluster.tasks.values()}

    bad = pod("bad", "one", spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]})
    play([queue(), node("n1"), group("one", 1), bad], acts)


def test_a_pod_that_is_used_in_part_is_reported_once_until_it_can_be_read() -> None:
    async def acts(story: Story) -> None:
        for version in (2, 3):
            await story.send(stored(old(status=GIANT), version))
            story.cycle()
        assert len(story.problems) == 1
        assert "status.allocatedResources.memory" in story.problems[0].text
        story.mirror.report_again()
        assert len(story.problems) == 2
        await story.send(stored(old(), 4))
        story.cycle()
        story.mirror.report_again()
        assert len(story.problems) == 2

    play(world(old(status=GIANT)), acts)


@pytest.mark.parametrize("cordoned", [False, True])
def test_a_node_is_used_without_the_amounts_that_cannot_be_read(cordoned: bool) -> None:
    """It keeps its pods and its capacity, and a cordon counts."""

    async def acts(story: Story) -> None:
        assert story.cycle() == ({} if cordoned else {"free-0": "n1"})
        assert "old" in {task.name for task in story.mirror.cluster.nodes["n1"].tasks}
        assert "status.allocatable.example.com/gpu" in story.problems[0].text

    n1 = node("n1", cpu=4, spec={"unschedulable": cordoned}, **{"example.com/gpu": "99999999999999999999"})
    pods = (pod("old", on="n1", cpu=3), group("free", 1), pod("free-0", "free", cpu=1))
    play([queue(), n1, *pods], acts)
