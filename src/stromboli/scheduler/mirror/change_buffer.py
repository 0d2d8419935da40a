"""Changes between the watches and the cycle: each object once, as it was last seen.

Reflectors put changes in on the event loop; the cycle's thread takes all of them at once. An object that was created
and deleted in between leaves no entry, so there are never more entries than objects that exist or that the model has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from threading import Event, Lock
from typing import NamedTuple

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.kube.reflector import UnusableObject

MAX_CHANGES = 200_000
_POLL = 0.05


class ObjectChange(NamedTuple):
    """An object that was added or modified, or is gone."""

    object: Object
    gone: bool


Id = tuple[type[Object], str]


def identity(object: Object) -> Id:
    """Two pods of a name are two pods; everything else is identified by its name."""
    uid = object.metadata.uid if isinstance(object, Pod) else ""
    return type(object), uid or object.key


class ChangeBuffer:
    """Holds changes; from any thread."""

    def __init__(self, capacity: int = MAX_CHANGES, clock: Callable[[], float] = time.monotonic) -> None:
        self.observe: Callable[[Object, bool], None] | None = None
        """Is shown every object that was put, or is gone, at once."""
        self.arrived = Event()
        """Set when there is something new; for the cycle's thread to wait for, and to clear."""
        self._capacity = capacity
        self._clock = clock
        self._lock = Lock()
        self._changes: dict[Id, ObjectChange] = {}
        self._created: set[Id] = set()
        """Of those, the objects that the model does not have yet."""
        self._unusable: list[UnusableObject] = []
        self._since: float | None = None

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def since(self) -> float:
        """When the oldest change was put; now if there is none."""
        since = self._since
        return self._clock() if since is None else since

    @property
    def age(self) -> float:
        """Seconds that the oldest change has been waiting."""
        since = self._since
        return 0.0 if since is None else max(0.0, self._clock() - since)

    def put(self, object: Object, new: bool) -> None:
        """An object was added, if `new`, or modified."""
        id = identity(object)
        with self._lock:
            if new and id not in self._changes:
                self._created.add(id)
            self._enter(id, ObjectChange(object, gone=False))
        if self.observe is not None:
            self.observe(object, False)

    def drop(self, object: Object) -> None:
        """An object was deleted; only its name, namespace and uid are needed."""
        id = identity(object)
        with self._lock:
            if id in self._created:
                self._created.discard(id)
                del self._changes[id]
            else:
                self._enter(id, ObjectChange(object, gone=True))
        if self.observe is not None:
            self.observe(object, True)

    def unusable(self, problem: UnusableObject) -> None:
        with self._lock:
            self._unusable.append(problem)
        self.arrived.set()

    def _enter(self, id: Id, change: ObjectChange) -> None:
        self._changes[id] = change
        if self._since is None:
            self._since = self._clock()
        if not self.arrived.is_set():
            self.arrived.set()

    def take(self) -> tuple[list[ObjectChange], list[UnusableObject]]:
        """All changes since the last call."""
        with self._lock:
            changes, unusable = list(self._changes.values()), self._unusable
            self._changes, self._created, self._unusable = {}, set(), []
            self._since = None
        return changes, unusable

    async def wait_for_room(self) -> None:
        """Let other tasks run, and wait while full: the server ends a watch that reads too slowly, and it resumes."""
        await asyncio.sleep(0)
        while max(len(self._changes), len(self._unusable)) >= self._capacity:
            await asyncio.sleep(_POLL)
