"""The lock of a node whose device plugin hands cards out to one pod at a time (spec 04 10.7).

The device plugin takes it off; it is taken off by us if the pod is not bound after all. Pods of a gang that go to the
same node share the lock. As it holds for minutes, and keeps others off the node, it is written once all else that the
pod needs is true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from stromboli.api.types.node import Node
from stromboli.engine.decisions import Bind
from stromboli.kube.request import ApiError
from stromboli.kube.timestamps import timestamp
from stromboli.model.cards.card_grants import LOCK_SECONDS, CardGrant, lock_counts
from stromboli.scheduler.writes.prebind.gang_binds import GangMember, PreBindFailed
from stromboli.scheduler.writes.prebind.grant_writer import GrantObjects, Json, annotations_of

TRIES = 5
_PAUSE = 0.1


class NodeLock:
    """Writes the lock that a `CardGrant` asks for."""

    doing = ""

    def __init__(self, objects: GrantObjects, wall: Callable[[], float]):
        self._objects = objects
        self._wall = wall

    async def write(self, member: GangMember, bind: Bind, grant: CardGrant) -> None:
        """Nothing yet."""

    async def time_to_wait(self, member: GangMember, bind: Bind, grant: CardGrant) -> float:
        for tries in range(TRIES if grant.lock else 0):
            if tries:
                await asyncio.sleep(_PAUSE)
            try:
                await self._lock(member, bind.node, grant.lock)
            except ApiError as error:
                member.lock_time = ""
                if error.status != 409 or tries == TRIES - 1:
                    raise
            else:
                break
        return 0.0

    async def _lock(self, member: GangMember, name: str, key: str) -> None:
        node = await self._objects.read(Node, "", name)
        if node is None:
            raise PreBindFailed(f"node {name} is gone")
        now, held = self._wall(), annotations_of(node).get(key, "")
        if held and held in (member.gang.locks.get((name, key)), member.lock_time):
            return
        if lock_counts(held, now):
            raise PreBindFailed(f"node {name} has been locked within {LOCK_SECONDS // 60} minutes")
        member.lock_time = timestamp(now)
        member.take_back.append(partial(self._unlock, name, key, member.lock_time))
        await self._objects.patch(Node, node, _lock(key, member.lock_time))
        member.gang.locks[name, key] = member.lock_time

    async def _unlock(self, name: str, key: str, time: str) -> None:
        node = await self._objects.read(Node, "", name)
        if node is not None and annotations_of(node).get(key) == time:
            await self._objects.patch(Node, node, _lock(key, None))


def _lock(key: str, time: str | None) -> Json:
    return {"metadata": {"annotations": {key: time}}}
