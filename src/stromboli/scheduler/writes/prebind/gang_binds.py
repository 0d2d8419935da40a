"""Binds that go together: those of one job that one cycle decided, if any of them needs a write before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.volumes.volume_grant import VolumeGrant

if TYPE_CHECKING:
    from stromboli.api.types.devices import ConsumerReference
    from stromboli.api.types.node import Node
    from stromboli.engine.decisions import Bind
    from stromboli.model.ledgers import Grant
    from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder


_WRITTEN_GRANTS = (VolumeGrant, ClaimGrant, ExtendedResourceGrant)


def needs_prebind(bind: Bind) -> bool:
    """Whether anything has to be written before this bind."""
    return any(
        grant.lock if isinstance(grant, CardGrant) else isinstance(grant, _WRITTEN_GRANTS)
        for grant in bind.grants
    )


class PreBindFailed(Exception):
    """What a bind needs will not come, or is somebody else's by now."""


class BindAbandoned(Exception):
    """The process ends while a bind waits: the next leader goes on from the objects."""


@dataclass(slots=True)
class GangFailure:
    """Why a gang is given up."""

    culprit: Bind
    why: str
    before_bind: bool
    """Whether what its bind needs failed, and not the bind itself."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Gang:
    """The binds of a gang. None is sent before all is written, and true, that its minimum needs."""

    job: Hashable = None
    """As in the orders."""
    spare: int = 0
    """How many of the binds may fail, or come later: pods beyond the minimum of the job."""
    unready: set[str] = field(default_factory=set)
    """Uids of pods whose grants are not all true yet."""
    unbound: dict[str, WriteOrder] = field(default_factory=dict)
    """The orders that are not done, by the uids of their pods: a new pod may have the name of one that is gone."""
    begun: bool = False
    """Whether any bind may have been sent."""
    waits: bool = False
    """Whether any bind has had to wait for what others do, such as controllers and drivers."""
    abandoned: bool = False
    """Whether that wait is over as the process ends."""
    locks: dict[tuple[str, str], str] = field(default_factory=dict)
    """When each node was locked for it, by node and annotation."""
    claims: set[str] = field(default_factory=set)
    """Uids of ResourceClaims about which anything was written for it."""
    consumers: dict[str, dict[str, ConsumerReference]] | None = None
    """Who of it uses which ResourceClaim, by the uids of both; once that was needed."""
    failure: GangFailure | None = None
    failures: list[WriteFailure] = field(default_factory=list)
    """Those of its binds; told all at once, so that no cycle sees a part of the gang as placed."""

    def add(self, order: WriteOrder, uid: str, node: Node | None) -> None:
        order.member = GangMember(order.key, self, node)
        self.job = order.job
        self.unready.add(uid)
        self.unbound[uid] = order

    def adopt(self, order: WriteOrder, uid: str) -> None:
        """A later cycle decided on one pod more of the job: it follows those that it must not run without."""
        order.member = order.member or GangMember(order.key, self, None)
        order.member.gang, order.member.follows = self, True
        self.unbound[uid] = order
        self.consumers = None

    @property
    def may_begin(self) -> bool:
        """Whether enough pods are ready for the binds to be sent."""
        return len(self.unready) <= self.spare

    def can_spare(self, member: GangMember) -> bool:
        return member.follows or self.spare > 0

    def leave(self, member: GangMember, uid: str, failure: GangFailure) -> None:
        """A bind that can be spared failed: it goes its own way."""
        self.spare -= not member.follows
        self.unready.discard(uid)
        self.consumers = None
        alone = {uid: self.unbound.pop(uid)}
        member.gang = Gang(unbound=alone, begun=True, claims=self.claims, failure=failure)


@dataclass(slots=True, eq=False)
class GangMember:
    """What became so far of one bind of a gang."""

    key: Hashable
    """Of its order."""
    gang: Gang
    node: Node | None
    """The node of the bind as it was when that was decided."""
    node_gone: bool = False
    """Whether the node was deleted while the bind waited."""
    follows: bool = False
    """Whether the gang does not need it."""
    written: bool = False
    """Whether all its grants were written."""
    ready: bool = False
    """Whether they are true, so that the pod may be bound."""
    awaited: list[Grant] = field(default_factory=list)
    """Grants that were written and are not known to be true yet."""
    begun: float | None = None
    """When its first grant was written."""
    waiting_since: float = 0.0
    """When its last grant was written."""
    told: bool = False
    """Whether an event of its pod says what it waits for."""
    doing: str = ""
    """What is being written, as the beginning of an error."""
    lock_time: str = ""
    """When it locked its node, also if the answer was lost."""
    made_claim: str = ""
    """The name of the ResourceClaim that was made for it, or may have been."""
    why: str = ""
    """Why this very bind failed."""
    gone: bool = False
    """Whether it failed because the pod is gone."""
    undoing: bool = False
    """Whether it is being taken back."""
    take_back: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What takes back what was written or may have been, the last first."""
