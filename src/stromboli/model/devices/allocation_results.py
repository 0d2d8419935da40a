"""The allocation of a claim as it is written into its status (spec 04 2.12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from stromboli.model.devices.claim_plan import Option
    from stromboli.model.devices.pools.pool_devices import PoolDevice
    from stromboli.model.devices.solution import Choice


def allocation_result(
    claim: str,
    config: Sequence[ClaimConfiguration],
    choices: Sequence[Choice],
    options: Sequence[Option],
    devices: Sequence[PoolDevice],
    node: str,
) -> AllocationResult:
    """What a claim, known by its uid, was given: choices among the devices of a node, an option per request."""
    chosen = [devices[choice.place] for choice in choices]
    results = tuple(
        _result(f"{claim}/{place}", choice, device)
        for place, (choice, device) in enumerate(zip(choices, chosen, strict=True))
    )
    configs = (*_class_configs(options), *_claim_configs(config, options))
    return AllocationResult(AllocatedDevices(results, configs), node_selector(chosen, node))


def _result(share: str, choice: Choice, device: PoolDevice) -> AllocatedDevice:
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
    """The same UUID for the same share, whenever it is asked for."""
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
