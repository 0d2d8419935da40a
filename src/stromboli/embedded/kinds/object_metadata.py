"""What every object says about itself, as far as the server decides it: made-up names, uids, times."""

from __future__ import annotations

import random
import time
import uuid
from typing import Any

from stromboli.embedded.kinds.kind import Kind

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58


def now() -> str:
    """To the second, as objects have it."""
    return stamp(time.time())


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def name_from(base: str) -> str:
    """A name that probably nobody has yet."""
    return base[:_LONGEST_BASE] + "".join(random.choices(_LETTERS, k=5))


def born(kind: Kind, namespace: str, meta: dict[str, Any]) -> None:
    """Set what the server decides about a new object, whatever was asked for."""
    for mark in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        meta.pop(mark, None)
    if kind.namespaced:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now()
    meta.pop("generation", None)


def kept(meta: dict[str, Any], old: dict[str, Any]) -> None:
    """Put back what an update may not change."""
    for mark in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "name",
        "generateName",
    ):
        if mark in old:
            meta[mark] = old[mark]
        else:
            meta.pop(mark, None)
    meta.pop("selfLink", None)
