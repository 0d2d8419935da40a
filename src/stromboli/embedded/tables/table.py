"""A list as the `Table` that kubectl asks for (`Accept: application/json;as=Table`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.embedded.tables.pod_rows import FINISHED, PODS
from stromboli.embedded.tables.table_printer import Content, TablePrinter, nested_map

VERSION = "meta.k8s.io/v1"
INCLUDE = ("Metadata", "Object", "None")
"""Values of `includeObject`; the first is the default."""


def table(
    printer: TablePrinter,
    contents: Iterable[Content],
    now: float,
    include: str = "Metadata",
    meta: Content | None = None,
    headers: bool = True,
    version: str = VERSION,
) -> dict[str, Any]:
    """The objects as rows. `meta` is the list's; a watch leaves out the `headers` after its first event."""
    return {
        "kind": "Table",
        "apiVersion": version,
        "metadata": meta or {},
        "columnDefinitions": printer.columns if headers else (),
        "rows": [row(printer, content, now, include) for content in contents],
    }


def row(printer: TablePrinter, content: Content, now: float, include: str) -> dict[str, Any]:
    """One object as a row."""
    encoded: dict[str, Any] = {"cells": printer.row(content, now)}
    if printer is PODS:
        _add_completed(content, encoded)
    if include == "Object":
        encoded["object"] = content
    elif include == "Metadata":
        encoded["object"] = partial_metadata(content)
    return encoded


def _add_completed(pod: Content, row: dict[str, Any]) -> None:
    """Mark a finished pod, as clients expect it."""
    phase = nested_map(pod, "status").get("phase")
    if phase in FINISHED:
        text = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
        row["conditions"] = [{"type": "Completed", "status": "True", "reason": phase, "message": text}]


def partial_metadata(content: Content, version: str = VERSION) -> dict[str, Any]:
    """An object's metadata alone (`as=PartialObjectMetadata`)."""
    return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": content.get("metadata") or {}}


def partial_list(contents: Iterable[Content], meta: Content, version: str = VERSION) -> dict[str, Any]:
    """A list of metadata (`as=PartialObjectMetadataList`)."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": version,
        "metadata": meta,
        "items": [partial_metadata(content, version) for content in contents],
    }
