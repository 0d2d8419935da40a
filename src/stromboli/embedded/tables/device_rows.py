"""Rows of device claims and of slices of devices."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, Content, name_of, nested_map, printer


def _claim(claim: Content, now: float) -> Cells:
    return [name_of(claim), _state(claim), age(claim, now)]


def _state(claim: Content) -> str:
    status = nested_map(claim, "status")
    states = ["deleted"] if nested_map(claim, "metadata").get("deletionTimestamp") else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)


def _slice(resource_slice: Content, now: float) -> Cells:
    spec = nested_map(resource_slice, "spec")
    return [
        name_of(resource_slice),
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        nested_map(spec, "pool").get("name") or "",
        age(resource_slice, now),
    ]


PRINTERS = {
    "resourceclaims.resource.k8s.io": printer("Name | State | Age", _claim),
    "resourceslices.resource.k8s.io": printer("Name | Node | Driver | Pool | Age", _slice),
}
