"""A mirror of a real API server, and the question whether it is what a fresh list says."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from stromboli.api.types.meta import Object
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import NoResponse
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches, NativeGroupReflector
from stromboli.scheduler.mirror.consistency import list_all
from stromboli.scheduler.thread_seam import MAX_CHANGES, ChangeBuffer, ThreadSeam
from tests.properties.rebuild import facts, kept_sums, rebuilt_sums


class CountingBuffer(ChangeBuffer):
    """Notes how often each state of each object was told: once, if all is well."""

    def __init__(self, capacity: int = MAX_CHANGES) -> None:
        super().__init__(capacity)
        self.states: Counter[tuple[str, str, str]] = Counter()
        self.gone: Counter[tuple[str, str]] = Counter()

    def put(self, object: Object, new: bool) -> None:
        meta = object.metadata
        self.states[type(object).__name__, meta.uid, meta.resource_version] += 1
        super().put(object, new)

    def drop(self, object: Object) -> None:
        self.gone[type(object).__name__, object.metadata.uid] += 1
        super().drop(object)

    @property
    def repeated(self) -> list[Any]:
        every = [*self.states.items(), *self.gone.items()]
        return [what for what, times in every if times > 1]


class Cutting(Client):
    """A client whose watches break off after a few pieces, often in the middle of a line."""

    share = 0.05
    """Of all pieces, those that are cut."""

    def __init__(self, access: Access, chance: random.Random) -> None:
        super().__init__(access)
        self._chance = chance
        self.cuts = 0

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        async with super().stream(path, idle_timeout) as pieces:
            yield self._cut(pieces)

    async def _cut(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            if self._chance.random() < self.share:
                self.cuts += 1
                yield piece[: self._chance.randrange(len(piece) + 1)]
                raise NoResponse("cut")
            yield piece


@asynccontextmanager
async def mirroring(access: Access, **options: Any) -> AsyncIterator[ClusterMirror]:
    """A mirror that is in step."""
    reflector_of = partial(Reflector, **options)
    native_reflector_of = partial(NativeGroupReflector, **options)
    seam = ThreadSeam(changes=CountingBuffer())
    async with (
        Client(access) as client,
        ClusterMirror(
            ClusterWatches(client, seam=seam, reflector=reflector_of, native_reflector=native_reflector_of)
        ) as mirror,
    ):
        await asyncio.wait_for(mirror.watches.synced(), 60)
        mirror.sync()
        yield mirror


async def until(mirror: ClusterMirror, condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Take news until it holds."""
    end = time.monotonic() + seconds
    while True:
        mirror.sync()
        if condition():
            return
        assert time.monotonic() < end, f"waited {seconds:g} seconds for {what}; {mirror.watches.unsynced}"
        await asyncio.sleep(0.05)


async def assert_in_step(mirror: ClusterMirror, seconds: float = 30) -> None:
    """The model is, number by number, what one built from a fresh list is; and nothing was told twice."""
    end = time.monotonic() + seconds
    while True:
        fresh = await list_all(mirror)
        mirror.sync()
        mirror.cluster.settle()
        differences = differing(facts(mirror.cluster), facts(fresh))
        if not differences or time.monotonic() > end:
            break
        await asyncio.sleep(0.3)
    assert not differences, "\n".join(differences[:20])
    assert kept_sums(mirror.cluster) == rebuilt_sums(mirror.cluster)
    assert isinstance(mirror.seam.changes, CountingBuffer)
    assert mirror.seam.changes.repeated == []


def differing(ours: Any, theirs: Any, at: str = "") -> list[str]:
    """Where two facts differ."""
    if ours == theirs:
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = {**ours, **theirs}
        return [
            difference
            for key in keys
            for difference in differing(ours.get(key), theirs.get(key), f"{at}/{key}")
        ]
    return [f"{at}: {ours}, not {theirs}"]


def reflector(mirror: ClusterMirror, kind: type[Object]) -> Reflector:
    return next(candidate for candidate in mirror.watches.reflectors if candidate.kind is kind)
