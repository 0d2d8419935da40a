"""Clearing a node for a task: victim by victim until it fits, all or nothing, and without doing harm beyond that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.eviction.victim_bundles import Surplus, intact
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import Vector, less_equal, minus, total_of
from stromboli.model.queue import lineage

if TYPE_CHECKING:
    from stromboli.engine.eviction.eviction_options import Manners
    from stromboli.engine.eviction.victim_search import Hunt
    from stromboli.engine.points import Choice
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

Fits = Callable[["Session", "Task", "Node"], bool]


def clear(
    session: Session,
    hunt: Hunt,
    manners: Manners,
    action: str,
    task: Task,
    node: Node,
    choice: Choice,
    fits: Fits,
) -> bool:
    """Evict on one node until the task fits there, and promise it the place."""
    note = EvictionReason(action, task.job.key if task.job else "", choice.by)
    gangs = {victim.job for victim in choice.victims if manners.no_harm and victim.job and intact(victim.job)}
    with session.statement() as there:
        for victim in choice.victims:
            if fits(session, task, node):
                break
            if not _bound_to_others(hunt, task, victim) and (
                not manners.no_harm or _expendable(session, hunt, task, victim)
            ):
                there.evict(victim, note)
        if not fits(session, task, node) or not _nobody_left_behind(hunt, there, task, note):
            return False
        if manners.no_harm and not _harmless(session, hunt, there, task, gangs, note):
            return False
        gone = there.evicted()
        if there.pipeline(task, node, bool(gone)) is None:
            there.keep()
            hunt.lost(gone)
            return True
    return False


def _expendable(session: Session, hunt: Hunt, task: Task, victim: Task) -> bool:
    """Whether a victim's gang can spare it or may go as a whole, and its queue's guarantee holds without it.

    Whom the first tier spares for himself stays, even if that tier names nobody and the next one is asked.
    """
    job, queue = victim.job, session.queue_of(victim)
    if job is None or queue is None:
        return True
    if not hunt.may_go(task, victim):
        return False
    if not guarantee_holds(session, queue, session.queue_of(task), victim.request):
        return False
    return not intact(job) or Surplus(job).take(victim) or _may_go_whole(hunt, task, job)


def _bound_to_others(hunt: Hunt, task: Task, victim: Task) -> bool:
    """Whether a victim may only go with its whole group, of which somebody must stay."""
    job = victim.job
    return job is not None and job.goes_whole and not _may_go_whole(hunt, task, job)


def _nobody_left_behind(hunt: Hunt, there: Statement, task: Task, note: EvictionReason) -> bool:
    """Let the rest of those groups go that are disturbed as a whole or not at all."""
    jobs = dict.fromkeys(victim.job for victim in there.evicted())
    return all(_complete(hunt, there, task, job, note) for job in jobs if job is not None and job.goes_whole)


def _may_go_whole(hunt: Hunt, task: Task, job: Job) -> bool:
    members = hunt.members(job)
    if len(members) != job.allocated_count:
        return False
    if job.goes_whole:
        return hunt.may_all_go(task, members)
    return all(hunt.may_go(task, member) for member in members)


def _harmless(
    session: Session, hunt: Hunt, there: Statement, task: Task, gangs: set[Job], note: EvictionReason
) -> bool:
    """Let gangs that were intact and are no more go as a whole, and see that no queue lost its guarantee."""
    for job in dict.fromkeys(victim.job for victim in there.evicted()):
        if job in gangs and not intact(job) and not _complete(hunt, there, task, job, note):
            return False
    return guarantees_hold(session, there, session.queue_of(task))


def guarantees_hold(session: Session, there: Statement, mine: Queue | None) -> bool:
    """Whether no other queue, nor any above it, was taken below its guarantee."""
    queues = dict.fromkeys(session.queue_of(victim) for victim in there.evicted())
    return all(queue is None or guarantee_holds(session, queue, mine) for queue in queues)


def guarantee_holds(
    session: Session, queue: Queue, mine: Queue | None, without: Vector | None = None
) -> bool:
    """Whether a queue and those above it keep their guarantees, some amount less; what I am below of is no matter."""
    known = session.cluster.queues
    ours = lineage(mine, known) if mine is not None else []
    for above in lineage(queue, known):
        if above.guarantee and above not in ours:
            held = total_of(one.held for one in known.values() if above in lineage(one, known))
            if not less_equal(above.guarantee, minus(held, without or {})):
                return False
    return True


def _complete(hunt: Hunt, there: Statement, task: Task, job: Job, note: EvictionReason) -> bool:
    """Let the rest of a gang go too; false if somebody of it must stay."""
    if not _may_go_whole(hunt, task, job):
        return False
    return all(there.evict(victim, note) is None for victim in hunt.members(job))
