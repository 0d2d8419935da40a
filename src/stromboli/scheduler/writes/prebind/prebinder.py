"""Sends the binds of a gang together, once all that they need is written and true.

Each bind is an order like any other, so it holds a writer only while it sends. One that waits, for a claim or for the
others of its gang, is parked until that happens. A gang that fails is given up as a whole, except for pods that are
bound: what was written for it is reverted, and an event on each of its pods reports why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind, Event
from stromboli.kube.keyed_queue import PARKED, KeyedQueue
from stromboli.kube.request import ApiError, GuardedClient
from stromboli.model.cards.pod_cards import LOCK_SECONDS, CardGrant, lock_counts
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.ledgers import Grant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes.decision_requests import PodNotBindable
from stromboli.scheduler.writes.prebind.claim_writes import ClaimRelease, ClaimWrites, ExtendedResourceWrites
from stromboli.scheduler.writes.prebind.grant_writer import (
    AwaitedObjects,
    GrantObjects,
    GrantWriter,
    Json,
    annotations_of,
)
from stromboli.scheduler.writes.prebind.volume_writes import VolumeWrites
from stromboli.scheduler.writes.write_orders import (
    BindAbandoned,
    Gang,
    GangFailure,
    GangMember,
    PreBindFailed,
    WriteFailure,
    WriteOrder,
)


class PreBinder:
    """Moves the binds of gangs from step to step; on the event loop."""

    def __init__(
        self,
        client: GuardedClient,
        queue: KeyedQueue[WriteOrder],
        prebound: Callable[[WriteOrder, float], None],
        record: Callable[[WriteOrder], None],
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`queue` executes orders. `prebound` is called with the seconds that the writes took.

        `record` writes an event.
        """
        self._queue = queue
        self.awaited = AwaitedObjects(queue.resume)
        self.gangs: dict[Hashable, Gang] = {}
        """The last gang of each job of which some binds are not done."""
        self._ending = False
        self._prebound = prebound
        self._record = record
        self._clock = clock
        objects = self._objects = GrantObjects(client)
        self._claims = claims = ClaimWrites(objects, self.awaited, wall, clock)
        self.claim_release = ClaimRelease(objects, claims)
        self._writers: Mapping[type[Grant], GrantWriter] = {
            VolumeGrant: VolumeWrites(objects, self.awaited, clock, self._report_wait),
            ClaimGrant: claims,
            ExtendedResourceGrant: ExtendedResourceWrites(client, objects, claims),
            CardGrant: NodeLock(objects, wall),
        }

    def join(self, order: WriteOrder, bind: Bind) -> None:
        """Make a bind part of its gang: until the minimum of its job is ready, a bind of a later cycle waits too."""
        earlier = self.gangs.get(order.job)
        member = order.member
        if earlier is not None and not earlier.begun and (member is None or member.gang is not earlier):
            earlier.adopt(order, bind.uid)
        if order.member is not None:
            self.gangs[order.job] = order.member.gang

    def done(self, member: GangMember, bind: Bind, failure: WriteFailure | None = None) -> list[WriteFailure]:
        """A bind is done, or has failed; return the failures of its gang once all its binds are done."""
        gang = member.gang
        gang.unbound.pop(bind.uid, None)
        if failure is not None:
            gang.failures.append(failure)
        if gang.unbound:
            return []
        self._forget(gang)
        return gang.failures

    def _forget(self, gang: Gang) -> None:
        """All binds of a gang are done: later binds of its job do not wait for it."""
        if self.gangs.get(gang.job) is gang:
            del self.gangs[gang.job]

    def end(self) -> None:
        """End all waiting, as the process ends; the next leader continues from what is written."""
        self._ending = True
        self.awaited.resume_all()

    # -- before the binds

    async def advance(self, order: WriteOrder, member: GangMember, bind: Bind) -> float | None:
        """Take the next steps of a bind; return None if it may be sent now, else for how many seconds it waits."""
        gang = member.gang
        if gang.abandoned and not gang.may_begin:
            raise BindAbandoned
        if not member.ready:
            await self._write(member, bind)
            if pause := await self._time_to_wait(member, bind):
                return self._wait(gang, pause)
            self._is_ready(order, member, bind)
        if gang.failure is not None:  # meanwhile
            return 0.0
        if not gang.may_begin:
            self._expect_place(member, bind)
            if gang.waits:  # maybe for long
                await self._check_place(member, bind)
            return PARKED
        self._check_node(member, bind)
        self.awaited.forget(member.key)
        gang.begun = True
        return None

    async def _write(self, member: GangMember, bind: Bind) -> None:
        member.begun = self._clock() if member.begun is None else member.begun
        if not member.written:
            written = [grant for grant in bind.grants if grant.needs_write]
            for grant in written:
                writer = self._writers[type(grant)]
                member.doing = writer.doing
                await writer.write(member, bind, grant)
            member.awaited = sorted(written, key=lambda grant: isinstance(grant, CardGrant))  # locks last
            member.written, member.waiting_since = True, self._clock()

    async def _time_to_wait(self, member: GangMember, bind: Bind) -> float:
        while member.awaited:
            writer = self._writers[type(member.awaited[0])]
            member.doing = writer.doing
            if pause := await writer.time_to_wait(member, bind, member.awaited[0]):
                self._expect_place(member, bind)
                await self._check_place(member, bind)
                return pause
            del member.awaited[0]
        return 0.0

    def _report_wait(self, bind: Bind, text: str) -> None:
        """Write an event of a pod that waits long for other components."""
        reason = names.EVENT_WAITING_FOR_VOLUME
        event = Event("Pod", bind.namespace, bind.name, names.NORMAL, reason, text)
        self._record(WriteOrder(event, bind.uid))

    def _wait(self, gang: Gang, pause: float) -> float:
        """A bind of the gang has to wait: the ready ones check whether their pods still exist."""
        if self._ending:
            gang.abandoned = True
            self._resume(gang.unbound.values())
            raise BindAbandoned
        if not gang.waits:
            gang.waits = True
            self._resume_ready(gang)
        return pause

    def _expect_place(self, member: GangMember, bind: Bind) -> None:
        """While a bind waits, its pod or its node may be deleted."""

        def node_is_gone(_: Node, gone: bool) -> bool:
            member.node_gone = gone
            return gone

        self.awaited.expect(member.key, Pod, bind.key, lambda pod, gone: gone or _is_leaving(pod))
        self.awaited.expect(member.key, Node, bind.node, node_is_gone)

    async def _check_place(self, member: GangMember, bind: Bind) -> None:
        self._check_node(member, bind)
        pod = await self._pod(bind)
        if pod is None or _is_leaving(pod):
            raise PodNotBindable("the pod is gone" if pod is None else "the pod is being deleted")

    def _check_node(self, member: GangMember, bind: Bind) -> None:
        if member.node_gone:
            raise PreBindFailed(f"node {bind.node} is gone")

    def _is_ready(self, order: WriteOrder, member: GangMember, bind: Bind) -> None:
        """All that this bind needs is true; the last bind of its gang resumes the others."""
        self.awaited.forget(member.key)
        member.ready, member.doing = True, ""
        self._prebound(order, self._clock() - (member.begun or 0.0))
        order.since, order.tries = None, 0
        gang = member.gang
        waited = not gang.may_begin
        gang.unready.discard(bind.uid)
        if waited and gang.may_begin:
            self._resume_ready(gang)

    def _resume_ready(self, gang: Gang) -> None:
        self._resume(
            order for order in gang.unbound.values() if order.member is not None and order.member.ready
        )

    def _resume(self, orders: Iterable[WriteOrder]) -> None:
        for order in orders:
            self._queue.resume(order.key)

    # -- when a bind, or what it needs, fails

    def fail(self, member: GangMember, bind: Bind, why: str, gone: bool) -> None:
        """This bind failed for good: its gang is given up, unless it can do without."""
        gang = member.gang
        member.why, member.gone = member.doing + why, gone
        self.awaited.forget(member.key)
        if gang.failure is not None:
            return
        failure = GangFailure(bind, member.why, before_bind=not (member.ready and gang.begun))
        if gang.can_spare(member):
            gang.leave(member, bind.uid, failure)
            if not gang.unbound:
                self._forget(gang)
            elif gang.may_begin:
                self._resume_ready(gang)
        else:
            gang.failure = failure
        for order in member.gang.unbound.values():
            order.since, order.tries = None, 0
        self._resume(member.gang.unbound.values())

    async def take_back(self, member: GangMember, bind: Bind) -> bool:
        """Revert what was written for a bind that is given up; return False if the pod is bound, which keeps it."""
        if not member.undoing:
            claims = (grant for grant in bind.grants if isinstance(grant, ClaimGrant))
            member.take_back += [partial(self._claims.give_back, member, grant) for grant in claims]
        member.undoing = True
        self.awaited.forget(member.key)
        pod = await self._pod(bind)
        if pod is not None and pod.spec.node_name:
            member.take_back.clear()
            return False
        while member.take_back:
            await member.take_back[-1]()
            member.take_back.pop()
        return True

    async def _pod(self, bind: Bind) -> Pod | None:
        pod = await self._objects.decoded(Pod, bind.namespace, bind.name)
        return pod if pod is not None and pod.metadata.uid == bind.uid else None


def failure_of(member: GangMember, bind: Bind) -> WriteFailure:
    """Why a bind of a gang failed: by itself, or with the gang."""
    failure = member.gang.failure
    assert failure is not None
    if failure.before_bind:
        return WriteFailure(bind, member.why or failure.why, member.gone, failure.culprit.key)
    if member.why:
        return WriteFailure(bind, member.why, member.gone)
    return WriteFailure(bind, f"pod {failure.culprit.key} of the same gang was not bound: {failure.why}")


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


# -- the lock of a node whose device plugin hands cards out to one pod at a time (spec 04 10.7)


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
        for tries in range(TRIES):
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
