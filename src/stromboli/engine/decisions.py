"""What a cycle decides: small values, carried out by its caller."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from stromboli.model.job import JobId
from stromboli.model.ledgers import Grant


class Decision(
    Struct, frozen=True, gc=False, tag=True, tag_field="decision", rename="camel", omit_defaults=True
):
    """Something to be done in the world."""


class PodDecision(Decision, frozen=True):
    """Something to be done with a pod."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Bind(PodDecision, frozen=True):
    """Let a pod run on a node, once what it was granted there besides amounts is written."""

    node: str
    job: str
    grants: tuple[Grant, ...] = ()


class Evict(PodDecision, frozen=True):
    """Take a pod off its node: by which action, for which job and in which domain, and what it frees.

    A pod that is moved starts again on its destination.
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
    """Whether a native group was scheduled; once it was, that stands."""

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
    """Something that is kept with a queue, so that a restart finds it again."""

    name: str
    key: str
    value: str


class ShardStatus(Decision, frozen=True):
    """Which nodes a scheduler uses, which it is still to get, and which to give up."""

    name: str
    in_use: tuple[str, ...]
    to_add: tuple[str, ...]
    to_remove: tuple[str, ...]


class ReleaseClaim(Decision, frozen=True):
    """Release the devices of an unused ResourceClaim: remove allocation, device status and reservations.

    It was allocated for pods that were not placed after all, and no other component would ever free its devices.
    The claim must still be as it was seen; else it is looked at again in a later cycle.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    """The version of the claim that was seen."""
    delete: bool = False
    """Whether the claim itself goes, finalizer and all: it was made for extended resources of one attempt."""


class GateRemoval(PodDecision, frozen=True):
    """Remove the gate that held a pod until its queue had capacity."""


class Event(Decision, frozen=True):
    """Something a user should read about an object."""

    kind: str
    """`Pod`, `PodGroup`, `NativePodGroup`, `Queue`, `HyperNode`, or that of a PodGroup's owner, such as `Job`."""
    namespace: str
    name: str
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str
    api_version: str = ""
    """Of an owner; of the others the kind determines it."""
    uid: str = ""
    topic: str = ""
    """A later event on the same topic takes the place of one that has not been written yet."""
    job: JobId | None = None
    """The job that it is about, on whose group or owner it is written."""
