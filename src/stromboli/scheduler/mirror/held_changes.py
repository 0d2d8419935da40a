"""Changes that wait because their objects could not be added to the model, which had to be rebuilt for each of them.

Such an object is tried again after pauses that double. A second one of the same namespace makes the other changes of
that namespace wait as well, so no user can have the model rebuilt all the time. Deletions never wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from stromboli.model.pauses import FIRST_PAUSE, Pauses
from stromboli.scheduler.mirror.change_buffer import Id, ObjectChange, identity


class HeldChanges:
    """The last change of each object that waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Id, ObjectChange] = {}
        self._failed: set[Id] = set()
        """The objects that could not be added when they were last tried."""
        self._pauses: Pauses[Id | str] = Pauses()
        """Of objects, and of namespaces."""

    def __contains__(self, change: ObjectChange) -> bool:
        """Whether the object could not be added when it was last tried."""
        return identity(change.object) in self._failed

    def add(self, change: ObjectChange) -> None:
        """An object could not be added."""
        id, now = identity(change.object), self._clock()
        if id not in self._failed and change.object.namespace:
            self._pauses.begin(change.object.namespace, now)
        self._pauses.begin(id, now)
        self._failed.add(id)
        self._waiting[id] = change

    def with_waiting(self, changes: list[ObjectChange]) -> Iterable[ObjectChange]:
        """These changes and those that waited; ask `waits` about each."""
        if not self._pauses and not self._waiting:
            return changes
        self._pauses.forget(self._clock())
        merged = self._waiting | {identity(change.object): change for change in changes}
        self._waiting = {}
        return merged.values()

    def waits(self, change: ObjectChange) -> bool:
        """Whether a change is not to be applied yet; it is kept then."""
        if not self._pauses:
            return False
        id, now = identity(change.object), self._clock()
        if change.gone:
            self._failed.discard(id)
            return False
        namespace = change.object.namespace
        if self._pauses.length(id, now) or self._pauses.length(namespace, now) > FIRST_PAUSE:
            self._waiting[id] = change
            return True
        return False

    def applied(self, change: ObjectChange) -> None:
        """A change was applied."""
        if self._failed:
            self._failed.discard(identity(change.object))
