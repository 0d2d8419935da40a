"""Cells of tables that volumes and their claims share."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.storage.volume_validation import CLASS_ANNOTATION
from stromboli.embedded.kinds.strategy import Content
from stromboli.embedded.tables.table_printer import nested_map

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes(modes: Iterable[str] | None) -> str:
    present = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in present)


def class_of(content: Content) -> str:
    old = nested_map(content, "metadata", "annotations").get(CLASS_ANNOTATION)
    return old or nested_map(content, "spec").get("storageClassName") or ""


def state_of(content: Content) -> str:
    if nested_map(content, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return str(nested_map(content, "status").get("phase", ""))
