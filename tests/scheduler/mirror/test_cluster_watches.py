"""The first lists, side by side and page by page: the model is the same, and nothing is decided before all are here."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import Reflector, WatchScope
from stromboli.kube.request import ApiError, Backoff
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches, wait_until_synced
from stromboli.scheduler.mirror.consistency import compare
from tests.scheduler.mirror.test_cluster_mirror import WORLD, ObjectServer, pod

MORE = [*WORLD, *(pod(f"more-{number}") for number in range(5))]


class PagedServer(ObjectServer):
    """Lists in pages, each after some turns of the loop; the first requests may be refused."""

    def __init__(self, size: int, delays: random.Random, refusals: int = 0) -> None:
        super().__init__(*MORE)
        self.size = size
        self.most_at_once: dict[str, int] = {}
        self._delays = delays
        self._refusals = refusals
        self._now: dict[str, int] = {}

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        kind = resource.plural
        self._now[kind] = now = self._now.get(kind, 0) + 1
        self.most_at_once[kind] = max(now, self.most_at_once.get(kind, 0))
        for _ in range(self._delays.randrange(5)):
            await asyncio.sleep(0)
        self._now[kind] -= 1
        begin = int(query.get("continue") or 0)
        if begin and self._refusals:
            self._refusals -= 1
            raise ApiError(410, "Expired", "the token is too old")
        whole = msgspec.json.decode(await super().list(resource, namespace))
        end = begin + self.size
        meta = {"resourceVersion": "9", "continue": str(end) if end < len(whole["items"]) else ""}
        return msgspec.json.encode({"metadata": meta, "items": whole["items"][begin:end]})


def listed(server: ObjectServer) -> ClusterMirror:
    reflector = partial(Reflector, backoff=Backoff(first=0.0, longest=0.0))

    async def story() -> ClusterMirror:
        async with ClusterMirror(ClusterWatches(server, reflector=reflector)) as mirror:  # type: ignore[arg-type]
            await asyncio.wait_for(mirror.watches.synced(), 20)
            mirror.sync()
            return mirror

    return asyncio.run(story())


@given(size=st.integers(1, 4), seed=st.integers(0, 99), refusals=st.integers(0, 3))
def test_however_pages_come_the_model_is_that_of_one_list(size: int, seed: int, refusals: int) -> None:
    whole = listed(ObjectServer(*MORE)).cluster
    server = PagedServer(size, random.Random(seed), refusals)
    assert compare(listed(server).cluster, whole) == []
    assert max(server.most_at_once.values()) == 1  # the pages of one kind come one after the other


def test_nothing_is_in_step_before_every_kind_is() -> None:
    """Also if the missing list has failed half-way."""
    gate = asyncio.Event()

    class Held(PagedServer):
        async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
            if resource.kind == "Pod" and query.get("continue"):
                await gate.wait()
            return await super().list(resource, namespace, **query)

    async def story() -> None:
        async with ClusterWatches(Held(3, random.Random(0))) as watches:  # type: ignore[arg-type]
            waiting = asyncio.create_task(wait_until_synced(watches, 60))
            for _ in range(200):
                await asyncio.sleep(0)
            assert watches.missing_essentials == ["pods"]
            assert watches.loading
            assert not waiting.done()
            gate.set()
            await asyncio.wait_for(waiting, 20)
            assert not watches.loading
            assert watches.missing_essentials == []

    asyncio.run(story())


def test_kinds_may_be_added_while_others_are_watched() -> None:
    async def story() -> list[Any]:
        async with ClusterWatches(ObjectServer(*WORLD), [Pod]) as watches:  # type: ignore[arg-type]
            await asyncio.wait_for(watches.synced(), 20)
            scope = WatchScope.of_one("system", "cards")
            watches.add([Pod, Node, ConfigMap], {ConfigMap: scope})
            await asyncio.wait_for(watches.synced(), 20)
            return [(reflector.kind, reflector.lists, reflector.scope) for reflector in watches.reflectors]

    everything = WatchScope()
    assert asyncio.run(story()) == [
        (Pod, 1, everything),
        (Node, 1, everything),
        (ConfigMap, 1, WatchScope.of_one("system", "cards")),
    ]


def test_watches_that_ended_may_begin_again() -> None:
    async def story() -> int:
        watches = ClusterWatches(ObjectServer(*WORLD), [Pod])  # type: ignore[arg-type]
        for _ in range(2):
            async with watches:
                await asyncio.wait_for(watches.synced(), 20)
                assert watches.running is not None
            assert watches.running is None
        return len(watches.reflectors)

    assert asyncio.run(story()) == 1


def test_a_watch_that_crashes_ends_them_all() -> None:
    class Broken(Reflector):
        async def run(self) -> None:
            raise RuntimeError("a bug")

    async def story() -> None:
        async with ClusterWatches(ObjectServer(), [Pod, Node], reflector=Broken) as watches:  # type: ignore[arg-type]
            assert watches.running is not None
            await watches.running

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        asyncio.run(story())
