"""The row of a node."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import (
    NONE,
    UNKNOWN,
    Cells,
    Content,
    condition,
    name_of,
    nested_map,
    printer,
)

ROLE = "node-role.kubernetes.io/"


def _print_row(node: Content, now: float) -> Cells:
    info = nested_map(node, "status", "nodeInfo")
    return [
        name_of(node),
        state_text(node),
        _roles(node),
        age(node, now),
        info.get("kubeletVersion") or "",
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


NODES = printer(
    "Name | Status | Roles | Age | Version"
    " | Internal-IP+ | External-IP+ | OS-Image+ | Kernel-Version+ | Container-Runtime+",
    _print_row,
)


def state_text(node: Content) -> str:
    ready = condition(node, "Ready")
    states = ["Ready" if ready["status"] == "True" else "NotReady"] if ready.get("status") else ["Unknown"]
    if nested_map(node, "spec").get("unschedulable"):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(node: Content) -> str:
    labels = nested_map(node, "metadata", "labels")
    roles = {key.removeprefix(ROLE) for key in labels if key.startswith(ROLE)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(node: Content, type: str) -> str:
    for address in nested_map(node, "status").get("addresses") or ():
        if address.get("type") == type:
            return str(address.get("address", ""))
    return NONE
