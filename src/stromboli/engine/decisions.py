"""What a cycle decides: small values that its caller carries out."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from stromboli.model.job import JobId
from stromboli.model.ledgers import Grant


class Decision(
    Struct, frozen=True, gc=False, tag=True, tag_field="decision", rename="camel", omit_defaults=True
):
    """A change for the caller of the cycle to make."""


class PodDecision(Decision, frozen=True):
    """A decision about a pod."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Bind(PodDecision, frozen=True):
    """Bind a pod to a node, after its grants are written."""

    node: str
    job: str
    grants: tuple[Grant, ...] = ()


class Evict(PodDecision, frozen=True):
    """Evict a pod: the action, the job and the domain it is evicted for, and what it frees.

    A moved pod starts again on its destination.
    """

    node: str
    job: str
    reason: str
    action: str = ""
    beneficiary: str = ""
    chosen_by: str = ""
    frees: dict[str, str] = {}
    domain: str = ""
    destination: str = ""


class PodCondition(PodDecision, frozen=True):
    """Report why a pod waits (PodScheduled=False); a nominated node is being cleared for it."""

    reason: str
    message: str
    nominated_node: str = ""


class GroupCondition(Struct, frozen=True, gc=False, rename="camel"):
    """One condition of a PodGroup; `transition_id` names the cycle that set it."""

    type: str
    status: str
    reason: str
    message: str
    transition_id: str


class PodGroupStatus(Decision, frozen=True):
    """A job's phase, counts and conditions."""

    namespace: str
    name: str
    phase: str
    running: int
    succeeded: int
    failed: int
    conditions: tuple[GroupCondition, ...] = ()


class NativeGroupCondition(Decision, frozen=True):
    """Whether a native group was scheduled; once true, the condition stays true."""

    namespace: str
    name: str
    status: Literal["True", "False"]
    reason: str
    message: str


class QueueStatus(Decision, frozen=True):
    """What a queue has allocated."""

    name: str
    allocated: dict[str, str]


class QueueAnnotation(Decision, frozen=True):
    """Data stored with a queue, for the next start of the scheduler."""

    name: str
    key: str
    value: str


class ShardStatus(Decision, frozen=True):
    """The nodes that a scheduler uses, those that it waits for, and those to give up."""

    name: str
    in_use: tuple[str, ...]
    to_add: tuple[str, ...]
    to_remove: tuple[str, ...]


class ReleaseClaim(Decision, frozen=True):
    """Release the devices of an unused ResourceClaim: remove allocation, device status and reservations.

    It was allocated for pods that were not placed, and no other component frees its devices. If the claim has changed
    since, a later cycle decides again.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    """The version of the claim that was seen."""
    delete: bool = False
    """Whether to delete the claim with its finalizer: it was created for extended resources of one attempt."""


class GateRemoval(PodDecision, frozen=True):
    """Remove the scheduling gate that held a pod until its queue had capacity."""


class Event(Decision, frozen=True):
    """An Event about an object."""

    kind: str
    """`Pod`, `PodGroup`, `NativePodGroup`, `Queue`, `HyperNode`, or that of a PodGroup's owner, such as `Job`."""
    namespace: str
    name: str
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str
    api_version: str = ""
    """The apiVersion of an owner; for other objects the kind determines it."""
    uid: str = ""
    topic: str = ""
    """A later event on the same topic replaces one that has not been written yet."""
    job: JobId | None = None
    """The job whose group or owner the event is about."""
