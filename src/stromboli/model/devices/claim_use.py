"""ResourceClaims in use: what a claim's object shows, what tasks are granted, and what counts for their queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.api.resources.quantity import QuantityError, milli
from stromboli.api.types.devices import EXACT_COUNT, AllocationResult, ConsumerReference, DeviceRequest
from stromboli.api.types.pod import ContainerExtendedResourceRequest
from stromboli.model.amounts import add_to
from stromboli.model.ledgers import Grant
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.api.types.devices import ResourceClaim, ResourceClaimSpec
    from stromboli.model.task import Task


# -- devices by class that the claims of a queue's tasks request, each claim once (spec 03 9)


COUNT_PREFIX = "deviceclass/"
"""With a class: a number of devices of it."""
CAPACITY_INFIX = ".deviceclass/"
"""Between the name of a capacity and a class: an amount of it."""
DeviceAmounts = Mapping[str, int]
"""Thousandths by `deviceclass/<class>` and `<capacity>.deviceclass/<class>`, as queues name them."""


def device_amounts(spec: ResourceClaimSpec) -> dict[str, int]:
    """What a claim counts against quota: exact counts alone; alternatives and `All` count nothing."""
    amounts: dict[str, int] = {}
    for request in spec.devices.requests:
        exactly = request.exactly
        if exactly is None or not exactly.device_class_name or exactly.allocation_mode != EXACT_COUNT:
            continue
        name, count = exactly.device_class_name, max(exactly.devices, 0)
        add_to(amounts, COUNT_PREFIX + name, 1000 * count)
        for capacity, quantity in (exactly.capacity.requests if exactly.capacity else {}).items():
            try:
                add_to(amounts, f"{capacity}{CAPACITY_INFIX}{name}", max(milli(quantity), 0) * count)
            except QuantityError:
                continue  # the allocator refuses such a claim, like negative amounts, with a reason
    return amounts


def class_of(name: str) -> str:
    """The device class of a key; empty for other resources."""
    before, infix, after = name.partition(CAPACITY_INFIX)
    if infix and before:
        return after
    return name.removeprefix(COUNT_PREFIX) if name.startswith(COUNT_PREFIX) else ""


class DeviceUsage:
    """Claims with the number of tasks that use each, and their total request."""

    __slots__ = ("_claims", "amounts")

    def __init__(self) -> None:
        self._claims: dict[str, tuple[int, DeviceAmounts]] = {}
        """The number of tasks that use each claim, by its key."""
        self.amounts: dict[str, int] = {}
        """The total request of the claims."""

    def __bool__(self) -> bool:
        return bool(self._claims)

    def add(self, claims: Iterable[ClaimUse]) -> None:
        """Add a task that uses these claims."""
        for use in claims:
            self._shift(use, 1)

    def remove(self, claims: Iterable[ClaimUse]) -> None:
        """Remove a task that uses these claims."""
        for use in claims:
            self._shift(use, -1)

    def _shift(self, use: ClaimUse, sign: int) -> None:
        """Count a user more or less; negative if a user is removed that was not counted here."""
        users, amounts = self._claims.pop(use.key, (0, None))
        if amounts is None:
            amounts = use.content.amounts if use.content is not None else {}
        left = users + sign
        if left:
            self._claims[use.key] = (left, amounts)
        if (users > 0) is not (left > 0) or (users < 0) is not (left < 0):
            for name, amount in amounts.items():
                add_to(self.amounts, name, sign * amount)

    def added_by(self, claims: Iterable[ClaimUse]) -> dict[str, int]:
        """What a task with these claims would add: nothing for claims that are already in use."""
        added: dict[str, int] = {}
        for use in claims:
            if self._claims.get(use.key, (0,))[0] <= 0 and use.content is not None:
                for name, amount in use.content.amounts.items():
                    add_to(added, name, amount)
        return added


# -- grants: devices of a claim, and the permission to use them


class ClaimGrant(Grant, frozen=True):
    """How a task gets to use a ResourceClaim; a task has a grant for each of its claims.

    Before the pod is bound, the claim gets this allocation (with the finalizer of allocated claims), unless there is
    none to write, and its consumer in `status.reservedFor`. Pods that share a claim hold equal allocations, so writing
    an existing equal allocation changes nothing; if the claim has another one, the bind fails.
    """

    namespace: str
    """The namespace of the claim."""
    name: str
    """The name of the claim."""
    uid: str
    """The uid of the claim, to exclude another claim of the same name."""
    consumer: ConsumerReference
    """The consumer that reserves the claim: the pod, or the native PodGroup whose claim it is."""
    allocation: AllocationResult | None = None
    """What is written into `status.allocation`; none if the claim was allocated already."""

    @property
    def needs_write(self) -> bool:
        return True


class ExtendedResourceGrant(Grant, frozen=True):
    """Devices for extended resources of a pod, by a ResourceClaim that is created for it.

    Before the pod is bound, the claim is created: owned and controlled by the pod, with the annotation
    `resource.kubernetes.io/extended-resource-claim: "true"` and a name generated from `<pod>-extended-resources-`. It
    gets its allocation and the pod in `status.reservedFor`, and the pod its `status.extendedResourceClaimStatus`. If
    the bind fails, the claim is deleted, finalizer and all.
    """

    namespace: str
    """The namespace of the pod and of its claim."""
    consumer: ConsumerReference
    """The pod."""
    requests: tuple[DeviceRequest, ...]
    """The requests of the claim (`spec.devices.requests`)."""
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    """The request for each extended resource of each container (`requestMappings` of the pod's status)."""
    allocation: AllocationResult
    """What is written into `status.allocation`."""

    @property
    def needs_write(self) -> bool:
        return True


# -- one claim: its object, and the tasks on nodes that use it


@dataclass(slots=True, weakref_slot=True, eq=False)
class ClaimContent:
    """The request of a claim; claims with equal requests share it, so it is its own key."""

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
    """The allocation that was granted for it, which the claim may not show yet."""


class Holding(NamedTuple):
    """The devices that a claim holds, and whether it still holds them once leaving tasks have left."""

    allocation: AllocationResult
    stays: bool


@dataclass(slots=True, eq=False, repr=False)
class ClaimUse:
    """A claim with its users."""

    key: str
    """`namespace/name`."""
    object: ResourceClaim | None = None
    """The claim as the API server has it; none if it does not exist, or not yet."""
    content: ClaimContent | None = None
    """Its request."""
    users: dict[Task, TaskUse] = field(default_factory=dict)
    """The tasks on nodes that use it."""
    counted: Holding | None = None
    """What the ledger counts for it."""
    made_for: str = ""
    """The uid of the pod whose extended resources it will serve, until it is created."""

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
        """Whether its allocation needs devices of leaving tasks."""
        return self.shown is None and all(
            use.status is Status.PIPELINED for use in self.users.values() if use.allocation
        )

    def is_leaving(self, statuses: Mapping[str, Status]) -> bool:
        """Whether all its consumers are leaving, so that its devices will be released.

        `statuses` are those of all tasks on nodes, by uid. A consumer without a node may still use it later.
        """
        reserved = self.object.status.reserved_for if self.object is not None else ()
        return (
            bool(self.users or reserved)
            and all(use.status is Status.RELEASING for use in self.users.values())
            and all(statuses.get(consumer.uid) is Status.RELEASING for consumer in reserved)
        )

    @property
    def is_extended(self) -> bool:
        """Whether it was created for extended resources of a pod."""
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
