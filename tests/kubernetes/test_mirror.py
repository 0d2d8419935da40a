"""A real API server, mirrored: whatever happens to it or in between, the model is what a fresh list says."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode, PodGroup, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access, find_access
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import Backoff
from stromboli.model.status import Status
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.consistency import check
from stromboli.scheduler.thread_seam import ThreadSeam
from tests.kubernetes import bulk_pods
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.embedded import EmbeddedPlane
from tests.kubernetes.mirroring import CountingBuffer, Cutting, assert_in_step, mirroring, reflector, until
from tests.manifests import binding, group, node, pod, queue


def tasks(mirror: ClusterMirror, namespace: str) -> dict[str, Status]:
    known = mirror.cluster.tasks.values()
    return {task.name: task.status for task in known if task.namespace == namespace}


async def do(what: Any, *arguments: Any, **options: Any) -> Any:
    """Something that blocks, beside the loop."""
    return await asyncio.to_thread(what, *arguments, **options)


def bind(plane: ControlPlane, name: str, namespace: str, where: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    plane.request("POST", path, binding(name, namespace, where))


def test_pods_come_are_bound_run_and_go(plane: ControlPlane, access: Access, namespace: str) -> None:
    """A gang is submitted with kubectl, bound, deleted: each step is in the model, and nothing is told twice."""

    async def story() -> None:
        async with mirroring(access) as mirror:
            pods = [pod(f"web-{index}", "web", namespace=namespace) for index in range(3)]
            await do(
                plane.apply,
                queue("research"),
                group("web", 3, namespace=namespace, queue="research"),
                node("m1"),
                *pods,
            )
            await until(mirror, lambda: len(tasks(mirror, namespace)) == 3, "three pods")
            assert set(tasks(mirror, namespace).values()) == {Status.PENDING}
            await do(bind, plane, "web-0", namespace, "m1")
            await until(mirror, lambda: tasks(mirror, namespace)["web-0"] is Status.BOUND, "a bound pod")
            assert mirror.cluster.nodes["m1"].tasks
            await assert_in_step(mirror)
            await do(plane.kubectl, "delete", "pod", "--all", "-n", namespace, "--force", "--grace-period=0")
            await until(mirror, lambda: not tasks(mirror, namespace), "no pods")
            await do(plane.kubectl, "delete", "queue", "research")
            await do(plane.kubectl, "delete", "node", "m1")
            await do(plane.kubectl, "delete", "podgroup", "web", "-n", namespace)
            await assert_in_step(mirror)
            assert {source.lists for source in mirror.watches.reflectors if source.installed} == {1}

    asyncio.run(story())


def test_a_check_agrees_and_finds_what_was_broken(
    plane: ControlPlane, access: Access, namespace: str
) -> None:
    """`check()` is silent about a sound mirror, and names a pod that the model lost."""

    async def story() -> None:
        await do(plane.apply, pod("a", namespace=namespace), pod("b", namespace=namespace))
        async with mirroring(access) as mirror:
            await until(mirror, lambda: len(tasks(mirror, namespace)) == 2, "two pods")
            assert await checked(mirror) == []
            lost = next(task for task in mirror.cluster.tasks.values() if task.name == "a")
            mirror.cluster.leave(lost)
            [difference] = await checked(mirror)
            assert (difference.kind, difference.model) == ("Pod", "missing")
            assert f"{namespace}/a" in difference.key

    asyncio.run(story())


async def checked(mirror: ClusterMirror) -> list[Any]:
    running = asyncio.create_task(check(mirror, pause=0.1))
    while not running.done():
        mirror.sync()
        await asyncio.sleep(0.01)
    return await running


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_restarted_api_server_is_followed_on(fresh_plane: ControlPlane, how: signal.Signals) -> None:
    """The server goes down and comes back; watches resume, or list if it forgot, and tell only what is new."""
    plane = fresh_plane
    access = find_access(str(plane.kubeconfig))

    async def story() -> None:
        await do(plane.apply, pod("before"))
        async with mirroring(access, absent_recheck=3600) as mirror:
            await do(plane.restart, "kube-apiserver", how)
            await do(plane.apply, pod("after"), node("n1"))
            await until(mirror, lambda: set(tasks(mirror, "default")) == {"before", "after"}, "both pods")
            await until(mirror, lambda: "n1" in mirror.cluster.nodes, "the node")
            await assert_in_step(mirror)
            assert reflector(mirror, Pod).lists <= 2
            assert reflector(mirror, Pod).watches >= 2

    asyncio.run(story())


def test_history_that_was_compacted_away_is_made_up_for_by_a_list(fresh_plane: ControlPlane) -> None:
    """While nobody watches, pods come, change and go, and etcd forgets how: only what differs is told."""
    plane = fresh_plane

    async def story() -> None:
        await do(
            plane.apply,
            *(pod(name) for name in ("same", "changed", "gone", "replaced")),
        )
        async with Client(find_access(str(plane.kubeconfig))) as client:
            buffer = CountingBuffer()
            mirror = ClusterMirror(ClusterWatches(client, seam=ThreadSeam(changes=buffer)))
            async with mirror:
                await mirror.watches.synced()
                mirror.sync()
            await do(plane.kubectl, "label", "pod", "changed", "new=label")
            for name in ("gone", "replaced"):
                await do(plane.kubectl, "delete", "pod", name, "--force", "--grace-period=0")
            await do(
                plane.apply,
                pod("replaced"),
                pod("fresh"),
            )
            await do(plane.compact)
            await do(plane.restart, "kube-apiserver")
            async with mirror:
                names = {"same", "changed", "replaced", "fresh"}
                await until(mirror, lambda: set(tasks(mirror, "default")) == names, "the new list")
                await assert_in_step(mirror)
            follower = reflector(mirror, Pod)
            assert follower.lists == 2
            states = [what for what in buffer.states if what[0] == "Pod"]
            assert len(states) == 4 + 3

    asyncio.run(story())


def test_kinds_that_are_not_installed_are_left_out_until_they_come(
    fresh_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    """Without Volcano's CRDs the mirror works and says what is off; once they are applied, it follows them."""
    plane = fresh_plane

    async def story() -> None:
        async with mirroring(find_access(str(plane.kubeconfig)), absent_recheck=1.0) as mirror:
            assert {
                source.resource.kind for source in mirror.watches.reflectors if source.installed is False
            } == {
                "PodGroup",
                "Queue",
                "HyperNode",
                "NodeShard",
                "Numatopology",
            }
            await do(plane.kubectl, "apply", "--server-side", "-k", "deploy/crds")
            kinds = (PodGroup, Queue, HyperNode)
            await until(mirror, lambda: all(reflector(mirror, kind).installed for kind in kinds), "the kinds")
            await do(plane.apply, queue("research"))
            await until(mirror, lambda: "research" in mirror.cluster.queues, "the queue")
            await do(plane.kubectl, "delete", "crd", "queues.scheduling.volcano.sh")
            await until(mirror, lambda: "research" not in mirror.cluster.queues, "the end of queues")
            await assert_in_step(mirror)

    asyncio.run(story())
    assert "Queue (queues.scheduling.volcano.sh/v1beta1) is not installed, so no job" in caplog.text


def test_an_account_without_rights_is_told_what_is_missing(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """Nothing is scheduled on half the picture: the mirror is not in step, and says which kind it may not see."""
    plane.kubectl("create", "serviceaccount", "blind", "-n", namespace)
    path = tmp_path / "config"
    path.write_text(json.dumps(plane.config_for(plane.token_for(namespace, "blind"))))

    async def story() -> None:
        async with (
            Client(find_access(str(path))) as client,
            ClusterMirror(ClusterWatches(client, kinds=[Pod, Node])) as mirror,
        ):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(mirror.watches.synced(), 2)
            assert len(mirror.watches.unsynced) == 2
            assert "cannot list resource" in mirror.watches.unsynced[0]

    asyncio.run(story())


def test_thousands_of_pods_created_bound_and_deleted_while_we_watch(
    plane: ControlPlane, access: Access, namespace: str
) -> None:
    """The mirror keeps up with many clients, and each state of each pod arrives exactly once."""
    count = 3_000
    nodes = [node(f"node-{index}", cpu="1000", memory="4000Gi", pods="2000") for index in range(10)]

    async def during(mirror: ClusterMirror, verb: str, condition: Callable[[], bool]) -> float:
        """How long the clients took; the mirror shows what they did soon after, or it would fall behind for ever."""
        begin = time.monotonic()
        process = bulk_pods.start(verb, plane.kubeconfig, namespace, count, "bulk")
        while process.poll() is None:
            mirror.sync()
            await asyncio.sleep(0.05)
        assert process.returncode == 0
        seconds = time.monotonic() - begin
        await until(mirror, condition, f"all pods after {verb}", 30)
        return seconds

    async def story() -> None:
        await do(plane.apply, *nodes, group("bulk", count, namespace=namespace))
        async with mirroring(access) as mirror:
            known = partial(tasks, mirror, namespace)
            seconds = {
                "create": await during(mirror, "create", lambda: len(known()) == count),
                "bind": await during(mirror, "bind", lambda: set(known().values()) == {Status.BOUND}),
                "delete": await during(mirror, "delete", lambda: not known()),
            }
            pods = reflector(mirror, Pod)
            print(f"\n{seconds}, {pods.events} events, {pods.lists} lists, {pods.watches} watches")
            assert pods.lists == 1

    try:
        asyncio.run(story())
    finally:
        plane.kubectl("delete", "node", *(f"node-{index}" for index in range(10)), check=False)


def test_thousands_of_pods_created_while_the_watch_is_cut_again_and_again(
    plane: ControlPlane, access: Access, namespace: str
) -> None:
    """Cut off in the middle of lines, under load, it resumes where it was: nothing is lost, nothing told twice."""
    count = 3_000

    def reflector_of(*arguments: Any, **options: Any) -> Reflector:
        return Reflector(*arguments, backoff=Backoff(first=0.01, longest=0.1), **options)

    async def story() -> None:
        cutting, buffer = Cutting(access, random.Random(7)), CountingBuffer()
        cutting.share = 0.2
        async with (
            cutting,
            ClusterMirror(
                ClusterWatches(
                    cutting, kinds=[Pod, Node], seam=ThreadSeam(changes=buffer), reflector=reflector_of
                )
            ) as mirror,
        ):
            await until(mirror, lambda: not mirror.watches.unsynced, "the first lists")
            process = bulk_pods.start("create", plane.kubeconfig, namespace, count, "cut")
            while process.poll() is None:
                mirror.sync()
                await asyncio.sleep(0.05)
            assert process.returncode == 0
            await until(mirror, lambda: len(tasks(mirror, namespace)) == count, "all pods", 120)
            await assert_in_step(mirror)
            pods = reflector(mirror, Pod)
            print(f"\n{pods.events} events, {pods.lists} lists, {pods.watches} watches, {cutting.cuts} cuts")
            assert pods.lists == 1
            assert cutting.cuts > 5

    asyncio.run(story())
    assert bulk_pods.start("delete", plane.kubeconfig, namespace, count, "cut").wait(300) == 0


def test_whoever_reads_too_slowly_catches_up(plane: ControlPlane, access: Access, namespace: str) -> None:
    """While nobody takes news, a full buffer makes the watch stall; afterwards nothing is missing or told twice.

    The real server cuts it off, ours lets it wait as long as its history has what is to be told.
    """
    count = 2_500

    async def story() -> None:
        buffer = CountingBuffer(capacity=200)
        async with (
            Client(access) as client,
            ClusterMirror(ClusterWatches(client, seam=ThreadSeam(changes=buffer))) as mirror,
        ):
            await until(mirror, lambda: not mirror.watches.unsynced, "the first lists")
            process = bulk_pods.start("create-large", plane.kubeconfig, namespace, count, "slow")
            assert await do(process.wait, 300) == 0
            await asyncio.sleep(2)
            assert len(tasks(mirror, namespace)) == 0
            await until(mirror, lambda: len(tasks(mirror, namespace)) == count, "all pods", 120)
            await assert_in_step(mirror)
            pods = reflector(mirror, Pod)
            print(f"\n{pods.events} events, {pods.lists} lists, {pods.watches} watches")
            assert pods.watches > 1 or isinstance(plane, EmbeddedPlane)

    asyncio.run(story())
    assert bulk_pods.start("delete", plane.kubeconfig, namespace, count, "slow").wait(300) == 0
