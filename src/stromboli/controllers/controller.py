"""The base of every controller: which kinds it watches, which keys a change enqueues, and how one key is synced."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

from stromboli.api.types.meta import Object
from stromboli.controllers.api_writer import FINAL_PAUSE, REFUSAL_PAUSE, is_final, is_refusal
from stromboli.controllers.context import Context
from stromboli.controllers.store import Store
from stromboli.controllers.workqueue import WorkQueue
from stromboli.kube.reflector import EVERYTHING, WatchScope
from stromboli.kube.request import ApiError, LeaseLost, NoResponse

log = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)
Kind = TypeVar("Kind", bound=Object)
MapFunc = Callable[[Kind | None, Kind | None], Iterable[Key]]
"""The keys to enqueue for a change, given the old and the new object; old is None if it was added, new if deleted."""

SYNC_TIMEOUT = 600.0
"""Seconds that one sync may take."""
GIVE_UP_PAUSE = 300.0
"""Seconds until a key is tried again that has failed too often in a row."""
REST = 19.0
"""A key rests for so many times of what its sync computed: at most a twentieth of the time goes into it."""
SHORTEST_REST = 0.02
"""Seconds below which a key does not rest."""
LOG_INTERVAL = 60.0
"""Seconds for which a failure of a key that goes on is not logged again."""


class SyncError(Exception):
    """An object cannot be synced as the cluster is now; the text is for the user, and the key is requeued."""


class Controller(ABC, Generic[Key]):
    """Reconciles the objects of one kind. A subclass says in `__init__` what it watches, and defines `sync`."""

    name: ClassVar[str]
    """As in `--controllers`."""
    workers: int = 1
    """How many keys are synced at a time."""
    max_retries: int = -1
    """Failures in a row after which `gave_up` is called and the key waits `GIVE_UP_PAUSE`; negative: never."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.queue: WorkQueue[Key] = WorkQueue()
        self.stores: list[Store[Any]] = []
        self._worker_tasks: list[asyncio.Task[None]] = []
        self.rests_until: dict[Key, float] = {}
        """Until when keys rest."""
        self._logged: dict[Key, tuple[str, float]] = {}
        """What keys that fail fail with, and when that was logged."""

    def watch(
        self, kind: type[Kind], keys_for: MapFunc[Kind, Key] | None = None, scope: WatchScope = EVERYTHING
    ) -> Store[Kind]:
        """The store of a kind, or of those in a scope; every change enqueues the keys that `keys_for` returns."""
        store = self.context.store(kind, scope)
        if store not in self.stores:
            self.stores.append(store)
        if keys_for is not None:
            map_func = keys_for

            def enqueue(before: Kind | None, now: Kind | None) -> None:
                for key in map_func(before, now):
                    self.queue.add(key)

            store.add_event_handler(enqueue)
        return store

    @abstractmethod
    async def sync(self, key: Key) -> float | None:
        """Reconcile one object; seconds after which to requeue it even if nothing changes, or None.

        If it raises, the key is requeued with a growing delay.
        """

    def pause_before(self, key: Key) -> float:
        """Seconds for which a key still rests before it is synced; how often it has failed stays as it is."""
        until = self.rests_until.get(key)
        if until is None:
            return 0.0
        pause = until - time.monotonic()
        if pause > SHORTEST_REST:
            return pause
        if pause < 0:
            del self.rests_until[key]
        return 0.0

    def rest(self, key: Key, computed: float) -> None:
        """A key rests in proportion to the CPU time in seconds that its sync took, so that changes are gathered."""
        self.rests_until[key] = max(time.monotonic(), self.rests_until.get(key, 0.0)) + REST * computed

    def gave_up(self, key: Key, error: Exception) -> None:
        """The key failed `max_retries` times in a row, or the API server rejected a write for good: tell the user."""

    # -- running

    def start(self) -> None:
        self._worker_tasks = [
            asyncio.create_task(self._run_worker(), name=f"{self.name} {number}")
            for number in range(self.workers)
        ]

    async def stop(self, grace: float = 0.0) -> None:
        """Start no more syncs, and cancel those that take longer than `grace` seconds."""
        tasks, self._worker_tasks = self._worker_tasks, []
        self.queue.close()
        if grace > 0 and tasks:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    while self.queue.processing:
                        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def _run_worker(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                pause = self.pause_before(key)
                if pause > 0:
                    self.queue.add_after(key, pause)
                else:
                    await self._sync_once(key)
            finally:
                self.queue.done(key)
            await asyncio.sleep(0)  # a sync without writes awaits nothing, and thousands may be due

    async def _sync_once(self, key: Key) -> None:
        """Sync a key, and survive whatever that raises: other keys need the worker."""
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                requeue_after = await self.sync(key)
        except LeaseLost as error:
            log.info("%s %s: %s", self.name, key, error)
        except (ApiError, NoResponse, TimeoutError, SyncError) as error:
            self._failed(key, error)
        except Exception as error:
            self._failed(key, error, unexpected=True)
        else:
            self.queue.forget(key)
            self._logged.pop(key, None)
            if requeue_after is not None:
                self.queue.add_after(key, requeue_after)
        finally:
            self.context.metrics.on_sync(self.name, time.perf_counter() - begin)

    def _failed(self, key: Key, error: Exception, unexpected: bool = False) -> None:
        self.context.metrics.on_failed_sync(self.name)
        if is_final(error) or 0 <= self.max_retries <= self.queue.num_requeues(key):
            pause = FINAL_PAUSE if is_final(error) else GIVE_UP_PAUSE
            self.queue.forget(key)
            self.queue.add_after(key, pause)
            self._logged.pop(key, None)
            log.error("%s %s: giving up for %gs: %s", self.name, key, pause, error, exc_info=unexpected)
            with suppress(Exception):
                self.gave_up(key, error)
            return
        pause = self.queue.add_rate_limited(key, REFUSAL_PAUSE if is_refusal(error) else 0.0)
        if isinstance(error, ApiError) and error.status == 409:
            log.debug("%s %s: %s; again in %.3gs", self.name, key, error, pause)
        elif self._is_news(key, error):
            log.log(
                logging.ERROR if unexpected else logging.WARNING,
                "%s %s: %s; it is tried again, with growing pauses",
                self.name,
                key,
                error,
                exc_info=unexpected,
            )

    def _is_news(self, key: Key, error: Exception) -> bool:
        """Whether a key fails with something else than before, or this was last logged a while ago."""
        now, failure = time.monotonic(), _failure(error)
        before, logged_at = self._logged.get(key, ("", 0.0))
        if failure == before and now < logged_at + LOG_INTERVAL:
            return False
        self._logged[key] = failure, now
        return True


def _failure(error: Exception) -> str:
    """What stays the same while a failure lasts; refusals name a new pod every time."""
    if isinstance(error, ApiError):
        return f"{error.status} {error.reason}"
    return f"{type(error).__name__} {error}"
