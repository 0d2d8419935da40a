"""The limit of a queue that holds a job, and what the queue uses of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.explanation.diagnosis import (
    Diagnosis,
    FirstWaiting,
    Holder,
    Shortage,
    shortage,
    waiting_count,
)
from stromboli.engine.explanation.node_gates import LESS_OR_NODES, allocated_at_once, least_request
from stromboli.engine.explanation.quantities import amounts_text, resources_text
from stromboli.model.amounts import Amounts, Vector, minus, plus
from stromboli.model.dimensions import PODS
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.plugin import QueueLimit
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

_OVERUSED, _OVERUSED_CODE = "Queue overused", "QueueOverused"
UNNAMED_REMEDY = "raise its weight, deserved or capability"


class Hit(NamedTuple):
    """A limit that a request would exceed, in some resources."""

    limit: QueueLimit
    asked: Vector
    held: Vector
    summary: str
    """Which resources are short by which limit."""
    remedy: str
    """How the queue could get more."""
    can_be_raised: bool = True
    """Whether the limit can be raised; if not, only a larger cluster helps."""

    def text(self, session: Session, queue: Queue) -> str:
        dims, owner, name = session.cluster.dims, self.limit.queue, self.limit.name
        most = amounts_text(dims, {dim: self.limit.most[dim] for dim in self.asked})
        held = amounts_text(dims, {dim: self.held.get(dim, 0) for dim in self.asked})
        limit_name = f"its {name}" if owner is queue else f'the {name} of "{owner.name}"'
        return f"{limit_name} is {most}, {held} is in use"

    def never(self, session: Session, asked: Vector) -> str:
        """The message that the limit is too low for the request even if all other jobs end, with the remedy."""
        dims, remedy = session.cluster.dims, self.remedy
        most = amounts_text(dims, {dim: self.limit.most[dim] for dim in asked})
        return (
            f"it requests {amounts_text(dims, asked)} and the {self.limit.name} is {most}, so it can never start: "
            f"{f'request less or {remedy}' if self.can_be_raised else remedy}"
        )

    def shortages(self, session: Session) -> tuple[Shortage, ...]:
        dims, most = session.cluster.dims, self.limit.most
        return tuple(
            shortage(dims, dim, amount, most[dim] - self.held.get(dim, 0))
            for dim, amount in self.asked.items()
        )

    def holders(self, session: Session) -> tuple[Holder, ...]:
        names = session.cluster.dims.names
        return tuple(
            Holder(self.limit.queue.name, names[dim], int(self.held.get(dim, 0))) for dim in self.asked
        )


def limit_hit(session: Session, queue: Queue, asked: Vector) -> Hit | None:
    """The first limit of a queue, or of one above it, that leaves no capacity for a request."""
    held_then = session.attempts.uncommitted.held
    promised = minus(held_then[queue], queue.held) if queue in held_then else {}
    for limit in session.rules.queue_limits(queue):
        held = plus(limit.held, promised)
        short: Amounts = {
            dim: amount
            for dim, amount in asked.items()
            if amount > 0 and dim != PODS and held.get(dim, 0) + amount > limit.most.get(dim, float("inf"))
        }
        if short:
            return _hit(session, limit, short, held)
    return None


def _hit(session: Session, limit: QueueLimit, short: Vector, held: Vector) -> Hit:
    resources = resources_text(session.cluster.dims, short)
    summary = f'the {limit.name} of queue "{limit.queue.name}" has too little {resources} left'
    total = session.total
    highest = total if limit.raised_to is None else limit.raised_to
    listed = all(dim in total for dim in short)  # nodes do not list devices that are claimed
    if listed and all(limit.most[dim] >= min(highest.get(dim, 0), total[dim]) for dim in short):
        summary = f"{summary}, and cannot be raised in this cluster"
        return Hit(limit, short, held, summary, LESS_OR_NODES, can_be_raised=False)
    return Hit(limit, short, held, summary, limit.remedy)


class QueueAnswer(NamedTuple):
    """The answers of the rules to another task of some shape in a queue."""

    overused: bool
    allocatable: bool
    hit: Hit | None


class QueueLimitGate:
    """Limits of queues that hold jobs; the rules are asked once for tasks of one shape in one queue."""

    def __init__(self, session: Session, first_waiting: FirstWaiting):
        self._session = session
        self._first_waiting = first_waiting
        self._answers: dict[Hashable, QueueAnswer] = {}

    def of_job(self, job: Job) -> Diagnosis | None:
        """The limit of its queue that holds a job, if any."""
        session, queue, task = self._session, job.queue, self._first_waiting(job)
        if queue is None or task is None:
            return None
        overused, allocatable, hit = self._answer(queue, task)
        if session.needs.is_barred(job) and session.needs.exceeds_capability(
            job
        ):  # the shares count nothing for it
            message = f'queue "{queue.name}" may not hold the pods that must start together'
            hit = limit_hit(session, queue, least_request(job)) or hit
        elif overused:
            message = f'queue "{queue.name}" has used up its share'
        elif not allocatable or (hit and queue in session.attempts.uncommitted.held):
            message = f'queue "{queue.name}" has no capacity left for a pod of this size'
        elif placed := allocated_at_once(session, job):
            message = f'queue "{queue.name}" has capacity for {placed} of {waiting_count(job)} pods'
            hit = limit_hit(session, queue, plus(job.pending, _claimed_by_gang(session, job)))
        else:
            return None
        never = hit.never(session, most) if hit and (most := _never_enough(session, job, task, hit)) else ""
        return _diagnosis(session, job, queue, hit, message, never)

    def _answer(self, queue: Queue, task: Task) -> QueueAnswer:
        session, job = self._session, task.job
        alone = (
            task if task.claims else job if job is not None and (job.reserved or job.has_started) else None
        )
        key = (queue, task.shape, alone)
        if key not in self._answers:
            rules, asked = session.rules, plus(task.request, session.needs.claimed(task))
            hit = limit_hit(session, queue, asked)
            self._answers[key] = QueueAnswer(rules.overused(queue), rules.allocatable(queue, task), hit)
        return self._answers[key]


def _diagnosis(
    session: Session, job: Job, queue: Queue, hit: Hit | None, message: str, never: str
) -> Diagnosis:
    if hit is None:
        summary = f'queue "{queue.name}" has used up its share'
        remedy = f"wait for its jobs to end or {UNNAMED_REMEDY}"
    else:
        summary = hit.summary
        joint = " or" if hit.can_be_raised else ","
        remedy = never or f"wait for jobs to end{joint} {hit.remedy}"

    def measure() -> Diagnosis:
        asked = amounts_text(session.cluster.dims, job.pending)
        held = amounts_text(session.cluster.dims, session.attempts.uncommitted.held.get(queue, queue.held))
        raised = hit.remedy if hit else UNNAMED_REMEDY
        next_step = f"wait for its jobs to end or {raised}" if held else raised
        return Diagnosis(
            "queue-limits",
            _OVERUSED,
            f"{message}: {hit.text(session, queue)}" if hit else message,
            never or f"it requests {asked} and the queue holds {held or 'nothing'}: {next_step}",
            shortages=hit.shortages(session) if hit else (),
            holders=hit.holders(session) if hit else (),
            code=_OVERUSED_CODE,
        )

    return Diagnosis("queue-limits", _OVERUSED, summary, remedy, code=_OVERUSED_CODE, measure=measure)


def _claimed_by_gang(session: Session, job: Job) -> Amounts:
    """What the devices of pending pods count against limits of queues."""
    return session.needs.claimed(*job.by_status[Status.PENDING])


def _never_enough(session: Session, job: Job, task: Task, hit: Hit) -> Amounts:
    """What a job requests beyond a limit that stays the same when other jobs end."""
    if hit.limit.raised_to is not None:
        return {}
    alone = plus(task.request, session.needs.claimed(task))
    least = least_request(job)
    if job.minimum >= len(job.tasks):
        least = plus(least, _claimed_by_gang(session, job))
    asked = {dim: max(alone.get(dim, 0), least.get(dim, 0)) for dim in hit.asked}
    return {dim: amount for dim, amount in asked.items() if amount > hit.limit.most[dim]}
