"""Writes decisions to the API server: in order per object, several at a time, with retries, never twice.

It lives on the event loop; a cycle never waits for it. Orders go into its `outbox`, from there into a queue, and are
executed by `_write`. Binds and evictions that fail come back as `WriteFailure`. A replica that no longer leads sends
nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

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
    ReleaseClaim,
    ShardStatus,
)
from stromboli.kube.bounded_cache import BoundedCache
from stromboli.kube.event_recorder import EventRecorder, ObjectReference, PendingEvent
from stromboli.kube.keyed_queue import KeyedQueue
from stromboli.kube.request import (
    Api,
    ApiError,
    Backoff,
    GuardedClient,
    LeaseLost,
    NoResponse,
    Request,
    is_gone,
    is_transient,
)
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.decision_requests import PodNotBindable, PodWrites, StatusWrites
from stromboli.scheduler.writes.held_orders import HOLD, MAX_HOLD, MAX_OBJECTS, Outbox
from stromboli.scheduler.writes.prebind.prebinder import PreBinder, failure_of
from stromboli.scheduler.writes.write_orders import (
    URGENT,
    BindAbandoned,
    GangMember,
    PreBindFailed,
    WriteFailure,
    WriteOrder,
    merge,
)

log = logging.getLogger(__name__)

WORKERS = 64
"""Requests in flight, at most."""
PATIENCE = 30.0
"""Seconds after which a bind or an eviction that is always refused has failed."""
CONFLICTS = 5
"""How often the write of a status is tried while it meets conflicts."""
BACKOFF = Backoff(first=0.1, longest=5.0)


class DecisionWriter:
    """Decisions in, requests out."""

    def __init__(
        self,
        api: Api,
        events: EventRecorder,
        write_time_left: Callable[[], float],
        failed: Callable[..., None],
        done: Callable[[WriteOrder, float], None] = lambda order, seconds: None,
        prebound: Callable[[WriteOrder, float], None] = lambda order, seconds: None,
        scheduler: str = names.SCHEDULER_NAME,
        workers: int = WORKERS,
        hold: tuple[float, float] = (HOLD, MAX_HOLD),
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`write_time_left` is as for `GuardedClient`. `failed` is called with one or more `WriteFailure`s that belong
        together, `done` with the seconds since the first try.

        `prebound` is called with the seconds for which a bind waited for what had to be written before it. `hold` is
        for how long what may be overtaken is held back, at first and at most.
        """
        self.events = events
        self._abandoned = 0
        self._failed = failed
        self._done = done
        self._clock = clock
        self._queue: KeyedQueue[WriteOrder] = KeyedQueue(self._write, workers, merge)
        self._client = GuardedClient(api, write_time_left)

        def record(order: WriteOrder) -> None:
            """Write an event about an order."""
            self.outbox.submit([order])

        self.prebinder = PreBinder(self._client, self._queue, prebound, record, wall, clock)
        self.outbox = Outbox(self._release, self._queue.__len__, clock, hold)
        """The orders to be executed."""
        written = BoundedCache(MAX_OBJECTS)
        pods = PodWrites(self._client, written, record, scheduler, wall)
        statuses = StatusWrites(self._client, written, wall)
        self._writes: dict[type[Decision], Callable[[WriteOrder, Any], Awaitable[None]]] = {
            Bind: pods.bind,
            Evict: pods.evict,
            PodCondition: pods.set_condition,
            GateRemoval: partial(self._write_plain, decision_requests.gate_removal),
            PodGroupStatus: statuses.write_group_status,
            NativeGroupCondition: statuses.write_native_condition,
            QueueStatus: statuses.write_queue_status,
            QueueAnnotation: partial(self._write_plain, decision_requests.queue_annotation),
            ReleaseClaim: self.prebinder.claim_release.release,
            ShardStatus: partial(self._write_plain, decision_requests.shard_status),
            Event: self._write_event,
        }

    def __len__(self) -> int:
        """Objects with orders that are not done."""
        return len(self._queue) + len(self.outbox)

    @property
    def dropped_events(self) -> int:
        """Events that were not written because there were too many, in all or about one object."""
        return self.outbox.dropped + self.events.dropped

    def start(self) -> None:
        """Start to execute orders."""
        self._queue.start()

    async def flush(self) -> None:
        """Write everything now, and wait for it."""
        self.outbox.flush()
        await self.idle()

    async def idle(self) -> None:
        """Wait until all orders that are not held back are written."""
        await self._queue.idle()

    async def finish(self, timeout: float) -> bool:
        """Write everything within `timeout` seconds, then stop; return whether nothing was left.

        Binds that wait for other components are left to the next leader.
        """
        self.prebinder.end()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.flush(), timeout)
        self.outbox.stop()
        left = len(self) + self._abandoned
        await self._queue.stop()
        return not left

    # -- one order

    def _release(self, order: WriteOrder) -> None:
        """Let an order be executed; a bind that must not go alone joins its gang first."""
        job = order.job
        if (
            isinstance(order.decision, Bind)
            and job is not None
            and (order.member or job in self.prebinder.gangs)
        ):
            self.prebinder.join(order, order.decision)
        self._queue.put(order.key, order, order.urgency)

    async def _write(self, order: WriteOrder) -> float | None:
        """Execute an order; return the seconds after which to try again, if at all."""
        order.since = self._clock() if order.since is None else order.since
        try:
            if order.member is None:
                await self._send(order)
            elif (pause := await self._write_of_gang(order, order.member)) is not None:
                return pause
        except LeaseLost:
            return None
        except BindAbandoned:
            self._abandoned += 1
            return None
        except (PodNotBindable, PreBindFailed) as error:
            return self._fail(order, str(error), gone=isinstance(error, PodNotBindable))
        except (ApiError, NoResponse) as error:
            order.tries += 1
            if self._client.may_write() and self._may_retry(order, error):
                retry_after = error.retry_after if isinstance(error, ApiError) else None
                return BACKOFF.pause(order.tries, retry_after)
            return self._fail(order, str(error), gone=False)
        except Exception as error:  # such as an invalid response; the task must not stay Binding for ever
            log.exception("%s: unexpected error", _description(order.decision))
            return self._fail(order, f"{type(error).__name__}: {error}", gone=False)
        return None

    async def _write_of_gang(self, order: WriteOrder, member: GangMember) -> float | None:
        """The next step of a bind that goes together with others."""
        bind = order.decision
        assert isinstance(bind, Bind)
        refused = bool(member.why) or not order.doubtful
        if member.gang.failure is None:
            if (pause := await self.prebinder.advance(order, member, bind)) is not None:
                return pause
            order.since = self._clock() if order.since is None else order.since
        elif refused and await self.prebinder.take_back(member, bind):
            self._end_bind(member, bind, failure_of(member, bind))
            return None
        await self._send(order)  # or again: if a response was lost, the pod may be bound
        self._end_bind(member, bind)
        return None

    def _end_bind(self, member: GangMember, bind: Bind, failure: WriteFailure | None = None) -> None:
        failures = self.prebinder.done(member, bind, failure)
        if failures and self._client.may_write():
            self._failed(*failures)

    async def _send(self, order: WriteOrder) -> None:
        """Send an order. An object that is gone needs no write, but the result of a bind must be known."""
        try:
            await self._writes[type(order.decision)](order, order.decision)
        except ApiError as error:
            if not is_gone(error) or isinstance(order.decision, Bind):
                raise
        except NoResponse:
            order.doubtful = True
            raise
        self._done(order, self._clock() - (order.since or 0.0))

    def _may_retry(self, order: WriteOrder, error: Exception) -> bool:
        if not is_transient(error):
            return False
        if isinstance(order.decision, Event):
            return order.tries < CONFLICTS
        if isinstance(order.decision, Bind) and order.doubtful:
            return True  # it may be bound: retry until we know
        if order.urgency == URGENT:
            return self._clock() - (order.since or 0.0) < PATIENCE
        conflict = isinstance(error, ApiError) and error.status == 409
        return not conflict or order.tries < CONFLICTS

    def _fail(self, order: WriteOrder, why: str, gone: bool) -> float | None:
        """An order failed for good. A bind of a gang comes back at once, so that what was written is taken back."""
        member, bind = order.member, order.decision
        if member is None or not isinstance(bind, Bind):
            self._give_up(order, why, gone)
            return None
        if not member.undoing:
            self.prebinder.fail(member, bind, why, gone)
            return 0.0
        log.warning("what was written for pod %s could not be taken back: %s", bind.key, why)
        if member.take_back:  # the rest may be
            member.take_back.pop()
            return 0.0
        self._end_bind(member, bind, failure_of(member, bind))
        return None

    def _give_up(self, order: WriteOrder, why: str, gone: bool) -> None:
        decision = order.decision
        if not self._client.may_write():
            return
        if isinstance(decision, Bind | Evict):
            self._failed(WriteFailure(decision, why, gone))
        elif not isinstance(decision, Event):
            log.warning("%s was not written: %s", _description(decision), why)

    # -- writes that need no more than the decision

    async def _write_plain(
        self, request: Callable[[Any], Request], _: WriteOrder, decision: Decision
    ) -> None:
        await self._client.send(request(decision))

    async def _write_event(self, order: WriteOrder, decision: Event) -> None:
        subject = ObjectReference(
            decision.kind, decision.namespace, decision.name, order.uid, order.api_version
        )
        event = PendingEvent(subject, decision.type, decision.reason, decision.message)
        if order.request is None and not order.overtaken:
            order.request = self.events.request(event)
        self.outbox.written(order)
        if order.request is None:
            return
        try:
            await self._client.send(order.request)
        except ApiError as error:
            if error.status == 409 and order.request.method == "POST":
                return  # it exists: the first response was lost
            if not self.events.failed(event, error):
                raise
            order.request = self.events.request(event)
            if order.request is not None:
                await self._client.send(order.request)


def _description(decision: Decision) -> str:
    namespace, name = getattr(decision, "namespace", ""), getattr(decision, "name", "")
    return f"{type(decision).__name__} of {namespace}/{name}".replace(" of /", " of ")
