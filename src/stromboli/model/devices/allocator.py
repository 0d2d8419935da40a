"""Devices for claims on a node: the same first solution as that of Kubernetes' allocator (spec 04 2.12).

    search = allocator.prepare([claim.spec for claim in claims])
    search.answer(node, in_use, budget)  # are they available there? Equal nodes share the result
    search.allocate(node, in_use, uids)  # the devices, as written into the claims

Contents of objects never raise errors here, and work is bounded by steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.api import names
from stromboli.api.types.devices import (
    FROM_CLAIM,
    FROM_CLASS,
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ClaimConfiguration,
)
from stromboli.api.types.meta import Requirement
from stromboli.api.types.pod import NodeSelector, NodeSelectorTerm
from stromboli.model.devices.claim_plan import (
    DeviceShortage,
    Lack,
    Rejection,
    SearchStopped,
    device_classes,
    plan_claims,
)
from stromboli.model.devices.claim_shape import ClaimShape
from stromboli.model.devices.device_search import DeviceSearch
from stromboli.model.devices.device_selection import SelectorTable, Solution, StepBudget
from stromboli.model.devices.devices_in_use import DevicesInUse
from stromboli.model.devices.pools.pool_devices import PoolId
from stromboli.model.devices.search_candidates import usable_devices

if TYPE_CHECKING:
    from stromboli.api.types.devices import DeviceClass, ResourceClaimSpec
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.device_selection import DeviceChoice
    from stromboli.model.devices.pools.pool_devices import PoolDevice
    from stromboli.model.devices.pools.pool_index import PoolIndex
    from stromboli.model.node_columns import Node


MAX_SHAPES = 64
"""Maximum prepared lists of claims with different requests."""
__all__ = [
    "Allocation",
    "Allocator",
    "ClaimSearch",
    "DeviceShortage",
    "DevicesInUse",
    "Lack",
    "PoolId",
    "Rejection",
    "Solution",
    "StepBudget",
]
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Allocation(NamedTuple):
    """The allocations of claims, in their order."""

    results: tuple[AllocationResult, ...]


class ClaimSearch:
    """Claims prepared for searches on any node."""

    def __init__(self, allocator: Allocator, specs: Sequence[ResourceClaimSpec]) -> None:
        self.specs = tuple(specs)
        self._allocator = allocator
        self._key = _encode([(spec.devices.requests, spec.devices.constraints) for spec in specs])

    def answer(
        self, node: Node, in_use: DevicesInUse, budget: StepBudget | None = None
    ) -> Solution | DeviceShortage:
        """Whether a node has the devices. Nodes with equal pools in equal use share the result.

        Results are cached, even if the steps did not suffice, unless selectors were evaluated in the meantime.
        """
        budget = budget or StepBudget()
        is_fresh = not budget.spent
        shape = self._allocator.shape(self._key, self.specs, budget)
        if isinstance(shape, DeviceShortage):
            return shape
        pools = self._allocator.pools.pools_of(node)
        state = shape.state(pools, in_use)
        answer = shape.answer(state, budget.limit)
        if answer is None:
            answer = DeviceSearch(shape, pools, in_use, budget).run()
            if not budget.is_exceeded or (is_fresh and not budget.has_evaluated):
                shape.remember(state, answer, budget)
        return answer

    def allocate(
        self, node: Node, in_use: DevicesInUse, uids: Sequence[str] = (), budget: StepBudget | None = None
    ) -> Allocation | DeviceShortage:
        """The devices on a node for claims with these uids, from which the ids of shares are made."""
        answer = self.answer(node, in_use, budget)
        if isinstance(answer, DeviceShortage):
            return answer
        devices = usable_devices(self._allocator.pools.pools_of(node))
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
    """Finds devices for claims in the pools of an index; `classes` are the DeviceClasses of the cluster."""

    def __init__(self, classes: Mapping[str, DeviceClass], pools: PoolIndex) -> None:
        self.pools = pools
        self._classes = classes
        self._selectors = SelectorTable()
        self._shapes: dict[bytes, tuple[ClaimShape | DeviceShortage, dict[str, DeviceClass | None]]] = {}
        """With the classes that they were compiled with, the oldest first."""

    def prepare(self, specs: Sequence[ResourceClaimSpec]) -> ClaimSearch:
        """The search for devices of all these claims together; it stays valid when classes and slices change."""
        return ClaimSearch(self, specs)

    def shape(
        self, key: bytes, specs: Sequence[ResourceClaimSpec], budget: StepBudget
    ) -> ClaimShape | DeviceShortage:
        """The shape of claims, compiled again if one of their classes changed; a DeviceShortage if they are invalid."""
        known = self._shapes.get(key)
        if known is not None and all(self._classes.get(name) is made for name, made in known[1].items()):
            return known[0]
        self._shapes.pop(key, None)
        if len(self._shapes) >= MAX_SHAPES:
            del self._shapes[next(iter(self._shapes))]
        shape = self._make_shape(specs, budget)
        self._shapes[key] = (shape, {name: self._classes.get(name) for name in device_classes(*specs)})
        return shape

    def _make_shape(
        self, specs: Sequence[ResourceClaimSpec], budget: StepBudget
    ) -> ClaimShape | DeviceShortage:
        try:
            return ClaimShape(plan_claims(specs, self._classes), self._selectors, budget)
        except SearchStopped as stopped:
            return stopped.shortage


# -- the allocation of a claim as it is written into its status (spec 04 2.12)


def allocation_result(
    claim: str,
    config: Sequence[ClaimConfiguration],
    choices: Sequence[DeviceChoice],
    options: Sequence[Option],
    devices: Sequence[PoolDevice],
    node: str,
) -> AllocationResult:
    """The allocation of a claim with a uid: choices among the devices of a node, an option per request."""
    chosen = [devices[choice.place] for choice in choices]
    results = tuple(
        _result(f"{claim}/{place}", choice, device)
        for place, (choice, device) in enumerate(zip(choices, chosen, strict=True))
    )
    configs = (*_class_configs(options), *_claim_configs(config, options))
    return AllocationResult(AllocatedDevices(results, configs), node_selector(chosen, node))


def _result(share: str, choice: DeviceChoice, device: PoolDevice) -> AllocatedDevice:
    pool, content = device.slice.pool, device.content.device
    share_id = ""
    if content.allow_multiple_allocations:
        share_id = _share_id(f"{share}/{pool.driver}/{pool.pool}/{device.name}")
    return AllocatedDevice(
        request=choice.option.name,
        driver=pool.driver,
        pool=pool.pool,
        device=device.name,
        admin_access=choice.option.asked.admin_access,
        tolerations=choice.option.asked.tolerations,
        binding_conditions=content.binding_conditions,
        binding_failure_conditions=content.binding_failure_conditions,
        share_id=share_id,
        consumed_capacity={name: taken.text for name, taken in choice.consumed.items()},
    )


def _share_id(text: str) -> str:
    """The UUID of a share: always the same for the same share."""
    digits = sha256(text.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def _class_configs(options: Iterable[Option]) -> Iterator[AllocatedConfiguration]:
    """The configuration of each class once, for all requests of the class."""
    requests: dict[str, list[str]] = {}
    classes = {}
    for option in options:
        classes[option.device_class.name] = option.device_class
        requests.setdefault(option.device_class.name, []).append(option.name)
    for name, device_class in classes.items():
        for config in device_class.spec.config:
            yield AllocatedConfiguration(
                source=FROM_CLASS, requests=tuple(requests[name]), opaque=config.opaque
            )


def _claim_configs(
    configs: Iterable[ClaimConfiguration], options: Sequence[Option]
) -> Iterator[AllocatedConfiguration]:
    """The configuration of the claim: once, or once for each request that it names and that was served."""
    for config in configs:
        times = 1
        if config.requests:
            times = sum(
                option.request in config.requests or option.name in config.requests for option in options
            )
        for _ in range(times):
            yield AllocatedConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)


def node_selector(devices: Iterable[PoolDevice], node: str) -> NodeSelector | None:
    """The nodes that can use all these devices; None if all can."""
    fields: dict[Requirement, None] = {}
    labels: dict[Requirement, None] = {}
    for device in devices:
        content, spec = device.content.device, device.slice.spec
        where = content if spec.per_device_node_selection else spec
        if where.node_name or content.binds_to_node:
            only = Requirement(names.NODE_NAME_FIELD, "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(only,)),))
        if where.node_selector is not None:
            for term in where.node_selector.node_selector_terms[:1]:
                fields |= dict.fromkeys(term.match_fields)
                labels |= dict.fromkeys(term.match_expressions)
    if not fields and not labels:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(labels), tuple(fields)),))
