"""Between the watches and the cycle: what is new, each object once, as it was last seen.

Watches put in on the event loop; the cycle's thread takes everything at once. An object that came and went in between
leaves no trace, so there are never more entries than objects that exist or that the model still has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.kube.reflector import UnusableObject

LARGEST = 200_000
_POLL = 0.05


class ObjectChange(NamedTuple):
    """An object that is there, or is gone."""

    thing: Object
    gone: bool


Id = tuple[type[Object], str]


def identity(thing: Object) -> Id:
    """Two pods of a name are two pods; everything else is what its name says."""
    meta = thing.metadata
    return type(thing), (meta.uid or thing.key) if isinstance(thing, Pod) else thing.key


class Buffer:
    """Gathers news; from any thread."""

    def __init__(self, largest: int = LARGEST, clock: Callable[[], float] = time.monotonic) -> None:
        self._largest = largest
        self._clock = clock
        self._lock = Lock()
        self._news: dict[Id, ObjectChange] = {}
        self._unseen: set[Id] = set()
        """Of those, the objects that the model has never heard of."""
        self._troubles: list[UnusableObject] = []
        self._since: float | None = None

    def __len__(self) -> int:
        return len(self._news)

    @property
    def age(self) -> float:
        """Seconds that the oldest news have been waiting."""
        since = self._since
        return 0.0 if since is None else max(0.0, self._clock() - since)

    def put(self, thing: Object, new: bool) -> None:
        """An object is there; `new` if it was not told of before."""
        id = identity(thing)
        with self._lock:
            if new and id not in self._news:
                self._unseen.add(id)
            self._enter(id, ObjectChange(thing, gone=False))

    def drop(self, thing: Object) -> None:
        """An object is gone; only its name, namespace and uid are asked for."""
        id = identity(thing)
        with self._lock:
            if id in self._unseen:
                self._unseen.discard(id)
                del self._news[id]
            else:
                self._enter(id, ObjectChange(thing, gone=True))

    def bad(self, trouble: UnusableObject) -> None:
        with self._lock:
            self._troubles.append(trouble)

    def _enter(self, id: Id, news: ObjectChange) -> None:
        self._news[id] = news
        if self._since is None:
            self._since = self._clock()

    def take(self) -> tuple[list[ObjectChange], list[UnusableObject]]:
        """Everything since the last time."""
        with self._lock:
            news, troubles = list(self._news.values()), self._troubles
            self._news, self._unseen, self._troubles = {}, set(), []
            self._since = None
        return news, troubles

    async def room(self) -> None:
        """Let others have a turn, and wait while there is too much: whoever reads slower is cut off, and resumes."""
        await asyncio.sleep(0)
        while len(self._news) >= self._largest or len(self._troubles) >= self._largest:
            await asyncio.sleep(_POLL)
