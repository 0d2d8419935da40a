"""Nodes."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import CLUSTER, STATUS, Content, builtin, fields
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import (
    NONE,
    UNKNOWN,
    Cells,
    condition,
    name_of,
    nested_map,
    printer,
)

_ROLE = "node-role.kubernetes.io/"


def _row(node: Content, now: float) -> Cells:
    info = nested_map(node, "status", "nodeInfo")
    return [
        name_of(node),
        _state(node),
        _roles(node),
        age(node, now),
        info.get("kubeletVersion") or "",
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _state(node: Content) -> str:
    ready = condition(node, "Ready")
    states = ["Ready" if ready["status"] == "True" else "NotReady"] if ready.get("status") else ["Unknown"]
    if nested_map(node, "spec").get("unschedulable"):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(node: Content) -> str:
    labels = nested_map(node, "metadata", "labels")
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(node: Content, type: str) -> str:
    for address in nested_map(node, "status").get("addresses") or ():
        if address.get("type") == type:
            return str(address.get("address", ""))
    return NONE


class NodeStrategy(Strategy):
    status_on_create = True
    printer = printer(
        "Name | Status | Roles | Age | Version"
        " | Internal-IP+ | External-IP+ | OS-Image+ | Kernel-Version+ | Container-Runtime+",
        _row,
    )

    def initialise(self, content: Content) -> None:
        """Allocatable defaults to the capacity."""
        status = content.get("status")
        if isinstance(status, dict) and status.get("capacity"):
            status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}


KIND = builtin(
    "",
    "nodes",
    "Node",
    "no",
    STATUS,
    selectable_fields=fields("spec.unschedulable=false"),
    strategy=NodeStrategy(),
    **CLUSTER,
)
