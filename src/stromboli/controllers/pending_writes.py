"""Objects of an owner that were created or deleted and that the store does not show yet.

Without them a sync that comes before the watch's event would create or delete once more. What the store never shows
is forgotten after a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec

from stromboli.api.types.meta import Object

Kind = TypeVar("Kind", bound=Object)

TIMEOUT = 60.0
"""Seconds after which a write is forgotten that the store does not show."""


class PendingWrites(Generic[Kind]):
    """The writes of one owner."""

    def __init__(self) -> None:
        self._created: dict[str, tuple[Kind, float]] = {}
        """By name, with the time at which they are forgotten."""
        self._deleted: dict[str, float] = {}
        """By uid."""

    def __bool__(self) -> bool:
        return bool(self._created or self._deleted)

    def created(self, obj: Kind, now: float) -> None:
        self._created[obj.name] = (obj, now + TIMEOUT)

    def has_created(self, name: str) -> bool:
        return name in self._created

    def patched(self, obj: Kind, answer: Kind | None) -> None:
        """An object that the store may not show yet has changed, or is gone."""
        if obj.name in self._created:
            if answer is None:
                del self._created[obj.name]
            else:
                self._created[obj.name] = (answer, self._created[obj.name][1])

    def deleted(self, obj: Kind, now: float) -> None:
        self._deleted[obj.metadata.uid] = now + TIMEOUT

    def not_deleted(self, obj: Kind) -> None:
        """The deletion failed."""
        self._deleted.pop(obj.metadata.uid, None)

    def has_deleted(self, obj: Kind) -> bool:
        return obj.metadata.uid in self._deleted

    def observed(self, obj: Kind) -> bool:
        """The store shows a state of the object; whether that is just the one which was created."""
        created, _ = self._created.get(obj.name, (None, 0.0))
        if created is None or created.metadata.uid != obj.metadata.uid:
            return False
        del self._created[obj.name]
        return created.metadata.resource_version == obj.metadata.resource_version

    def gone(self, obj: Kind) -> None:
        """The store shows that the object is gone."""
        self.observed(obj)
        self._deleted.pop(obj.metadata.uid, None)

    def apply(self, stored: Iterable[Kind], now: float) -> list[Kind]:
        """The stored objects as they are after the writes."""
        if not self:
            return list(stored)
        objects = {obj.name: obj for obj in stored}
        self._deleted = {uid: until for uid, until in self._deleted.items() if until > now}
        self._created = {
            name: (obj, until)
            for name, (obj, until) in self._created.items()
            if until > now and not self._is_shown(obj, objects.get(name))
        }
        objects |= {name: obj for name, (obj, _) in self._created.items()}
        return [self._marked(obj, now) for obj in objects.values()]

    def _is_shown(self, created: Kind, stored: Kind | None) -> bool:
        """Whether the store shows an object that was created, and not its predecessor, which was deleted."""
        if stored is None:
            return False
        return stored.metadata.uid == created.metadata.uid or stored.metadata.uid not in self._deleted

    def _marked(self, obj: Kind, now: float) -> Kind:
        """An object that was deleted has a deletion timestamp."""
        if obj.metadata.uid not in self._deleted or obj.metadata.deletion_timestamp is not None:
            return obj
        at = datetime.fromtimestamp(now, UTC)
        metadata = msgspec.structs.replace(obj.metadata, deletion_timestamp=at)
        return msgspec.structs.replace(obj, metadata=metadata)

    @property
    def until(self) -> float | None:
        """When the first write is forgotten."""
        times = [until for _, until in self._created.values()] + list(self._deleted.values())
        return min(times, default=None)
