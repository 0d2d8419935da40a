"""A real cluster as the loop sees it: news from the mirror, decisions to the writer, failures back as news.

All of it runs in the cycle's thread, save `failed` and `done`, which the writer calls on the event loop.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event as Flag
from typing import Protocol

from stromboli.api import names
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.model.cluster import Cluster
from stromboli.model.intake.assumed_tasks import after_failed_bind, after_failed_eviction
from stromboli.model.intake.native_groups import KIND
from stromboli.model.job import JobId
from stromboli.model.status import Status
from stromboli.model.task import Condition, Task
from stromboli.scheduler.mirror.node_shards import Shards
from stromboli.scheduler.mirror.partial_gangs import PATIENCE, TornGangs
from stromboli.scheduler.writes.write_orders import Failure, Order

log = logging.getLogger(__name__)

LONGEST_PAUSE = 30.0
"""Seconds before what keeps failing is tried again, at most."""
_TRIED_AGAIN: dict[type[Decision], frozenset[Status]] = {
    Bind: frozenset({Status.PENDING, Status.BINDING}),
    Evict: frozenset({Status.BOUND, Status.RUNNING, Status.UNKNOWN, Status.RELEASING}),
}
"""In which states a task may see again what failed before; in others, that is forgotten."""


class Mirror(Protocol):
    """Keeps a cluster in step with the API server."""

    @property
    def cluster(self) -> Cluster: ...

    def sync(self) -> None:
        """Apply what the watches brought."""

    def tell_again(self) -> None:
        """Report every object that cannot be used once more."""


class KubernetesWorld:
    """Mirror and writer, side by side."""

    def __init__(
        self,
        mirror: Mirror,
        submit: Callable[[list[Order]], None],
        stop: Flag,
        wall: Callable[[], float] = time.time,
        patience: float = PATIENCE,
        shards: Shards | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`submit` hands orders over to the writer from any thread; `stop` ends a sleep.

        `clock` measures pauses: `wall` may be set. A torn gang is released after `patience` seconds, or never if that
        is zero.
        """
        self._mirror = mirror
        self._submit = submit
        self._stop = stop
        self._wall = wall
        self._clock = clock
        self._shards = shards
        self._failures: queue.SimpleQueue[Failure] = queue.SimpleQueue()
        self._failed_before: dict[tuple[type[Decision], str], int] = {}
        """How often the bind of a task failed in a row, by uid."""
        self._later: list[tuple[float, Failure]] = []
        """Failures that wait until it is time to try again; the task keeps its room as long."""
        self._torn = TornGangs(patience) if patience > 0 else None

    @property
    def cluster(self) -> Cluster:
        return self._mirror.cluster

    def now(self) -> float:
        return self._wall()

    def sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def failed(self, failure: Failure) -> None:
        """A bind or an eviction did not come to pass; from any thread."""
        self._failures.put(failure)

    # -- while another one leads

    def follow(self) -> None:
        """Keep in step, and leave everything alone."""
        self._mirror.sync()
        self.cluster.mark_all_dirty()

    def take_over(self) -> None:
        """From now on it is for us to decide, and to say which objects cannot be used."""
        self._mirror.tell_again()

    # -- news

    def sync(self) -> None:
        self._mirror.sync()
        said = [decision for failure in self._arrived() for decision in self._take_back(failure)]
        if self._torn is not None:
            said += self._torn.release(self.cluster, self._wall(), self._clock())
        if self._shards is not None:
            said += self._shards.refresh(self.cluster)
        if said:
            self.execute(said)
        if self._failed_before:
            self._failed_before = {
                one: times for one, times in self._failed_before.items() if self._open(*one)
            }

    def _open(self, decision: type[Decision], uid: str) -> bool:
        task = self.cluster.tasks.get(uid)
        return task is not None and task.status in _TRIED_AGAIN[decision]

    def _arrived(self) -> Iterator[Failure]:
        now = self._clock()
        while True:
            try:
                failure = self._failures.get_nowait()
            except queue.Empty:
                break
            self._later.append((now + self._pause(failure), failure))
        due = [failure for time, failure in self._later if time <= now]
        self._later = [one for one in self._later if one[0] > now]
        yield from due

    def _pause(self, failure: Failure) -> float:
        """None the first time, then longer and longer: what is refused for good must not be a busy loop."""
        one = type(failure.decision), failure.decision.uid
        if failure.gone or failure.decision.uid not in self.cluster.tasks:
            self._failed_before.pop(one, None)
            return 0.0
        times = self._failed_before[one] = self._failed_before.get(one, 0) + 1
        return 0.0 if times == 1 else min(2.0 ** (times - 2), LONGEST_PAUSE)

    def _take_back(self, failure: Failure) -> list[Decision]:
        """The task is again what it was before the decision, and its pod is told why."""
        decision = failure.decision
        task = self.cluster.tasks.get(decision.uid)
        if isinstance(decision, Evict):
            log.warning("evicting %s failed: %s", decision.key, failure.why)
            if task is not None and (status := after_failed_eviction(task)) is not None:
                task.assumed = None
                self.cluster.move(task, status, task.node)
            return []
        log.warning("binding %s to %s failed: %s", decision.key, decision.node, failure.why)
        if task is None or (status := after_failed_bind(task)) is None:
            return []
        task.assumed = None
        self.cluster.move(task, status, None)
        told = not failure.gone and status is Status.PENDING
        return list(_bind_failed(task, decision, failure.why)) if told else []

    # -- decisions

    def execute(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Evict) and (task := self.cluster.tasks.get(decision.uid)) is not None:
                task.assumed = Status.RELEASING
                if task.status in (Status.RUNNING, Status.BOUND):
                    self.cluster.move(task, Status.RELEASING, task.node)
        if decisions:
            self._submit(list(self._orders(decisions)))

    def _orders(self, decisions: Sequence[Decision]) -> Iterator[Order]:
        uids = dict(_pods(decisions))
        for decision in decisions:
            match decision:
                case Event() if is_noise(self.cluster, decision):
                    continue
                case Event(kind="Pod"):
                    yield Order(decision, uids.get((decision.namespace, decision.name), ""))
                case Event() | PodGroupStatus() | NativeGroupCondition():
                    yield self._of_group(decision)
                case Bind():
                    task = self.cluster.tasks.get(decision.uid)
                    yield Order(decision, created=task.created if task else 0.0)
                case QueueStatus():
                    known = self.cluster.queues.get(decision.name)
                    stands = known.object.status.allocated if known and known.object else ()
                    yield Order(decision, resources=tuple(stands))
                case _:
                    yield Order(decision)

    def _of_group(self, decision: Event | PodGroupStatus | NativeGroupCondition) -> Order:
        job = self.cluster.jobs.get(_job_of(decision))
        if job is None or job.group is None:
            return Order(decision)
        order = Order(decision, job.group.metadata.uid, job.group.status.conditions)
        if job.native is not None:
            order.api_version, order.generation = job.native.api_version, job.native.generation
        return order


def is_noise(cluster: Cluster, event: Event) -> bool:
    """Whether a gang is called unschedulable that is only waiting for its binds (spec 05 9.3, 18.6)."""
    if event.kind == "Pod" or event.reason != names.EVENT_UNSCHEDULABLE or event.type != names.WARNING:
        return False
    job = cluster.jobs.get(_job_of(event))
    return job is not None and job.enough_ready and not job.counts[Status.PENDING] and bool(job.tasks)


def _job_of(decision: Event | PodGroupStatus | NativeGroupCondition) -> JobId:
    kind = {PodGroupStatus: "PodGroup", NativeGroupCondition: KIND}.get(type(decision)) or decision.kind  # type: ignore[union-attr]
    return JobId(kind, decision.namespace, decision.name)


def _pods(decisions: Iterable[Decision]) -> Iterator[tuple[tuple[str, str], str]]:
    for one in decisions:
        if isinstance(one, Bind | Evict | PodCondition):
            yield (one.namespace, one.name), one.uid


def _bind_failed(task: Task, bind: Bind, why: str) -> Iterator[Decision]:
    text = names.BIND_FAILED.format(node=bind.node, error=why)
    task.condition = Condition("False", names.SCHEDULER_ERROR, text)
    yield PodCondition(bind.namespace, bind.name, bind.uid, names.SCHEDULER_ERROR, text)
    yield Event("Pod", bind.namespace, bind.name, names.WARNING, names.EVENT_FAILED_SCHEDULING, text)  # type: ignore[arg-type]
