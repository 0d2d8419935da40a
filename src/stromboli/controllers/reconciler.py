"""The runtime of every controller: a queue of keys, workers that sync them, retries with backoff, logs and metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar

from stromboli.controllers.api_writer import FINAL_PAUSE, REFUSAL_PAUSE, is_final, is_refusal
from stromboli.controllers.controller_metrics import Metrics
from stromboli.controllers.workqueue import MAX_PAUSE, WorkQueue
from stromboli.kube.request import ApiError, LeaseLost, NoResponse

log = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)

SYNC_TIMEOUT = 600.0
"""Seconds that a slow sync may take."""
MAX_SLOW_SYNCS = 1000
"""Slow syncs of a controller for which other workers were started."""
GIVE_UP_PAUSE = 300.0
"""Seconds until a key is tried again that has failed too often in a row."""
SHORTEST_REST = 0.02
"""Seconds below which a key does not rest."""
LOG_INTERVAL = 60.0
"""Seconds for which a failure of a key that goes on is not logged again."""


class SyncError(Exception):
    """An object cannot be synced as the cluster is now; the text is for the user, and the key is requeued."""


class Reconciler(ABC, Generic[Key]):
    """Syncs keys, several at a time and each by one worker. A slow sync delays its own key alone."""

    name: ClassVar[str]
    """In logs and metrics."""
    workers: int = 1
    """How many keys are synced at a time, apart from slow ones."""
    patience: ClassVar[float] = 2.0
    """Seconds after which a sync is slow: another worker starts in the place of the one that is busy with it."""
    max_pause: ClassVar[float] = MAX_PAUSE
    """Seconds that a key waits at most after a failure, unless it is given up."""
    final_pause: ClassVar[float] = FINAL_PAUSE
    """Seconds that a key waits after a write was rejected for what it says, unless its object changes."""
    rest_factor: ClassVar[float] = 19.0
    """A key rests for so many times of what its sync computed: at most a twentieth of the time goes into it."""
    max_retries: int = -1
    """Failures in a row after which `gave_up` is called and the key waits `GIVE_UP_PAUSE`; negative: never."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self.queue: WorkQueue[Key] = WorkQueue(max_pause=self.max_pause)
        self.rests_until: dict[Key, float] = {}
        """Until when keys rest."""
        self._metrics = metrics
        self._workers: set[asyncio.Task[None]] = set()
        self._slow: set[asyncio.Task[None]] = set()
        """Workers that stop after the sync that they are busy with, as others have started in their place."""
        self._logged: dict[Key, tuple[str, float]] = {}
        """The failure of each failing key that was last logged, and when."""

    @abstractmethod
    async def sync(self, key: Key) -> float | None:
        """Reconcile one object; seconds after which to requeue it even if nothing changes, or None.

        If it raises, the key is requeued with a growing delay.
        """

    def gave_up(self, key: Key, error: Exception) -> None:
        """The key failed `max_retries` times in a row, or the API server rejected a write for good: report it."""

    # -- rests

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
        """A key rests in proportion to the seconds that its sync computed, so that changes are gathered."""
        begin = max(time.monotonic(), self.rests_until.get(key, 0.0))
        self.rests_until[key] = begin + self.rest_factor * computed

    # -- workers

    def start(self) -> None:
        for _ in range(self.workers):
            self._start_worker()

    async def stop(self, grace: float = 0.0) -> None:
        """Start no more syncs, and cancel those that take longer than `grace` seconds."""
        self.queue.close()
        if grace > 0 and self._workers:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    while self.queue.processing:
                        await asyncio.sleep(0.01)
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _start_worker(self) -> None:
        worker = asyncio.create_task(self._run_worker(), name=self.name)
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _run_worker(self) -> None:
        this = asyncio.current_task()
        assert this is not None
        while this not in self._slow:
            key = await self.queue.get()
            try:
                pause = self.pause_before(key)
                if pause > 0:
                    self.queue.add_after(key, pause)
                else:
                    await self._sync_once(key, this)
            finally:
                self.queue.done(key)
            await self.let_others_run()
        self._slow.discard(this)

    async def let_others_run(self) -> None:
        """Called after each sync: one without writes awaits nothing, and thousands may be due."""
        await asyncio.sleep(0)

    def _replace(self, worker: asyncio.Task[None], limit: asyncio.Timeout) -> None:
        """Start another worker in the place of one whose sync is slow, and limit that sync."""
        limit.reschedule(worker.get_loop().time() + SYNC_TIMEOUT)
        if len(self._slow) < MAX_SLOW_SYNCS:
            self._slow.add(worker)
            self._start_worker()

    async def _sync_once(self, key: Key, worker: asyncio.Task[None]) -> None:
        """Sync a key, and survive whatever that raises: other keys need the worker."""
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(None) as limit:
                slow = worker.get_loop().call_later(self.patience, self._replace, worker, limit)
                try:
                    requeue_after = await self.sync(key)
                finally:
                    slow.cancel()
        except LeaseLost as error:
            log.info("%s %s: %s", self.name, key, error)
        except (ApiError, NoResponse, TimeoutError, SyncError) as error:
            self._failed(key, error)
        except asyncio.CancelledError:
            if worker.cancelling():
                raise
            self._failed(key, SyncError("what it waited for was cancelled"))
        except Exception as error:
            self._failed(key, error, unexpected=True)
        else:
            self.queue.forget(key)
            self._logged.pop(key, None)
            if requeue_after is not None:
                self.queue.add_after(key, requeue_after)
        finally:
            if self._metrics is not None:
                self._metrics.on_sync(self.name, time.perf_counter() - begin)

    # -- failures

    def _failed(self, key: Key, error: Exception, unexpected: bool = False) -> None:
        if self._metrics is not None:
            self._metrics.on_failed_sync(self.name)
        if is_final(error) or 0 <= self.max_retries <= self.queue.num_requeues(key):
            pause = self.final_pause if is_final(error) else GIVE_UP_PAUSE
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
