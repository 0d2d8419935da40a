"""One ResourceClaim: what its object shows, and the tasks on nodes that use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.model.devices.queue_usage import DeviceAmounts, device_amounts
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.api.types.devices import AllocationResult, ResourceClaim, ResourceClaimSpec
    from stromboli.model.task import Task


@dataclass(slots=True, weakref_slot=True, eq=False)
class ClaimContent:
    """What a claim asks for; claims that ask for the same share it, so it is its own key."""

    spec: ResourceClaimSpec
    """The spec of all these claims."""
    amounts: DeviceAmounts = field(init=False)
    """What each of them counts against the quota of a queue."""

    def __post_init__(self) -> None:
        self.amounts = device_amounts(self.spec)

    @property
    def has_alternatives(self) -> bool:
        """Whether some request takes the first of several that is available."""
        return any(request.first_available for request in self.spec.devices.requests)


class TaskUse(NamedTuple):
    """How a task on a node uses a claim."""

    status: Status
    """Whether it has the claim, is promised it or is leaving."""
    allocation: AllocationResult | None
    """What the claim was given for it and may not show yet."""


class Holding(NamedTuple):
    """The devices that a claim holds, and whether it goes on holding them once what is leaving has left."""

    allocation: AllocationResult
    stays: bool


@dataclass(slots=True, eq=False, repr=False)
class ClaimUse:
    """A claim with its users."""

    key: str
    """`namespace/name`."""
    object: ResourceClaim | None = None
    """The claim as the API server has it; none if there is none, or none yet."""
    content: ClaimContent | None = None
    """What it asks for."""
    users: dict[Task, TaskUse] = field(default_factory=dict)
    """The tasks on nodes that use it."""
    counted: Holding | None = None
    """What the ledger has counted of it."""
    made_for: str = ""
    """The uid of the pod whose extended resources it is to serve, while it is not created yet."""

    @property
    def shown(self) -> AllocationResult | None:
        """The allocation that its object shows."""
        return self.object.status.allocation if self.object is not None else None

    @property
    def allocation(self) -> AllocationResult | None:
        """The allocation that its object shows, or else the one in flight."""
        return self.shown or next((use.allocation for use in self.users.values() if use.allocation), None)

    @property
    def is_promised(self) -> bool:
        """Whether its allocation waits for devices of others that are leaving."""
        return self.shown is None and all(
            use.status is Status.PIPELINED for use in self.users.values() if use.allocation
        )

    def is_leaving(self, statuses: Mapping[str, Status]) -> bool:
        """Whether all its consumers are on their way out, so that its devices come free.

        `statuses` are those of all tasks on nodes, by uid. Whoever is not on a node may still come to use it.
        """
        reserved = self.object.status.reserved_for if self.object is not None else ()
        return (
            bool(self.users or reserved)
            and all(use.status is Status.RELEASING for use in self.users.values())
            and all(statuses.get(consumer.uid) is Status.RELEASING for consumer in reserved)
        )

    @property
    def is_extended(self) -> bool:
        """Whether it was made for extended resources of a pod."""
        if self.object is None:
            return False
        return self.object.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"

    @property
    def controller(self) -> str:
        """The uid of the object that controls it; empty if none does."""
        owners = self.object.metadata.owner_references if self.object is not None else ()
        return next((owner.uid for owner in owners if owner.controller), "")

    def __repr__(self) -> str:
        return f"ClaimUse({self.key})"
