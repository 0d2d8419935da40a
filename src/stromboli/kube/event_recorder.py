"""Events that users read with `kubectl describe`, aggregated and limited as client-go does (spec 05 9.6).

An event that repeats raises a count. More than ten that differ only in their message within ten minutes become one,
`(combined from similar events): ...`. An object may have 25 events at once and then one every five minutes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from stromboli.api.go_scalars import timestamp
from stromboli.api.patches import MERGE
from stromboli.kube.api_resources import EVENTS, LEASES, RESOURCES
from stromboli.kube.bounded_cache import BoundedCache
from stromboli.kube.request import ApiError, Request

BURST = 25
REFILL = 300.0
SIMILAR = 10
WINDOW = 600.0
CACHE_SIZE = 4096
MAX_MESSAGE_BYTES = 1024
"""The API server refuses longer messages."""
COMBINED = "(combined from similar events): "
_RESOURCE_BY_KIND = {kind.__name__: resource for kind, resource in RESOURCES.items()} | {LEASES.kind: LEASES}


class ObjectReference(NamedTuple):
    """What an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    api_version: str = ""
    """Where the kind alone does not determine it."""


class PendingEvent(NamedTuple):
    """An event to be recorded."""

    subject: ObjectReference
    type: str
    reason: str
    message: str
    component: str = ""
    """The reporting component, if not that of the recorder."""

    @property
    def aggregation_key(self) -> tuple[ObjectReference, str, str, str]:
        """All but the message."""
        return self.subject, self.type, self.reason, self.component


@dataclass(slots=True)
class StoredEvent:
    """An event as it stands on the API server."""

    path: str
    last: float
    count: int = 1


@dataclass(slots=True)
class SimilarEvents:
    """The different messages of events that are otherwise the same."""

    since: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class TokenBucket:
    """How many events an object may have now."""

    tokens: float
    refilled: float


class EventRecorder:
    """Turns events into requests, up to the limits."""

    def __init__(self, component: str, instance: str, clock: Callable[[], float]):
        self.dropped = 0
        """Events that were not written because their object had too many."""
        self._component = component
        self._instance = instance
        self._clock = clock
        self._written, self._similar, self._buckets = (BoundedCache(CACHE_SIZE) for _ in range(3))

    def request(self, event: PendingEvent) -> Request | None:
        """The request that records it, or None if its object has too many."""
        now = self._clock()
        if not self._take_token(event.subject, now):
            self.dropped += 1
            return None
        event = self._combined(event, now)
        before: StoredEvent | None = self._written.get(self._key(event))
        if before is None or now - before.last > WINDOW:
            return self._create(event, now)
        before.count += 1
        before.last = now
        body = {"count": before.count, "lastTimestamp": timestamp(now), "message": _truncated(event.message)}
        return Request("PATCH", before.path, msgspec.json.encode(body), MERGE)

    def failed(self, event: PendingEvent, error: Exception) -> bool:
        """Its request failed; whether to make another one, as the event to be counted up no longer exists."""
        if isinstance(error, ApiError) and error.status == 404:
            stored = self._written.pop(self._key(event), None)
            stored = stored or self._written.pop(self._key(self._as_combined(event)), None)
            return stored is not None and stored.count > 1
        return False

    def _create(self, event: PendingEvent, now: float) -> Request:
        subject = event.subject
        component = event.component or self._component
        namespace = subject.namespace or "default"
        name = f"{subject.name[:200]}.{secrets.token_hex(8)}"
        collection = EVENTS.path(namespace)
        self._written.put(self._key(event), StoredEvent(f"{collection}/{name}", now))
        stamp = timestamp(now)
        resource = _RESOURCE_BY_KIND.get(subject.kind)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": subject.api_version or (resource.api_version if resource else "v1"),
                "kind": resource.kind if resource else subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": _truncated(event.message),
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": self._instance,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        return Request("POST", collection, msgspec.json.encode(body))

    # -- limits

    def _take_token(self, subject: ObjectReference, now: float) -> bool:
        bucket: TokenBucket = self._buckets.get(subject) or TokenBucket(BURST, now)
        bucket.tokens = min(BURST, bucket.tokens + max(now - bucket.refilled, 0.0) / REFILL)
        bucket.refilled = now
        self._buckets.put(subject, bucket)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _combined(self, event: PendingEvent, now: float) -> PendingEvent:
        similar: SimilarEvents | None = self._similar.get(event.aggregation_key)
        if similar is None or now - similar.since > WINDOW:
            similar = SimilarEvents(now)
        self._similar.put(event.aggregation_key, similar)
        if event.message in similar.messages:
            return event
        if len(similar.messages) >= SIMILAR:
            return self._as_combined(event)
        similar.messages.add(event.message)
        return event

    @staticmethod
    def _as_combined(event: PendingEvent) -> PendingEvent:
        return event._replace(message=COMBINED + event.message)

    @staticmethod
    def _key(event: PendingEvent) -> tuple[Any, ...]:
        """Combined events are one, whatever their messages."""
        message = COMBINED if event.message.startswith(COMBINED) else event.message
        return (*event.aggregation_key, message)


def _truncated(message: str) -> str:
    return message.encode(errors="replace")[:MAX_MESSAGE_BYTES].decode(errors="ignore")
