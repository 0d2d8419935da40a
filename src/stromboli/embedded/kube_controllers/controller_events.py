"""Events of the controllers, told once for each object and reason."""

from __future__ import annotations

import hashlib
from contextlib import suppress

from stromboli.api import names
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds import object_metadata
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.objects.object_verbs import Objects

_MAX_MESSAGE = 1024


async def record_event(
    objects: Objects, regarding: Content, reason: str, message: str, component: str, type: str = names.WARNING
) -> None:
    """Record an event, unless it was recorded already. What only tells may fail."""
    kind = objects.registry.by_kind("v1", "Event")
    assert kind is not None
    meta, message = regarding["metadata"], message[:_MAX_MESSAGE]
    namespace = meta.get("namespace") or "default"
    told = hashlib.sha256(f"{meta['uid']} {reason} {message}".encode()).hexdigest()[:16]
    name = f"{meta['name'][:200]}.{told}"
    if objects.store.get(kind.id, namespace, name) is not None:
        return
    now = object_metadata.now()
    reference = {field: regarding[field] for field in ("apiVersion", "kind")}
    event: Content = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            **reference,
            **{field: meta[field] for field in ("name", "namespace", "uid") if field in meta},
        },
        "type": type,
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    with suppress(StatusError):  # a namespace that is being deleted takes none
        await objects.create(WriteRequest(kind, namespace, "", APISERVER_USER, manager=component), event)
