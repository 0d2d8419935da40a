"""Anything may happen in any order while connections break: in the end the model is what a fresh list says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import Namespace, PodGroup, PriorityClass, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.cluster_access import Access
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import ApiError, Backoff
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.thread_seam import ThreadSeam
from tests.kubernetes.mirroring import CountingBuffer, Cutting, assert_in_step, until
from tests.manifests import binding, group, node, pod, queue

PODS, NODES, GROUPS = RESOURCES[Pod], RESOURCES[Node], RESOURCES[PodGroup]
QUEUES, CLASSES, SPACES = RESOURCES[Queue], RESOURCES[PriorityClass], RESOURCES[Namespace]
STEPS = 400


class Happenings:
    """Things that users and controllers do, chosen by chance; what the server refuses did not happen."""

    def __init__(self, client: Client, namespace: str, dice: random.Random) -> None:
        self._client = client
        self._space = namespace
        self._dice = dice
        self._all: list[Callable[[], Awaitable[Any]]] = [
            *[self._create_pod] * 6,
            *[self._bind] * 3,
            *[self._annotate] * 3,
            *[self._finish] * 2,
            *[self._delete_pod] * 3,
            self._make_group,
            self._drop_group,
            self._make_node,
            self._resize_node,
            self._drop_node,
            self._make_queue,
            self._drop_queue,
            self._make_class,
            self._drop_class,
        ]

    async def change(self) -> None:
        with suppress(ApiError):
            await self._dice.choice(self._all)()

    def _name(self, what: str, most: int = 4) -> str:
        return f"{what}-{self._dice.randrange(most)}"

    async def _create_pod(self) -> None:
        manifest = pod(
            self._name("pod", 30),
            self._name("group"),
            namespace=self._space,
            cpu=f"{self._dice.randrange(1, 900)}m",
        )
        await self._client.create(PODS, manifest, self._space)

    async def _bind(self) -> None:
        name = self._name("pod", 30)
        await self._client.create(
            PODS, binding(name, self._space, self._name("soak")), self._space, name, "binding"
        )

    async def _annotate(self) -> None:
        note = {"volcano.sh/task-priority": str(self._dice.randrange(9))}
        await self._client.patch(
            PODS, self._name("pod", 30), {"metadata": {"annotations": note}}, self._space
        )

    async def _finish(self) -> None:
        phase = {"status": {"phase": self._dice.choice(["Running", "Succeeded", "Failed"])}}
        await self._client.patch(PODS, self._name("pod", 30), phase, self._space, "status")

    async def _delete_pod(self) -> None:
        options = {"gracePeriodSeconds": self._dice.choice([0, 0, 30])}
        await self._client.delete(PODS, self._name("pod", 30), self._space, options)

    async def _make_group(self) -> None:
        manifest = group(
            self._name("group"), self._dice.randrange(5), namespace=self._space, queue=self._name("queue")
        )
        manifest["spec"]["priorityClassName"] = self._name("class", 2)
        await self._client.create(GROUPS, manifest, self._space)

    async def _drop_group(self) -> None:
        await self._client.delete(GROUPS, self._name("group"), self._space)

    async def _make_node(self) -> None:
        await self._client.create(NODES, node(self._name("soak")))

    async def _resize_node(self) -> None:
        size = {"status": {"allocatable": {"cpu": str(self._dice.randrange(1, 64))}}}
        await self._client.patch(NODES, self._name("soak"), size, subresource="status")

    async def _drop_node(self) -> None:
        await self._client.delete(NODES, self._name("soak"))

    async def _make_queue(self) -> None:
        await self._client.create(QUEUES, queue(self._name("queue"), weight=self._dice.randrange(1, 9)))

    async def _drop_queue(self) -> None:
        await self._client.delete(QUEUES, self._name("queue"))

    async def _make_class(self) -> None:
        body = {"metadata": {"name": self._name("class", 2)}, "value": self._dice.randrange(1000)}
        api = {"apiVersion": CLASSES.api_version, "kind": "PriorityClass"}
        await self._client.create(CLASSES, api | body)

    async def _drop_class(self) -> None:
        await self._client.delete(CLASSES, self._name("class", 2))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_happens_while_watches_are_cut_the_mirror_is_right(
    access: Access, namespace: str, seed: int
) -> None:
    """Hundreds of changes to pods, nodes, groups, queues and classes; every twentieth piece of a watch is cut."""
    dice = random.Random(seed)

    def reflector_of(*arguments: Any, **options: Any) -> Reflector:
        return Reflector(*arguments, backoff=Backoff(first=0.01, longest=0.05), page_size=7, **options)

    async def story() -> None:
        cutting = Cutting(access, random.Random(seed))
        buffer = CountingBuffer()
        async with (
            Client(access) as doing,
            cutting,
            ClusterMirror(
                ClusterWatches(cutting, seam=ThreadSeam(changes=buffer), reflector=reflector_of)
            ) as mirror,
        ):
            await until(mirror, lambda: not mirror.watches.unsynced, "the first lists")
            happenings = Happenings(doing, namespace, dice)
            for step in range(STEPS):
                await asyncio.gather(*(happenings.change() for _ in range(4)))
                if step % 7 == 0:
                    mirror.sync()
                if step % 100 == 99:
                    await assert_in_step(mirror)
            await assert_in_step(mirror)
            assert cutting.cuts > 10
            assert buffer.states.total() > 100

    asyncio.run(story())
