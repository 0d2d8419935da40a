"""How evictions are committed: without victims that are not needed, and with the freed capacity reserved."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.eviction.node_clearing import would_admit
from stromboli.engine.eviction.victim_bundles import is_complete
from stromboli.model.amounts import Amounts, minus, shift, total_of
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.eviction.eviction_options import EvictionOptions
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

EVICTED = "evicted"
"""The key of the cluster's memory for the losses of jobs, by key, and of queues, by their name and the taker's."""
FIRST_WAIT, MAX_WAIT = 300.0, 3600.0
"""Seconds for which a job that lost pods does not evict, unless `holdFor` is set, and after many losses."""
ATTEMPTS = "attempts"
"""The key of the cluster's memory for the last time that pods were reclaimed for each job, by its key."""
TIMES_IN_A_ROW = 2
"""How often pods are reclaimed for a job that gets none more by it, until it waits."""


class Loss(NamedTuple):
    """Pods were evicted: when that was, and for how many seconds it counts."""

    time: float
    seconds: float

    @property
    def until(self) -> float:
        return self.time + self.seconds


class EvictionAttempt(NamedTuple):
    """The last time that pods were reclaimed for a job, how many it had, and how often in a row it got none more."""

    time: float
    pods: int
    tries: int

    @property
    def until(self) -> float:
        """The time before which the job may not try again, if this was in vain."""
        return self.time + min(FIRST_WAIT * 2.0 ** (min(self.tries, 9) - TIMES_IN_A_ROW), MAX_WAIT)


def commit_evictions(session: Session, trial: Statement, options: EvictionOptions, beneficiary: Job) -> bool:
    """Commit a statement, less the evictions that are not needed, and reserve the capacity that was freed.

    False, and nothing committed, for a job that needs no eviction: it is left to allocate. Pipelined again in every
    cycle, it would never be bound. False also for evictions that queues would only repeat in turn.
    """
    if options.fewest_victims:
        restore_unneeded_victims(session, trial, options.no_harm)
    evicted = trial.evicted()
    pipelined = [change.task for change in trial.changes() if change.status is Status.PIPELINED]
    # If any pod is evicted, capacity that was free is reserved too: without it the eviction would not help.
    cleared = [task for task in pipelined if evicted or session.journal.is_nominated(task)]
    if not cleared and options.fewest_victims:
        return False
    if options.respect_shares and not respects_shares(session, evicted, pipelined, options, beneficiary):
        return False
    for task in cleared:
        session.reserve(task, options.hold_seconds)
    losers = {victim.job for victim in evicted if victim.job is not None and victim.job is not beneficiary}
    remember_losers(session, losers, options, beneficiary)
    if any(loser.queue is not beneficiary.queue for loser in losers):
        _remember_attempt(session, beneficiary)
    trial.commit()
    return True


def respects_shares(
    session: Session, evicted: list[Task], pipelined: list[Task], options: EvictionOptions, beneficiary: Job
) -> bool:
    """Whether evictions that were made as a trial leave the queue of a job within its share, or bring others closer.

    What is taken from lower priorities does not count where those cannot take it back.
    """
    losses: dict[Queue, Amounts] = {}
    gained = total_of(task.request for task in dict.fromkeys(pipelined) if task.status is Status.PIPELINED)
    yields = False
    for victim in evicted:
        queue = session.queue_of(victim)
        if queue is beneficiary.queue:
            gained = minus(gained, victim.request)
        elif queue is not None and victim.job is not None:
            shift(losses.setdefault(queue, {}), victim.request)
            yields = yields or not options.respect_priority or victim.job.priority >= beneficiary.priority
    if beneficiary.queue is None or not yields:
        return True
    return session.rules.brings_closer_to_shares(beneficiary.queue, gained, losses)


def lost_pods_lately(session: Session, job: Job, options: EvictionOptions) -> bool:
    """Whether a job lost pods so lately that it may not evict: else it and its evictor could take turns forever."""
    return no_eviction_before(session, job, options) is not None


def no_eviction_before(session: Session, job: Job, options: EvictionOptions) -> float | None:
    """The time before which a job may not evict because it lost pods itself; none if it may.

    Without `holdFor` a loss counts from the next cycle on.
    """
    loss = session.cluster.memory.get(EVICTED, {}).get(job.key)
    if loss is None or (loss.time == session.reads.time and options.hold_seconds <= 0):
        return None
    return None if session.has_come(loss.until) else loss.until


def took_lately(session: Session, holder: Job, job: Job, options: EvictionOptions) -> bool:
    """Whether a holder's queue reclaimed from that of a job so lately that the job may not take from it.

    Only with `holdFor`, and not for a job of a higher priority.
    """
    losses = session.cluster.memory.get(EVICTED)
    if not losses or job.priority > holder.priority or job.queue is None or holder.queue is None:
        return False
    loss = losses.get((job.queue.name, holder.queue.name))
    return loss is not None and options.hold_seconds > 0 and not session.has_come(loss.until)


def may_reclaim_from(session: Session, task: Task, job: Job, options: EvictionOptions) -> bool:
    """Whether a task may take from a job of another queue."""
    if task.job is None or job.queue is None or job.queue is task.job.queue:
        return False
    return job.queue.reclaimable and not took_lately(session, job, task.job, options)


def may_reclaim_from_queue(session: Session, task: Task, queue: Queue | None) -> bool | None:
    """Whether a task may take from all jobs of a queue, or from none; None: that differs by job."""
    if task.job is None or queue is None or task.job.queue is None or queue is task.job.queue:
        return None
    if not queue.reclaimable:
        return False
    losses = session.cluster.memory.get(EVICTED, {})
    return None if (task.job.queue.name, queue.name) in losses else True


def queues_that_took(session: Session, job: Job) -> frozenset[Hashable]:
    """The names of queues for which pods of a job's queue were reclaimed, as far as that is remembered."""
    losses = session.cluster.memory.get(EVICTED, {})
    name = job.queue.name if job.queue is not None else None
    return frozenset(key[1] for key in losses if isinstance(key, tuple) and key[0] == name)


def no_attempt_before(session: Session, job: Job) -> float | None:
    """The time before which no more pods are reclaimed for a job, as others took the capacity each time.

    Without `holdFor`, victims that return can take back what was reclaimed, in every cycle again.
    """
    last = session.cluster.memory.get(ATTEMPTS, {}).get(job.key)
    if (
        last is None
        or last.tries < TIMES_IN_A_ROW
        or last.time == session.reads.time
        or job.ready_count > last.pods
    ):
        return None
    return None if session.has_come(last.until) else last.until


def _remember_attempt(session: Session, job: Job) -> None:
    memory, now = session.cluster.memory, session.now
    before: dict[str, EvictionAttempt] = memory.get(ATTEMPTS) or {}
    current = {key: attempt for key, attempt in before.items() if 2 * attempt.until - attempt.time > now}
    last, tries = current.get(job.key), 1
    if last is not None and job.ready_count <= last.pods:
        tries = last.tries + (last.time < now)
    current[job.key] = EvictionAttempt(now, job.ready_count, tries)
    session.restore_if_lost(memory, ATTEMPTS, memory.get(ATTEMPTS))
    memory[ATTEMPTS] = current


def remember_losers(
    session: Session, jobs: set[Job], options: EvictionOptions, beneficiary: Job | None = None
) -> None:
    """Remember which jobs lost pods, and which queues lost them to the queue of the beneficiary.

    A job that loses pods again soon after its wait waits twice as long, and so does a queue whose turn it was.
    """
    if not jobs:
        return
    memory, now = session.cluster.memory, session.now
    before: dict[Hashable, Loss] = memory.get(EVICTED) or {}
    first = options.hold_seconds or FIRST_WAIT
    current = {key: loss for key, loss in before.items() if loss.time + 2 * loss.seconds > now}
    for job in jobs:
        last = current.get(job.key)
        if last is None:
            seconds = first
        elif last.time < now:
            seconds = max(first, min(2 * last.seconds, MAX_WAIT))
        else:
            seconds = last.seconds
        current[job.key] = Loss(now, seconds)
        loser, taker = job.queue, beneficiary.queue if beneficiary is not None else None
        if loser is not None and taker is not None and loser is not taker:
            earlier = current.get((taker.name, loser.name))
            seconds = first if earlier is None else min(2 * earlier.seconds, MAX_WAIT)
            current[loser.name, taker.name] = Loss(now, max(first, seconds))
    session.restore_if_lost(memory, EVICTED, memory.get(EVICTED))
    memory[EVICTED] = current


def restore_unneeded_victims(session: Session, trial: Statement, whole_gangs: bool) -> None:
    """Restore victims of a statement without which everything pipelined still fits; the last evicted first.

    A gang that is only evicted as a whole is restored as a whole.
    """
    groups: dict[object, list[Task]] = {}
    for victim in reversed(trial.evicted()):
        job = victim.job
        together = job is not None and (job.disrupted_as_group or (whole_gangs and not is_complete(job)))
        groups.setdefault(job if together else victim, []).append(victim)
    for victims in groups.values():
        _restore_if_unneeded(session, trial, victims)


def _restore_if_unneeded(session: Session, trial: Statement, victims: list[Task]) -> None:
    if not all(_may_fit(session, victim) for victim in victims):
        return
    with session.statement() as attempt:
        for victim in victims:
            trial.restore(victim)
        nodes = dict.fromkeys(victim.node for victim in victims if victim.node is not None)
        if all(_still_fits(session, task, node) for node in nodes for task in _pipelined_to(trial, node)):
            attempt.keep()


def _may_fit(session: Session, victim: Task) -> bool:
    """Whether a victim's request will be free on its node: a quick check before the full one."""
    if victim.node is None:
        return False
    future = session.future_idle(victim.node)
    return all(future.get(dim, 0) >= amount for dim, amount in victim.request.items() if amount > 0)


def _pipelined_to(trial: Statement, node: Node) -> list[Task]:
    """The tasks that a statement pipelined to a node."""
    pipelined = (change.task for change in trial.changes() if change.status is Status.PIPELINED)
    return [
        task for task in dict.fromkeys(pipelined) if task.status is Status.PIPELINED and task.node is node
    ]


def _still_fits(session: Session, task: Task, node: Node) -> bool:
    """Whether a pipelined task would still be admitted by its queue and by the node."""
    with session.statement() as attempt:
        attempt.release(task)
        return would_admit(session, task, node)
