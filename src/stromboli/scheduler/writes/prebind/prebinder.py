"""Lets the binds of a gang go together: all that they need is written and true first, then they are sent.

Each bind is an order like any other, so it holds a writer only while it sends. One that waits, for a claim or for the
others of its gang, is woken by what it waits for. A gang that fails is given up as a whole, as far as it is not bound:
what was written for it is taken back, and each of its pods is told why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial

from stromboli.api.decoding import decode_as
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind
from stromboli.kube.guarded_client import GuardedClient
from stromboli.kube.keyed_queue import PARKED
from stromboli.kube.request import ApiError, Request
from stromboli.model.cards.card_grants import CardGrant
from stromboli.model.devices.claim_grants import ClaimGrant, ExtendedResourceGrant
from stromboli.model.ledgers import Grant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.pod_writes import PodNotBindable
from stromboli.scheduler.writes.prebind.awaited_objects import AwaitedObjects
from stromboli.scheduler.writes.prebind.claim_release import ClaimRelease
from stromboli.scheduler.writes.prebind.claim_writes import ClaimWrites
from stromboli.scheduler.writes.prebind.extended_resource_writes import ExtendedResourceWrites
from stromboli.scheduler.writes.prebind.gang_binds import Gang, GangFailure, GangMember
from stromboli.scheduler.writes.prebind.grant_writer import GrantObjects, GrantWriter
from stromboli.scheduler.writes.prebind.node_lock import NodeLock
from stromboli.scheduler.writes.prebind.volume_writes import VolumeWrites
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder

_WRITTEN = (VolumeGrant, ClaimGrant, ExtendedResourceGrant)


class PreBinder:
    """Takes the binds of gangs from step to step; on the event loop."""

    def __init__(
        self,
        client: GuardedClient,
        resume: Callable[[Hashable], None],
        prebound: Callable[[WriteOrder, float], None],
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`resume` lets an order that waits go on. `prebound` is called with the seconds that the writes took."""
        self.awaited = AwaitedObjects(resume)
        self._gangs: dict[str, Gang] = {}
        """The last gang of each job of which some binds are not done."""
        self._client = client
        self._resume = resume
        self._prebound = prebound
        self._clock = clock
        objects = GrantObjects(client)
        self._claims = claims = ClaimWrites(objects, self.awaited, wall, clock)
        self.claim_release = ClaimRelease(objects, claims)
        self._writers: Mapping[type[Grant], GrantWriter] = {
            VolumeGrant: VolumeWrites(objects, self.awaited, clock),
            ClaimGrant: claims,
            ExtendedResourceGrant: ExtendedResourceWrites(client, objects, claims),
            CardGrant: NodeLock(objects, wall),
        }

    def join(self, order: WriteOrder, bind: Bind) -> None:
        """Take a bind in. While the minimum of its job is not ready, whatever else the job gets waits for that."""
        earlier = self._gangs.get(bind.job)
        member = order.member
        if earlier is not None and not earlier.begun and (member is None or member.gang is not earlier):
            earlier.adopt(order)
        if order.member is not None:
            self._gangs[bind.job] = order.member.gang

    def done(self, member: GangMember, bind: Bind, failure: WriteFailure | None = None) -> list[WriteFailure]:
        """A bind is done, or has failed; the failures of its gang, once that is so of all its binds."""
        gang = member.gang
        gang.unbound.pop(member.key, None)
        if failure is not None:
            gang.failures.append(failure)
        if gang.unbound:
            return []
        if self._gangs.get(bind.job) is gang:
            del self._gangs[bind.job]
        return gang.failures

    # -- before the binds

    async def advance(self, order: WriteOrder, member: GangMember, bind: Bind) -> float | None:
        """The next steps of a bind: None if it may be sent now, else for how many seconds it waits."""
        if not member.ready:
            await self._write(member, bind)
            if pause := await self._time_to_wait(member, bind):
                return pause
            self._is_ready(order, member, bind)
        elif not member.gang.may_begin:
            await self._check_pod(bind)
        if member.gang.failure is not None:  # meanwhile
            return 0.0
        if not member.gang.may_begin:
            self.awaited.expect(member.key, Pod, bind.key, _is_leaving)
            return PARKED
        self.awaited.forget(member.key)
        member.gang.begun = True
        return None

    async def _write(self, member: GangMember, bind: Bind) -> None:
        member.begun = self._clock() if member.begun is None else member.begun
        if not member.written:
            written = [grant for grant in bind.grants if type(grant) in self._writers]
            for grant in written:
                writer = self._writers[type(grant)]
                member.doing = writer.doing
                await writer.write(member, bind, grant)
            member.awaited = written
            member.written, member.waiting_since = True, self._clock()

    async def _time_to_wait(self, member: GangMember, bind: Bind) -> float:
        while member.awaited:
            writer = self._writers[type(member.awaited[0])]
            member.doing = writer.doing
            if pause := await writer.time_to_wait(member, bind, member.awaited[0]):
                self.awaited.expect(member.key, Pod, bind.key, _is_leaving)
                await self._check_pod(bind)
                return pause
            del member.awaited[0]
        return 0.0

    async def _check_pod(self, bind: Bind) -> None:
        pod = await self._pod(bind)
        if pod is None or _is_leaving(pod):
            raise PodNotBindable("the pod is gone" if pod is None else "the pod is being deleted")

    def _is_ready(self, order: WriteOrder, member: GangMember, bind: Bind) -> None:
        """All that this bind needs is true; the last that its gang needs lets all of them go."""
        self.awaited.forget(member.key)
        member.ready, member.doing = True, ""
        self._prebound(order, self._clock() - (member.begun or 0.0))
        order.since, order.tries = None, 0
        member.gang.unready.discard(bind.uid)
        if not member.gang.begun:
            self._wake_ready(member.gang)

    def _wake_ready(self, gang: Gang) -> None:
        if gang.may_begin:
            for key, order in gang.unbound.items():
                if order.member is not None and order.member.ready:
                    self._resume(key)

    # -- when a bind, or what it needs, fails

    def fail(self, member: GangMember, bind: Bind, why: str, gone: bool) -> None:
        """This bind failed for good: its gang is given up, unless it can do without."""
        gang = member.gang
        member.why, member.gone = member.doing + why, gone
        self.awaited.forget(member.key)
        if gang.failure is not None:
            return
        failure = GangFailure(bind, member.why, before_bind=not member.ready)
        if gang.can_spare(member):
            gang.leave(member, bind.uid, failure)
            self._wake_ready(gang)
        else:
            gang.failure = failure
        for key, order in (gang if gang.failure else member.gang).unbound.items():
            order.since, order.tries = None, 0
            self._resume(key)

    async def take_back(self, member: GangMember, bind: Bind) -> bool:
        """Take back what was written for a bind that is given up; whether it was: a pod that is bound keeps it."""
        if not member.undoing:
            claims = (grant for grant in bind.grants if isinstance(grant, ClaimGrant))
            member.take_back += [partial(self._claims.give_back, member, grant) for grant in claims]
        member.undoing = True
        self.awaited.forget(member.key)
        pod = await self._pod(bind)
        if pod is not None and pod.spec.node_name:
            return False
        while member.take_back:
            await member.take_back[-1]()
            member.take_back.pop()
        return True

    async def _pod(self, bind: Bind) -> Pod | None:
        try:
            path = decision_requests.pod_path(bind.namespace, bind.name)
            pod = decode_as(Pod, await self._client.send(Request("GET", path)))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return pod if pod.metadata.uid == bind.uid else None


def needs_prebind(bind: Bind) -> bool:
    """Whether anything has to be written before this bind."""
    return any(
        grant.lock if isinstance(grant, CardGrant) else isinstance(grant, _WRITTEN) for grant in bind.grants
    )


def failure_of(member: GangMember, bind: Bind) -> WriteFailure:
    """Why a bind of a gang failed: for itself, or with the gang."""
    failure = member.gang.failure
    assert failure is not None
    if failure.before_bind:
        return WriteFailure(bind, member.why or failure.why, member.gone, failure.culprit.key)
    if member.why:
        return WriteFailure(bind, member.why, member.gone)
    return WriteFailure(bind, f"pod {failure.culprit.key} of the same gang was not bound: {failure.why}")


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None
