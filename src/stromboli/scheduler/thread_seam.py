"""The only way between the event loop, which owns the network, and the cycle's thread, which owns the model.

Neither thread waits for the other. To the cycle's thread go the changes of watched objects, each object once as last
seen, and calls, such as failed writes, that it runs between two cycles; to the event loop go calls, such as orders for
the writer. Metrics need no seam: the metrics library has locks of its own.

Everything is bounded: reflectors wait while too many changes are held, and calls come only from writes that a cycle
ordered and from results that are awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock
from typing import Any, NamedTuple, TypeVar

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.kube.reflector import UnusableObject

Result = TypeVar("Result")
TIMEOUT = 60.0
"""Seconds within which the cycle's thread has to come to a call whose result is awaited."""


class Unavailable(Exception):
    """Why a result is not available now."""


class ThreadSeam:
    """Made for the event loop on which `to_event_loop` calls."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None = None, changes: ChangeBuffer | None = None
    ) -> None:
        self.changes = changes if changes is not None else ChangeBuffer()
        self._loop = loop
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._released = Event()
        """Set when we lead, or when we never will."""
        self._stopped = Event()

    # -- from the event loop

    def to_cycle(self, call: Callable[..., None], *arguments: Any) -> None:
        """Make this call in the cycle's thread soon, between two cycles."""
        self._calls.put(partial(call, *arguments))
        self.changes.arrived.set()

    async def result_from_cycle(self, call: Callable[[], Result]) -> Result:
        """Make a call in the cycle's thread and return its result; `Unavailable` if no cycle starts in time."""
        future: Future[Result] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)

        self.to_cycle(run)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), TIMEOUT)
        except TimeoutError:
            raise Unavailable(f"no cycle began within {TIMEOUT:g} seconds") from None

    def lead(self) -> None:
        """End `wait_to_lead`: this replica leads."""
        self._released.set()

    def stop(self) -> None:
        """End all waiting, as no further cycle is wanted. From any thread."""
        self._stopped.set()  # first, or this replica would seem to lead for a moment
        self._released.set()
        self.changes.arrived.set()

    @property
    def leads(self) -> bool:
        return self._released.is_set() and not self._stopped.is_set()

    # -- from the cycle's thread

    def to_event_loop(self, call: Callable[..., object], *arguments: Any) -> None:
        """Make this call on the event loop soon; do nothing if the loop has ended."""
        assert self._loop is not None
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def run_calls(self) -> None:
        """Make all pending calls."""
        while True:
            try:
                call = self._calls.get_nowait()
            except Empty:
                return
            call()

    def wait_to_lead(self, seconds: float) -> bool:
        """Wait so long, or until this replica leads or stops; return whether it does."""
        return self._released.wait(seconds)

    def wait_for_changes(self, seconds: float) -> bool:
        """Wait so long, or until there are changes or calls, or a stop; return whether there is any of them.

        That stays true until `clear`, which must be called before changes and calls are taken.
        """
        return self.changes.arrived.wait(seconds)

    def clear(self) -> None:
        """Let `wait_for_changes` wait for changes and calls that come from now on."""
        self.changes.arrived.clear()

    def wait_to_stop(self, seconds: float) -> bool:
        """Wait so long, or until a stop; return whether there was one."""
        return self._stopped.wait(seconds)


# -- changes on their way to the cycle: each object once, as it was last seen


MAX_CHANGES = 200_000
_POLL = 0.05


class ObjectChange(NamedTuple):
    """An object that was added or modified, or is gone."""

    object: Object
    gone: bool


Id = tuple[type[Object], str]


def identity(object: Object) -> Id:
    """Pods are identified by their uid, other objects by their name."""
    uid = object.metadata.uid if isinstance(object, Pod) else ""
    return type(object), uid or object.key


class ChangeBuffer:
    """Holds changes, which reflectors put in and the cycle's thread takes all at once; from any thread.

    An object that was created and deleted in between leaves no entry, so there are never more entries than objects that
    exist or that the model has.
    """

    def __init__(self, capacity: int = MAX_CHANGES, clock: Callable[[], float] = time.monotonic) -> None:
        self.observe: Callable[[Object, bool], None] | None = None
        """Called at once for every object that was put, or is gone."""
        self.arrived = Event()
        """Set when there is a new change or call; the cycle's thread waits for it and clears it."""
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
        """Let other tasks run, and wait while full: the server closes a watch that reads too slowly, and it resumes."""
        await asyncio.sleep(0)
        while max(len(self._changes), len(self._unusable)) >= self._capacity:
            await asyncio.sleep(_POLL)
