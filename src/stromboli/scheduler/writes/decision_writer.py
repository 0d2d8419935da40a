"""Carries decisions out: in order per object, so many at a time, again where that helps, never twice.

It lives on the event loop and is told decisions from the cycle's thread; a cycle never waits for it. What it could not
do comes back as `Failure`, to be applied with the news. Before every request it asks whether it may still write: a
deposed leader writes nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from stromboli.api import names
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GateRemoval,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.event_recorder import EventRecorder, ObjectReference, PendingEvent
from stromboli.kube.keyed_queue import KeyedQueue
from stromboli.kube.rate_limits import Backoff
from stromboli.kube.request import Api, ApiError, NoResponse, is_transient
from stromboli.scheduler.writes.guarded_client import Over, Pen
from stromboli.scheduler.writes.pod_writes import PodWrites
from stromboli.scheduler.writes.status_writes import StatusWrites
from stromboli.scheduler.writes.write_orders import URGENT, Failure, Order, merged

log = logging.getLogger(__name__)

WIDTH = 64
"""Requests in flight, at most."""
PATIENCE = 30.0
"""Seconds after which a bind or an eviction that is always refused has failed."""
CONFLICTS = 5
"""How often a status may meet a conflict."""
BACKOFF = Backoff(first=0.1, longest=5.0)
MOST_EVENTS = 100_000
"""Objects about which something waits to be written; beyond that, new events are left out."""


class Writer:
    """Decisions in, requests out."""

    def __init__(
        self,
        api: Api,
        events: EventRecorder,
        may_write: Callable[[], bool],
        failed: Callable[[Failure], None],
        done: Callable[[Order, float], None] = lambda order, seconds: None,
        scheduler: str = names.SCHEDULER_NAME,
        width: int = WIDTH,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`failed` and `done` are called on the event loop; `done` with the seconds since the first try."""
        self.events = events
        self.dropped = 0
        """Events that were left out because too much waited."""
        self._may_write = may_write
        self._failed = failed
        self._done = done
        self._clock = clock
        self._lanes: KeyedQueue[Order] = KeyedQueue(self._work, width, merged)
        self._pen = Pen(api, may_write)
        pods = PodWrites(self._pen, lambda order: self.submit([order]), scheduler, wall)
        statuses = StatusWrites(self._pen, wall)
        self._ways: dict[type[Decision], Callable[[Order], Awaitable[None]]] = {
            Bind: pods.bind,
            Evict: pods.evict,
            PodCondition: pods.tell,
            GateRemoval: pods.lift_gate,
            PodGroupStatus: statuses.tell_group,
            NativeGroupCondition: statuses.tell_native_group,
            QueueStatus: statuses.tell_queue,
            QueueAnnotation: statuses.annotate_queue,
            ShardStatus: statuses.tell_shard,
            Event: self._tell_event,
        }

    def __len__(self) -> int:
        """Objects about which something is still to be written."""
        return len(self._lanes)

    def start(self) -> None:
        """Begin to write; on the event loop."""
        self._lanes.start()

    def submit(self, orders: Iterable[Order]) -> None:
        """Take orders; they are on their way when this returns."""
        crowded = len(self._lanes) > MOST_EVENTS
        for order in orders:
            if crowded and isinstance(order.decision, Event):
                self.dropped += 1
            else:
                self._lanes.put(order.lane, order, order.urgency)

    async def finish(self, within: float) -> bool:
        """Wait until all is written, at most so long, then stop; whether nothing was left."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._lanes.idle(), within)
        left = len(self._lanes)
        await self._lanes.stop()
        return not left

    # -- one order

    async def _work(self, order: Order) -> float | None:
        """Carry an order out, or say when to try again."""
        if not self._may_write():
            return None
        now = self._clock()
        order.since = now if order.since is None else order.since
        try:
            await self._ways[type(order.decision)](order)
        except Over as error:
            self._give_up(order, str(error), error.gone)
        except (ApiError, NoResponse) as error:
            order.tries += 1
            order.doubtful |= isinstance(error, NoResponse)
            if self._may_write() and self._worth_another_try(order, error):
                asked = error.retry_after if isinstance(error, ApiError) else None
                return BACKOFF.pause(order.tries, asked)
            self._give_up(order, str(error), gone=False)
        except Exception as error:  # an answer that makes no sense must not leave a task on its way for ever
            log.exception("%s failed in a way that nobody thought of", _named(order.decision))
            self._give_up(order, f"{type(error).__name__}: {error}", gone=False)
        else:
            self._done(order, self._clock() - order.since)
        return None

    def _worth_another_try(self, order: Order, error: Exception) -> bool:
        if not is_transient(error):
            return False
        if isinstance(order.decision, Event):
            return order.tries < CONFLICTS
        if isinstance(order.decision, Bind) and order.doubtful:
            return True  # it may be bound: the truth must come out
        if order.urgency == URGENT:
            return self._clock() - (order.since or 0.0) < PATIENCE
        conflict = isinstance(error, ApiError) and error.status == 409
        return not conflict or order.tries < CONFLICTS

    def _give_up(self, order: Order, why: str, gone: bool) -> None:
        decision = order.decision
        if not self._may_write():
            return
        if isinstance(decision, Bind | Evict):
            self._failed(Failure(decision, why, gone))
        elif not isinstance(decision, Event):
            log.warning("%s was not written: %s", _named(decision), why)

    # -- events

    async def _tell_event(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, Event)
        saying = PendingEvent(
            ObjectReference(said.kind, said.namespace, said.name, order.uid, order.api_version),
            said.type,
            said.reason,
            said.message,
        )
        order.request = order.request or self.events.request(saying)
        if order.request is None:
            return
        try:
            await self._pen.send(order.request)
        except ApiError as error:
            if error.status == 409 and order.request.method == "POST":
                return  # an answer was lost: it stands there
            if self.events.failed(saying, error):
                order.request = self.events.request(saying)
                if order.request is not None:
                    await self._pen.send(order.request)
                return
            raise


def _named(decision: Decision) -> str:
    namespace, name = getattr(decision, "namespace", ""), getattr(decision, "name", "")
    return f"{type(decision).__name__} of {namespace}/{name}".replace(" of /", " of ")
