"""What a kubelet reports of its node: identity, conditions, addresses, sizes.

Only what differs from the node is reported. So a node of a manifest, of another client or of an earlier release is
completed, and a quiet node costs no write.
"""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes.node_groups import DEFAULT_SIZE, UNLESS_GIVEN, parse_group
from stromboli.embedded.nodes.node_identity import kubelet_labels, node_info
from stromboli.embedded.nodes.node_types import Content, NodeView

KUBELET_PORT = 10250
READY = (names.CONDITION_READY, "True", "KubeletReady", "kubelet is posting ready status")
PRESSURES = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
UNKNOWN = "Unknown"
_LOST = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
_NEVER_POSTED = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")


def metadata_report(node: NodeView, cidr: str) -> Content:
    """A patch with the labels and the addresses for pods that the node lacks; empty if it has them."""
    patch: Content = {}
    labels = kubelet_labels(node.name)
    if missing := {key: labels[key] for key in labels if key not in node.metadata.labels}:
        patch["metadata"] = {"labels": missing}
    if not node.spec.pod_cidr:
        patch["spec"] = {"podCIDR": cidr, "podCIDRs": [cidr]}
    return patch


def status_report(node: NodeView, kind: str, host: str, now: float) -> Content:
    """A patch of the status of a node that is ready; empty if all of it is so already."""
    status = node.status
    patch = _sizes(node)
    if conditions := _ready_conditions(node, now):
        patch["conditions"] = conditions
    addresses = {"InternalIP": host, "Hostname": node.name}
    if addresses.items() - {(each.get("type"), each.get("address")) for each in status.addresses or ()}:
        patch["addresses"] = [{"type": type, "address": address} for type, address in addresses.items()]
    info, known = node_info(node.name, kind), status.node_info or {}
    if any(known.get(key) != value for key, value in info.items()):
        patch["nodeInfo"] = info
    endpoints = {"kubeletEndpoint": {"Port": KUBELET_PORT}}
    if status.daemon_endpoints != endpoints:
        patch["daemonEndpoints"] = endpoints
    return patch


def _ready_conditions(node: NodeView, now: float) -> list[Content]:
    """Ready as a kubelet has it; a pressure that somebody set stays."""
    current = {condition.type: condition for condition in node.status.conditions or ()}
    ready = current.get(names.CONDITION_READY)
    due = (
        []
        if ready is not None and (ready.type, ready.status, ready.reason, ready.message) == READY
        else [READY]
    )
    due += [
        pressure
        for pressure in PRESSURES
        if pressure[0] not in current or current[pressure[0]].status == UNKNOWN
    ]
    return [
        _condition(node, *each, now) | {"lastHeartbeatTime": timestamp(now)}
        for each in sorted(due, key=lambda each: each is READY)
    ]


def lost_conditions(node: NodeView, now: float) -> list[Content]:
    """What a node controller makes of the conditions of a node that fell silent: they keep their last heartbeats."""
    current = {condition.type: condition.status for condition in node.status.conditions or ()}
    return [
        _condition(node, type, UNKNOWN, *(_LOST if type in current else _NEVER_POSTED), now)
        for type, *_ in (*PRESSURES, READY)
        if current.get(type) != UNKNOWN
    ]


def _condition(node: NodeView, type: str, status: str, reason: str, message: str, now: float) -> Content:
    """A condition for a patch, in which one whose status stays keeps its transition time."""
    condition: Content = {"type": type, "status": status, "reason": reason, "message": message}
    if any(each.type == type and each.status == status for each in node.status.conditions or ()):
        return condition
    return {**condition, "lastTransitionTime": timestamp(now)}


def _sizes(node: NodeView) -> Content:
    """What is missing in capacity and allocatable. Nothing is reserved: a node that says no more can give away all."""
    capacity, allocatable = node.status.capacity or {}, node.status.allocatable or {}
    defaults: dict[str, Any] = UNLESS_GIVEN if capacity else parse_group(DEFAULT_SIZE).capacity
    added = {resource: amount for resource, amount in defaults.items() if resource not in capacity}
    whole = {**capacity, **added}
    usable = {resource: whole[resource] for resource in (defaults if allocatable else whole)}
    missing = {resource: amount for resource, amount in usable.items() if resource not in allocatable}
    return {key: amounts for key, amounts in (("capacity", added), ("allocatable", missing)) if amounts}
