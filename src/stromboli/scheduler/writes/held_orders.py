"""Holds orders back for a moment if newer ones are likely to replace them.

While a gang arrives and is bound, its group and its pods change from cycle to cycle: waiting for pods, admitted, bound,
one running, all running. Only the last of these states is useful. So statuses, and the reasons why pods and jobs wait,
are sent once nothing newer has come for `HOLD` seconds, and after `MAX_HOLD` seconds in any case. The status of a gang
that is being bound is held for that longer time, as its binds come back and make it Running. What is no longer true by
then is never sent: a pod that was bound meanwhile gets no condition about waiting.

Nothing is lost if the process stops meanwhile: the next leader compares what objects show with what they should.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.decisions import (
    Bind,
    Event,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.model.intake.native_groups import KIND
from stromboli.model.job import JobId
from stromboli.scheduler.writes.write_orders import FAILED_BIND, WriteOrder, merge

HOLD = 1.0
"""Seconds without news of the same kind after which an order is sent."""
MAX_HOLD = 5.0
"""Seconds after which an order is sent though news keeps coming."""
PORTION = 200
"""Orders that are taken in one turn of the event loop, some milliseconds of it."""
MAX_OBJECTS = 100_000
"""Objects with orders that are not done; beyond that, new events are dropped."""
_WAIT_REASONS = frozenset({names.EVENT_UNSCHEDULABLE, names.EVENT_FAILED_SCHEDULING})
"""Reasons of events that report why something waits."""
_WAIT_CONDITIONS = frozenset({names.CONDITION_SCHEDULED, names.CONDITION_UNSCHEDULABLE})


class Outbox:
    """Takes the orders of cycles, portion by portion, and releases each when it is due; on the event loop."""

    def __init__(
        self,
        release: Callable[[WriteOrder], None],
        released: Callable[[], int],
        clock: Callable[[], float],
        hold: tuple[float, float] = (HOLD, MAX_HOLD),
    ):
        """`release` takes an order to be sent now; `released` counts objects with orders that are not sent yet."""
        self.dropped = 0
        """Events that were dropped because too many orders were pending."""
        self._released = released
        self._clock = clock
        self._incoming: deque[WriteOrder] = deque()
        self._held = HeldOrders(release, clock, hold)
        self._portion_due = False
        """Whether a portion is taken in the next turn."""
        self._timer: asyncio.TimerHandle | None = None
        """Ends the hold of the order that is due first."""
        self._timer_due = math.inf

    def __len__(self) -> int:
        """Orders that were not passed on."""
        return len(self._incoming) + len(self._held)

    def submit(self, orders: Iterable[WriteOrder]) -> None:
        """Take a portion of these orders now if none are pending, and the others in later turns of the event loop."""
        self._incoming.extend(orders)
        if not self._portion_due:
            self._take_portion()

    def _take_portion(self) -> None:
        self._take(min(PORTION, len(self._incoming)))
        self._portion_due = bool(self._incoming)
        if self._portion_due:
            asyncio.get_running_loop().call_soon(self._take_portion)

    def _take(self, count: int) -> None:
        is_full = self._released() + len(self._held) > MAX_OBJECTS
        for order in [self._incoming.popleft() for _ in range(count)]:
            if is_full and isinstance(order.decision, Event):
                self.dropped += 1
            else:
                self._held.add(order)
        if self._held.next_due < self._timer_due:
            self.release_due()

    def release_due(self) -> None:
        """Release the orders that are due, and set a timer for the next."""
        self._held.release_due()
        self.stop()
        if (due := self._held.next_due) != math.inf:
            pause = max(due - self._clock(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(pause, self.release_due)
            self._timer_due = due

    def written(self, order: WriteOrder) -> None:
        """Note that an event is sent: no newer one can replace it."""
        self._held.written(order)

    def flush(self) -> None:
        """Pass all orders on now."""
        self._take(len(self._incoming))
        self._held.release_all()

    def stop(self) -> None:
        """Release no more orders by time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_due = None, math.inf


@dataclass(slots=True)
class _Held:
    """An order, since when news of its kind has been held back, and until when."""

    order: WriteOrder
    since: float
    due: float


class HeldOrders:
    """Takes every order, and releases each when it is due."""

    def __init__(
        self,
        release: Callable[[WriteOrder], None],
        clock: Callable[[], float],
        hold: tuple[float, float] = (HOLD, MAX_HOLD),
    ):
        self._release = release
        self._clock = clock
        self._hold, self._longest = hold
        self._held: dict[Hashable, _Held] = {}
        self._released: dict[Hashable, WriteOrder] = {}
        """Events that were released and are not written yet."""
        self._about_job: dict[JobId, set[Hashable]] = {}
        """The events that report why a job waits."""
        self._due: list[tuple[float, int, Hashable]] = []
        self._serial = 0

    def __len__(self) -> int:
        """Orders that are held back."""
        return len(self._held)

    def add(self, order: WriteOrder) -> None:
        """Hold an order back, or release it at once; drop the orders that it overtakes."""
        self._overtake(order)
        key = _key(order)
        if key is None:
            self._release(order)
            return
        held = self._held.get(key)
        if held is not None:
            order = merge(held.order, order) or order
        elif (earlier := self._released.pop(key, None)) is not None:
            earlier.overtaken = True
        now = self._clock()
        if _is_urgent(order):
            self._held.pop(key, None)
            self._release(order)
            return
        due = now + (self._longest if _is_being_bound(order) else self._hold)
        if held is not None:
            before, held.order, held.due = held.due, order, min(due, held.since + self._longest)
            if held.due < before:
                self._await(held.due, key)
        else:
            self._held[key] = _Held(order, now, due)
            if isinstance(order.decision, Event) and order.decision.job is not None:
                self._about_job.setdefault(order.decision.job, set()).add(key)
            self._await(due, key)

    def _await(self, due: float, key: Hashable) -> None:
        self._serial += 1
        heapq.heappush(self._due, (due, self._serial, key))

    @property
    def next_due(self) -> float:
        """When the next may be due; never, if nothing is held back."""
        return self._due[0][0] if self._due else math.inf

    def release_due(self) -> None:
        """Release what is due."""
        now = self._clock()
        while self._due and self._due[0][0] <= now:
            due, _, key = heapq.heappop(self._due)
            held = self._held.get(key)
            if held is not None and held.due > due:
                self._await(held.due, key)
            elif held is not None:
                self._release_held(key)

    def release_all(self) -> None:
        """Release all orders, as the process ends."""
        self._due.clear()
        for key in list(self._held):
            self._release_held(key)

    def written(self, order: WriteOrder) -> None:
        """Note that an event is being written: it can no longer be overtaken."""
        key = _key(order)
        if self._released.get(key) is order:
            del self._released[key]
            self._forget(key, order)

    # -- orders that are overtaken

    def _overtake(self, order: WriteOrder) -> None:
        match order.decision:
            case Bind(namespace=namespace, name=name):
                self._withdraw(("Pod", "", namespace, name))
                self._withdraw(("Event", "Pod", namespace, name, "", None))
            case PodGroupStatus() as status:
                job = JobId("PodGroup", status.namespace, status.name)
                if _is_placed(status):
                    self._withdraw_events(job)
                elif status.phase == names.GROUP_INQUEUE:
                    self._withdraw_events(job, "gate:")
            case NativeGroupCondition(status="True") as condition:
                self._withdraw_events(JobId(KIND, condition.namespace, condition.name))

    def _withdraw_events(self, job: JobId, topics: str = "") -> None:
        """Drop the events that report why a job waits, if their topic starts so."""
        for key in list(self._about_job.get(job, ())):
            held = self._held.get(key)
            order = held.order if held is not None else self._released[key]
            if isinstance(order.decision, Event) and order.decision.topic.startswith(topics):
                self._withdraw(key)

    def _withdraw(self, key: Hashable) -> None:
        held = self._held.pop(key, None)
        order = held.order if held is not None else self._released.pop(key, None)
        if order is not None:
            order.overtaken = True
            self._forget(key, order)

    def _release_held(self, key: Hashable) -> None:
        order = self._held.pop(key).order
        if isinstance(order.decision, Event):
            self._released[key] = order
        self._release(order)

    def _forget(self, key: Hashable, order: WriteOrder) -> None:
        job = order.decision.job if isinstance(order.decision, Event) else None
        if job is not None and (keys := self._about_job.get(job)) is not None:
            keys.discard(key)
            if not keys:
                del self._about_job[job]


def _key(order: WriteOrder) -> Hashable:
    """What a later order must have in common to take its place; None for orders that are never held back."""
    match order.decision:
        case PodGroupStatus() | QueueStatus() | PodCondition() | NativeGroupCondition():
            return order.key
        case Event(reason=reason, topic=topic) as event if reason in _WAIT_REASONS and topic != FAILED_BIND:
            return ("Event", event.kind, event.namespace, event.name, event.topic, event.job)
    return None


def _is_urgent(order: WriteOrder) -> bool:
    """Whether a controller acts on it, a new leader needs it, or it stays true, as a failed bind does."""
    match order.decision:
        case PodGroupStatus(conditions=conditions):
            return order.awaited or any(entry.type not in _WAIT_CONDITIONS for entry in conditions)
        case PodCondition(reason=reason, nominated_node=node):
            return bool(node) or reason == names.SCHEDULER_ERROR
        case NativeGroupCondition(status=status):
            return status == "True"
    return False


def _is_being_bound(order: WriteOrder) -> bool:
    """Whether it reports a job that is admitted and allocated: once its binds are seen, it is Running."""
    status = order.decision
    return isinstance(status, PodGroupStatus) and status.phase == names.GROUP_INQUEUE and _is_placed(status)


def _is_placed(status: PodGroupStatus) -> bool:
    """Whether a job no longer waits: its pods are bound, or about to be."""
    scheduled = any(entry.type == names.CONDITION_SCHEDULED for entry in status.conditions)
    return scheduled or status.phase in (names.GROUP_RUNNING, names.GROUP_COMPLETED)
