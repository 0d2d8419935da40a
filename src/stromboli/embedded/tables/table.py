"""A list as the `Table` that kubectl asks for (`Accept: application/json;as=Table`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.embedded.tables.pod_rows import FINISHED, PODS
from stromboli.embedded.tables.table_printer import Content, TablePrinter, nested_map

VERSION = "meta.k8s.io/v1"
INCLUDE = ("Metadata", "Object", "None")
"""What `includeObject` may be; the first unless told."""


def table(
    layout: TablePrinter,
    things: Iterable[Content],
    now: float,
    include: str = "Metadata",
    meta: Content | None = None,
    heads: bool = True,
    version: str = VERSION,
) -> dict[str, Any]:
    """The objects as rows. `meta` is the list's own; a watch leaves out the `heads` after its first event."""
    return {
        "kind": "Table",
        "apiVersion": version,
        "metadata": meta or {},
        "columnDefinitions": [column.definition() for column in layout.columns] if heads else [],
        "rows": [_row(layout, thing, now, include) for thing in things],
    }


def _row(layout: TablePrinter, thing: Content, now: float, include: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": layout.row(thing, now)}
    if layout is PODS:
        _finished(thing, row)
    if include == "Object":
        row["object"] = thing
    elif include == "Metadata":
        row["object"] = partial_metadata(thing)
    return row


def _finished(pod: Content, row: dict[str, Any]) -> None:
    """Mark a pod that is over, as clients expect it."""
    phase = nested_map(pod, "status").get("phase")
    if phase in FINISHED:
        text = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
        row["conditions"] = [{"type": "Completed", "status": "True", "reason": phase, "message": text}]


def partial_metadata(thing: Content, version: str = VERSION) -> dict[str, Any]:
    """An object's metadata alone (`as=PartialObjectMetadata`)."""
    return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": thing.get("metadata") or {}}


def partial_list(things: Iterable[Content], meta: Content, version: str = VERSION) -> dict[str, Any]:
    """A list of metadata (`as=PartialObjectMetadataList`)."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": version,
        "metadata": meta,
        "items": [partial_metadata(thing, version) for thing in things],
    }
