"""Devices for claims on a node: the first solution that Kubernetes' allocator would find, too (spec 04 2.12).

    search = allocator.prepare([claim.spec for claim in claims])
    search.answer(node, in_use)  # can it be had there? For thousands of nodes, as equal nodes share the answer
    search.allocate(node, in_use, uids)  # the devices, as they are written

Nothing here raises for what objects say, and work is bounded by steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.model.devices.allocation_results import allocation_result
from stromboli.model.devices.claim_plan import plan_claims
from stromboli.model.devices.claim_shape import ClaimShape
from stromboli.model.devices.device_search import DeviceSearch, Solution, StepBudget, usable_devices
from stromboli.model.devices.devices_in_use import DevicesInUse
from stromboli.model.devices.pools.pool_devices import DeviceId, PoolId
from stromboli.model.devices.shortage import Lack, Rejection, SearchStopped, Shortage

if TYPE_CHECKING:
    from stromboli.api.types.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceClaimSpec
    from stromboli.model.devices.pools.pool_index import PoolIndex
    from stromboli.model.node_columns import Node

MAX_SHAPES = 256
"""Different lists of claims that are kept prepared."""
__all__ = [
    "Allocation",
    "Allocator",
    "ClaimSearch",
    "DeviceId",
    "DevicesInUse",
    "Lack",
    "PoolId",
    "Rejection",
    "Shortage",
    "Solution",
    "StepBudget",
]
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Allocation(NamedTuple):
    """What claims are given, in their order."""

    results: tuple[AllocationResult, ...]


class ClaimSearch:
    """Claims that ask for certain devices, ready to be looked for on any node."""

    def __init__(
        self,
        specs: tuple[ResourceClaimSpec, ...],
        pools: PoolIndex,
        shape: ClaimShape | Shortage,
        classes: Mapping[str, DeviceClass | None],
    ) -> None:
        self.specs = specs
        self._pools = pools
        self._shape = shape
        self.classes = classes
        """Those that it was prepared with."""

    @property
    def problem(self) -> Shortage | None:
        """Why there are no devices on any node, whatever nodes have."""
        return self._shape if isinstance(self._shape, Shortage) else None

    def answer(
        self, node: Node, in_use: DevicesInUse, budget: StepBudget | None = None
    ) -> Solution | Shortage:
        """Whether there are devices on a node. Nodes with equal pools in equal use have the same answer."""
        shape = self._shape
        if isinstance(shape, Shortage):
            return shape
        pools = self._pools.pools_of(node)
        state = shape.state(pools, in_use)
        answer = shape.answers.get(state)
        if answer is None:
            own = budget or StepBudget()
            answer = DeviceSearch(shape, pools, in_use, own).run()
            if budget is None or own.steps >= 0:
                shape.remember(state, answer)
        return answer

    def allocate(
        self, node: Node, in_use: DevicesInUse, uids: Sequence[str] = (), budget: StepBudget | None = None
    ) -> Allocation | Shortage:
        """The devices on a node for claims with these uids, from which the ids of shares are made."""
        answer = self.answer(node, in_use, budget)
        if isinstance(answer, Shortage):
            return answer
        devices = usable_devices(self._pools.pools_of(node))
        known = [*uids, *map(str, range(len(uids), len(self.specs)))]
        return Allocation(
            tuple(
                allocation_result(uid, spec.devices.config, choices, options, devices, node.name)
                for uid, spec, choices, options in zip(
                    known, self.specs, answer.choices, answer.options, strict=True
                )
            )
        )


class Allocator:
    """Finds devices for claims in the pools of an index."""

    def __init__(self, classes: Mapping[str, DeviceClass], pools: PoolIndex) -> None:
        self._classes = classes
        self._pools = pools
        self._searches: dict[bytes, ClaimSearch] = {}

    def prepare(self, specs: Sequence[ResourceClaimSpec]) -> ClaimSearch:
        """The search for devices of all these claims together; equal ones share it until a class changes."""
        key = _encode(list(specs))
        search = self._searches.get(key)
        if search is not None and all(
            self._classes.get(name) is known for name, known in search.classes.items()
        ):
            return search
        search = self._prepared(tuple(specs))
        if len(self._searches) >= MAX_SHAPES:
            del self._searches[next(iter(self._searches))]
        self._searches[key] = search
        return search

    def _prepared(self, specs: tuple[ResourceClaimSpec, ...]) -> ClaimSearch:
        requests = [request for spec in specs for request in spec.devices.requests]
        asked = [option for request in requests for option in (request.exactly, *request.first_available)]
        named = {option.device_class_name for option in asked if option is not None}
        classes = {name: self._classes.get(name) for name in named}
        try:
            shape: ClaimShape | Shortage = ClaimShape(plan_claims(specs, self._classes))
        except SearchStopped as stopped:
            shape = stopped.shortage
        return ClaimSearch(specs, self._pools, shape, classes)

    def allocate(
        self, claims: Sequence[ResourceClaim], node: Node, in_use: DevicesInUse
    ) -> Allocation | Shortage:
        """Devices for all claims on a node, or what is short there."""
        search = self.prepare([claim.spec for claim in claims])
        return search.allocate(node, in_use, [claim.metadata.uid or claim.key for claim in claims])
