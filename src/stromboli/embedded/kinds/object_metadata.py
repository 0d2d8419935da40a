"""The metadata that the server decides: generated names, uids, timestamps."""

from __future__ import annotations

import random
import time
import uuid
from typing import Any

from stromboli.api.go_scalars import timestamp
from stromboli.embedded.kinds.kind import Content, Kind

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58


def now() -> str:
    """The current time as a metav1.Time, to the second."""
    return timestamp(time.time())


def generate_name(base: str) -> str:
    """A name for `generateName`; probably not in use."""
    return base[:_LONGEST_BASE] + "".join(random.choices(_LETTERS, k=5))


def fill_system_fields(kind: Kind, namespace: str, meta: dict[str, Any]) -> None:
    """Set the system fields of a new object, whatever its author sent."""
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        meta.pop(field, None)
    if kind.namespaced:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now()
    meta.pop("generation", None)
    drop_empty(meta)


def preserve_system_fields(meta: dict[str, Any], old: dict[str, Any]) -> None:
    """Restore what an update may not change."""
    for field in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "name",
    ):
        if field in old:
            meta[field] = old[field]
        else:
            meta.pop(field, None)
    meta.pop("selfLink", None)
    drop_empty(meta)


def drop_empty(meta: dict[str, Any]) -> None:
    """Without entries, there is no map or list."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if meta.get(field) in ({}, []):
            del meta[field]


def set_entries(meta: dict[str, Any], field: str, entries: list[Any]) -> None:
    """Set finalizers or owner references; without any, the field is removed."""
    if entries:
        meta[field] = entries
    else:
        meta.pop(field, None)


def add_finalizer(content: Content, name: str) -> None:
    meta = content["metadata"]
    finalizers = meta.get("finalizers") or []
    if name not in finalizers:
        meta["finalizers"] = [*finalizers, name]


def remove_finalizer(content: Content, name: str) -> None:
    meta = content["metadata"]
    remaining = [finalizer for finalizer in meta.get("finalizers") or () if finalizer != name]
    set_entries(meta, "finalizers", remaining)
