"""Events that users read with `kubectl describe`: never repeated needlessly, never a flood (spec 05 9.6).

The same words again raise a count. More than ten that differ only in their words within ten minutes become one,
`(combined from similar events): ...`. An object may have 25 at once and then one every five minutes.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from stromboli.kube.api_resources import LEASES, RESOURCES
from stromboli.kube.request import MERGE, ApiError, Request
from stromboli.kube.timestamps import micro_time, timestamp

BURST = 25
REFILL = 300.0
SIMILAR = 10
WINDOW = 600.0
REMEMBERED = 4096
LONGEST = 1024
"""Bytes of a message; the API server refuses longer ones."""
COMBINED = "(combined from similar events): "
_RESOURCES = {kind.__name__: one for kind, one in RESOURCES.items()} | {LEASES.kind: LEASES}


class ObjectReference(NamedTuple):
    """What an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    api_version: str = ""
    """Where the kind's name does not say it."""


class PendingEvent(NamedTuple):
    """An event in words."""

    subject: ObjectReference
    type: str
    reason: str
    message: str

    @property
    def topic(self) -> tuple[ObjectReference, str, str]:
        """All but the words."""
        return self.subject, self.type, self.reason


@dataclass(slots=True)
class StoredEvent:
    """An event as it stands on the API server."""

    name: str
    since: float
    last: float
    count: int = 1
    path: str = ""


@dataclass(slots=True)
class Topic:
    """The different words that were said on a topic of late."""

    since: float
    words: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Bucket:
    """How many events an object may still have."""

    left: float
    at: float


class Remembered(OrderedDict[Any, Any]):
    """The last few thousand, by key."""

    def keep(self, key: Any, value: Any) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > REMEMBERED:
            self.popitem(last=False)


class EventRecorder:
    """Turns what there is to say into requests, or into nothing if enough was said."""

    def __init__(self, component: str, instance: str, clock: Callable[[], float]):
        self.dropped = 0
        """Events that were not written because their object had too many."""
        self._component = component
        self._instance = instance
        self._clock = clock
        self._written: Remembered = Remembered()
        self._topics: Remembered = Remembered()
        self._buckets: Remembered = Remembered()

    def request(self, saying: PendingEvent) -> Request | None:
        """How to say it now, if it is to be said."""
        now = self._clock()
        if not self._may(saying.subject, now):
            self.dropped += 1
            return None
        saying = self._combined(saying, now)
        before: StoredEvent | None = self._written.get(self._key(saying))
        if before is None or now - before.last > WINDOW:
            return self._first(saying, now)
        before.count += 1
        before.last = now
        body = {"count": before.count, "lastTimestamp": timestamp(now), "message": _short(saying.message)}
        return Request("PATCH", before.path, msgspec.json.encode(body), MERGE)

    def failed(self, saying: PendingEvent, error: Exception) -> bool:
        """Writing it failed; whether to ask for another request: the event that was to be raised is gone."""
        if isinstance(error, ApiError) and error.status == 404:
            known = self._written.pop(self._key(saying), None)
            known = known or self._written.pop(self._key(self._as_combined(saying)), None)
            return known is not None and known.count > 1
        return False

    def _first(self, saying: PendingEvent, now: float) -> Request:
        subject = saying.subject
        namespace = subject.namespace or "default"
        name = f"{subject.name[:200]}.{secrets.token_hex(8)}"
        folder = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        self._written.keep(self._key(saying), StoredEvent(name, now, now, path=f"{folder}/{name}"))
        stamp = timestamp(now)
        known = _RESOURCES.get(subject.kind)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": subject.api_version or (known.api_version if known else "v1"),
                "kind": known.kind if known else subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "type": saying.type,
            "reason": saying.reason,
            "message": _short(saying.message),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "action": saying.reason,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "eventTime": micro_time(now),
            "count": 1,
        }
        return Request("POST", folder, msgspec.json.encode(body))

    # -- enough is enough

    def _may(self, subject: ObjectReference, now: float) -> bool:
        bucket: Bucket = self._buckets.get(subject) or Bucket(BURST, now)
        bucket.left = min(BURST, bucket.left + max(now - bucket.at, 0.0) / REFILL)
        bucket.at = now
        self._buckets.keep(subject, bucket)
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True

    def _combined(self, saying: PendingEvent, now: float) -> PendingEvent:
        topic: Topic | None = self._topics.get(saying.topic)
        if topic is None or now - topic.since > WINDOW:
            topic = Topic(now)
        self._topics.keep(saying.topic, topic)
        if saying.message in topic.words:
            return saying
        if len(topic.words) >= SIMILAR:
            return self._as_combined(saying)
        topic.words.add(saying.message)
        return saying

    @staticmethod
    def _as_combined(saying: PendingEvent) -> PendingEvent:
        return saying._replace(message=COMBINED + saying.message)

    @staticmethod
    def _key(saying: PendingEvent) -> tuple[Any, ...]:
        """Combined events are one, whatever they say."""
        words = COMBINED if saying.message.startswith(COMBINED) else saying.message
        return (*saying.topic, words)


def _short(message: str) -> str:
    return message.encode()[:LONGEST].decode(errors="ignore")
