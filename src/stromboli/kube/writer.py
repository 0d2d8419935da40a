"""Carries decisions out: in order per object, so many at a time, again where that helps, never twice.

It lives on the event loop and is told decisions from the cycle's thread; a cycle never waits for it. What it could not
do comes back as `Failure`, to be applied with the news. Before every request it asks whether it may still write: a
deposed leader writes nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from contextlib import suppress
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
)
from stromboli.kube import writes
from stromboli.kube.asking import Api, Refused, Request, Unanswered, passing
from stromboli.kube.events import Events, Saying, Subject
from stromboli.kube.lanes import Lanes
from stromboli.kube.orders import URGENT, Failure, Order, merged

log = logging.getLogger(__name__)

WIDTH = 64
"""Requests in flight, at most."""
TIMEOUT = 10.0
"""Seconds that one request may take."""
PATIENCE = 30.0
"""Seconds after which a bind or an eviction that is always refused has failed."""
CONFLICTS = 5
"""How often a status may meet a conflict."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
MOST_EVENTS = 20_000
"""Objects about which something waits to be written; beyond that, new events are left out."""
REMEMBERED = 100_000


class Over(Exception):
    """A bind or an eviction cannot come to pass any more."""

    def __init__(self, why: str, gone: bool = False):
        super().__init__(why)
        self.gone = gone


class _Meta(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    """As much of a pod as tells where it is."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Writer:
    """Decisions in, requests out."""

    def __init__(
        self,
        api: Api,
        events: Events,
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
        self._api = api
        self._may_write = may_write
        self._failed = failed
        self._done = done
        self._scheduler = scheduler
        self._wall = wall
        self._clock = clock
        self._lanes: Lanes[Order] = Lanes(self._work, width, merged)
        self._told: OrderedDict[Hashable, Any] = OrderedDict()
        """What was last written of an object, for what the next patch of it must say."""

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
            await _WAYS[type(order.decision)](self, order)
        except Over as error:
            self._give_up(order, str(error), error.gone)
        except (Refused, Unanswered) as error:
            order.tries += 1
            order.doubtful |= isinstance(error, Unanswered)
            if self._may_write() and self._worth_another_try(order, error):
                return _wait(order.tries, error)
            self._give_up(order, str(error), gone=False)
        except Exception as error:  # an answer that makes no sense must not leave a task on its way for ever
            log.exception("%s failed in a way that nobody thought of", _named(order.decision))
            self._give_up(order, f"{type(error).__name__}: {error}", gone=False)
        else:
            self._done(order, self._clock() - order.since)
        return None

    def _worth_another_try(self, order: Order, error: Exception) -> bool:
        if not passing(error):
            return False
        if isinstance(order.decision, Event):
            return order.tries < CONFLICTS
        if isinstance(order.decision, Bind) and order.doubtful:
            return True  # it may be bound: the truth must come out
        if order.urgency == URGENT:
            return self._clock() - (order.since or 0.0) < PATIENCE
        conflict = isinstance(error, Refused) and error.status == 409
        return not conflict or order.tries < CONFLICTS

    def _give_up(self, order: Order, why: str, gone: bool) -> None:
        decision = order.decision
        if not self._may_write():
            return
        if isinstance(decision, Bind | Evict):
            self._failed(Failure(decision, why, gone))
        elif not isinstance(decision, Event):
            log.warning("%s was not written: %s", _named(decision), why)

    async def _ask(self, request: Request) -> bytes:
        if not self._may_write():
            raise Over("no longer the leader")
        return await self._api.ask(request, TIMEOUT)

    # -- pods

    async def _bind(self, order: Order) -> None:
        bind = order.decision
        assert isinstance(bind, Bind)
        try:
            await self._ask(writes.binding(bind))
        except Refused as error:
            if error.status == 404:
                raise Over("the pod is gone", gone=True) from None
            if error.status != 409 or not await self._is_bound(bind):
                raise
        self._told.pop(bind.uid, None)
        text = names.SUCCESSFULLY_ASSIGNED.format(namespace=bind.namespace, name=bind.name, node=bind.node)
        self._say("Pod", bind.namespace, bind.name, bind.uid, names.NORMAL, names.EVENT_SCHEDULED, text)

    async def _is_bound(self, bind: Bind) -> bool:
        """Whether the pod is on its node, as after a lost answer; `Over` if it never will be."""
        try:
            answer = await self._ask(writes.reading_pod(bind.namespace, bind.name))
        except Refused as error:
            if error.status == 404:
                raise Over("the pod is gone", gone=True) from None
            raise
        pod = msgspec.json.decode(answer, type=_Pod)
        if pod.metadata.uid != bind.uid:
            raise Over("the pod is gone, and another one has its name", gone=True)
        if pod.spec.node_name not in ("", bind.node):
            raise Over(f"the pod is bound to {pod.spec.node_name} already", gone=True)
        return pod.spec.node_name == bind.node

    async def _evict(self, order: Order) -> None:
        evict = order.decision
        assert isinstance(evict, Evict)
        reason = f"{evict.action or evict.reason}" + (
            f" for {evict.beneficiary}" if evict.beneficiary else ""
        )
        text = names.POD_EVICTED.format(reason=reason)
        with suppress(_Gone):
            if not order.marked:
                mark = writes.eviction_mark(evict, text, self._scheduler, self._wall())
                await self._ask_of_pod(mark, {404, 422})
                order.marked = True
            await self._ask_of_pod(writes.deletion(evict), {404, 409})

    async def _ask_of_pod(self, request: Request, gone: set[int]) -> None:
        """Ask, where some refusals mean that the pod, known by its uid, is gone."""
        try:
            await self._ask(request)
        except Refused as error:
            if error.status in gone:
                raise _Gone from None
            raise

    async def _tell_pod(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, PodCondition)
        since = None if said.uid in self._told else self._wall()
        with suppress(_Gone):
            await self._ask_of_pod(writes.pod_condition(said, since), {404, 422})
            self._remember(said.uid, True)

    # -- PodGroups and queues

    async def _tell_group(self, order: Order) -> None:
        """Conditions are a list that a patch replaces as a whole: what stands there and what was written goes along."""
        said = order.decision
        assert isinstance(said, PodGroupStatus)
        key = ("PodGroup", said.namespace, said.name, order.uid)
        standing = writes.group_conditions(order.conditions, said, self._wall())
        fresh = {one.type for one in said.conditions}
        written: dict[str, dict[str, str]] = self._told.get(key, {})
        conditions = {**standing, **{type: one for type, one in written.items() if type not in fresh}}
        with suppress(_Gone):
            await self._ask_of_pod(
                writes.group_status(said, order.uid, conditions.values()), {404, 422} if order.uid else {404}
            )
            self._remember(key, {type: conditions[type] for type in (*written, *fresh)})

    async def _tell_queue(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, QueueStatus)
        key = ("Queue", said.name)
        with suppress(_Gone):
            request = writes.queue_status(said, {*order.resources, *self._told.get(key, ())})
            await self._ask_of_pod(request, {404})
            self._remember(key, tuple(said.allocated))

    async def _annotate_queue(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, QueueAnnotation)
        with suppress(_Gone):
            await self._ask_of_pod(writes.queue_annotation(said), {404})

    def _remember(self, key: Hashable, value: Any) -> None:
        self._told[key] = value
        self._told.move_to_end(key)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)

    # -- events

    def _say(
        self, kind: Any, namespace: str, name: str, uid: str, type: Any, reason: str, message: str
    ) -> None:
        self.submit([Order(Event(kind, namespace, name, type, reason, message), uid)])

    async def _tell_event(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, Event)
        saying = Saying(
            Subject(said.kind, said.namespace, said.name, order.uid), said.type, said.reason, said.message
        )
        order.request = order.request or self.events.request(saying)
        if order.request is None:
            return
        try:
            await self._ask(order.request)
        except Refused as error:
            if error.status == 409 and order.request.method == "POST":
                return  # an answer was lost: it stands there
            if self.events.failed(saying, error):
                order.request = self.events.request(saying)
                if order.request is not None:
                    await self._ask(order.request)
                return
            raise


class _Gone(Exception):
    """There is nobody left to write about."""


_WAYS: dict[type[Decision], Callable[[Writer, Order], Awaitable[None]]] = {
    Bind: Writer._bind,
    Evict: Writer._evict,
    PodCondition: Writer._tell_pod,
    PodGroupStatus: Writer._tell_group,
    QueueStatus: Writer._tell_queue,
    QueueAnnotation: Writer._annotate_queue,
    Event: Writer._tell_event,
}


def _wait(tries: int, error: Exception) -> float:
    """Longer after each try, never all at once, and not before the server said."""
    asked: float | None = error.retry_after if isinstance(error, Refused) else None
    backoff = float(min(FIRST_WAIT * 2.0 ** min(tries - 1, 16), LONGEST_WAIT))
    return max(asked or 0.0, backoff * random.uniform(0.5, 1.0))


def _named(decision: Decision) -> str:
    namespace, name = getattr(decision, "namespace", ""), getattr(decision, "name", "")
    return f"{type(decision).__name__} of {namespace}/{name}".replace(" of /", " of ")
