"""Objects that binds wait for. A watch that shows a change to one of them wakes the bind, which then reads the object.

So nothing is polled, and what is decided never rests on a watch that lags behind our own writes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from stromboli.api.types.meta import Object

ObjectId = tuple[type[Object], str]
"""Kind and `namespace/name`."""
IsOfInterest = Callable[[Any, bool], bool]
"""Is given an object, and whether it is gone."""


class AwaitedObjects:
    """Who waits for which object; on the event loop."""

    def __init__(self, wake: Callable[[Hashable], None]):
        """`wake` is called with the key of an order."""
        self._wake = wake
        self._waiting: dict[ObjectId, dict[Hashable, IsOfInterest]] = {}
        self._awaited: dict[Hashable, set[ObjectId]] = {}

    def __len__(self) -> int:
        """How many orders wait."""
        return len(self._awaited)

    def expect(
        self, order: Hashable, kind: type[Object], key: str, is_of_interest: IsOfInterest = lambda *_: True
    ) -> None:
        """Wake an order when a change to an object, or that it is gone, is of interest."""
        self._waiting.setdefault((kind, key), {})[order] = is_of_interest
        self._awaited.setdefault(order, set()).add((kind, key))

    def forget(self, order: Hashable) -> None:
        """The order waits no longer."""
        for id in self._awaited.pop(order, ()):
            waiting = self._waiting[id]
            del waiting[order]
            if not waiting:
                del self._waiting[id]

    def note(self, object: Object, gone: bool) -> None:
        """A watch shows a change."""
        waiting = self._waiting.get((type(object), object.key)) if self._waiting else None
        for order, is_of_interest in list(waiting.items()) if waiting else ():
            if is_of_interest(object, gone):
                self._wake(order)

    def wake_all(self) -> None:
        for order in list(self._awaited):
            self._wake(order)
