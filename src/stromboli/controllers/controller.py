"""The shape of a controller: which kinds it watches, which keys a change concerns, and how one key is put right."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

from stromboli.api.types.meta import Object
from stromboli.controllers.api_writer import Deposed
from stromboli.controllers.context import Desk
from stromboli.controllers.store import Shelf
from stromboli.controllers.workqueue import WorkQueue
from stromboli.kube.request import ApiError, NoResponse

log = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)
Kind = TypeVar("Kind", bound=Object)
Concerns = Callable[[Kind | None, Kind | None], Iterable[Key]]
"""The keys that a change concerns: what was, what is; one of them may be nothing."""

LONGEST = 600.0
"""Seconds that one sync may take."""
REST = 300.0
"""Seconds until an object is tried again with which we gave up."""


class Hindrance(Exception):
    """Something in the cluster keeps us from putting an object right; said in the user's words, and tried again."""


class Controller(ABC, Generic[Key]):
    """Looks after the objects of one kind.

    A subclass says in `__init__` what it watches, and defines `sync`.
    """

    name: ClassVar[str]
    """As in `--controllers`."""
    workers: int = 1
    """How many keys are worked on at a time."""
    most_retries: int = -1
    """After so many failures in a row `gave_up` is told, and the key rests for a while; negative: never."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.queue: WorkQueue[Key] = WorkQueue()
        self.shelves: list[Shelf[Any]] = []
        self._working: list[asyncio.Task[None]] = []

    def watch(self, kind: type[Kind], concerns: Concerns[Kind, Key] | None = None) -> Shelf[Kind]:
        """Have a kind on a shelf, and work on the keys that its changes concern."""
        shelf = self.desk.shelf(kind)
        if shelf not in self.shelves:
            self.shelves.append(shelf)
        if concerns is not None:
            concerned = concerns

            def listen(before: Kind | None, now: Kind | None) -> None:
                for key in concerned(before, now):
                    self.queue.add(key)

            shelf.listen(listen)
        return shelf

    @abstractmethod
    async def sync(self, key: Key) -> float | None:
        """Put one object right; after how many seconds to look again even if nothing changes, or None.

        Whatever goes wrong is raised: then the key is tried again, later each time.
        """

    def gave_up(self, key: Key, error: Exception) -> None:
        """It failed too often in a row: tell the user."""

    # -- running

    def start(self) -> None:
        self._working = [
            asyncio.create_task(self._work(), name=f"{self.name} {number}") for number in range(self.workers)
        ]

    async def stop(self, grace: float = 0.0) -> None:
        """Finish what is being done, but not for long, and do no more."""
        working, self._working = self._working, []
        self.queue.close()
        if grace > 0 and working:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    while not self.queue.resting:
                        await asyncio.sleep(0.01)
        for task in working:
            task.cancel()
        for task in working:
            with suppress(asyncio.CancelledError):
                await task

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._once(key)
            finally:
                self.queue.done(key)

    async def _once(self, key: Key) -> None:
        """One key, whatever it does to us: the others must have their turn."""
        metrics = self.desk.metrics
        try:
            with metrics.sync.labels(self.name).time():
                async with asyncio.timeout(LONGEST):
                    again = await self.sync(key)
        except Deposed as error:
            log.info("%s %s: %s", self.name, key, error)
        except (ApiError, NoResponse, TimeoutError, Hindrance) as error:
            self._failed(key, error)
        except Exception as error:
            log.exception("%s %s: unexpected", self.name, key)
            self._failed(key, error)
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)

    def _failed(self, key: Key, error: Exception) -> None:
        self.desk.metrics.failures.labels(self.name).inc()
        if 0 <= self.most_retries <= self.queue.failures(key):
            self.queue.forget(key)
            self.queue.add_after(key, REST)
            log.error("%s %s: giving up for %gs: %s", self.name, key, REST, error)
            with suppress(Exception):
                self.gave_up(key, error)
            return
        pause = self.queue.retry(key)
        conflict = isinstance(error, ApiError) and error.status == 409
        level = logging.DEBUG if conflict else logging.WARNING
        log.log(level, "%s %s: %s; again in %.3gs", self.name, key, error, pause)
