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
        self._deleted: dict[str, tuple[str, float]] = {}
        """Names and such times by uid."""

    def __bool__(self) -> bool:
        return bool(self._created or self._deleted)

    def created(self, obj: Kind, now: float) -> None:
        self._created.pop(obj.name, None)  # the dictionaries are in the order of time
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
        self._deleted.pop(obj.metadata.uid, None)
        self._deleted[obj.metadata.uid] = obj.name, now + TIMEOUT

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
        self.expired(now)
        objects: dict[str, Kind | None] = {obj.name: obj for obj in stored}
        objects |= dict.fromkeys(self._created.keys() - objects.keys())
        effective = (self.effective(name, obj, now) for name, obj in objects.items())
        return [obj for obj in effective if obj is not None]

    def effective(self, name: str, stored: Kind | None, now: float) -> Kind | None:
        """The object of a name as it is after the writes; `stored` is the one that the store shows, if any."""
        created, _ = self._created.get(name, (None, 0.0))
        if created is not None and self._is_shown(created, stored):
            del self._created[name]
        elif created is not None:
            stored = created
        return None if stored is None else self._marked(stored, now)

    def expired(self, now: float) -> list[str]:
        """Forget writes that the store has not shown in time; the names of objects that look different then."""
        names = []
        while self._created and next(iter(self._created.values()))[1] <= now:
            names.append(next(iter(self._created)))
            del self._created[names[-1]]
        while self._deleted and next(iter(self._deleted.values()))[1] <= now:
            names.append(self._deleted.pop(next(iter(self._deleted)))[0])
        return names

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
        first = [next(iter(writes.values()))[1] for writes in (self._created, self._deleted) if writes]
        return min(first, default=None)
