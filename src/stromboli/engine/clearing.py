"""Clearing a node for a task: victim by victim until it fits, all or nothing, and without doing harm beyond that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.transaction import EvictionNote
from stromboli.model.amounts import less_equal, plus

if TYPE_CHECKING:
    from stromboli.engine.manners import Manners
    from stromboli.engine.points import Choice
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.engine.victims import Hunt
    from stromboli.model.job import Job
    from stromboli.model.nodes import Node
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
    note = EvictionNote(action, task.job.key if task.job else "", choice.by)
    with session.statement() as there:
        victims = iter(choice.victims)
        while not (enough := fits(session, task, node)) and (victim := next(victims, None)) is not None:
            there.evict(victim, note)
        if not enough or (manners.no_harm and not _harmless(session, hunt, there, task, note)):
            return False
        gone = there.evicted()
        if there.pipeline(task, node, bool(gone)) is None:
            there.keep()
            hunt.lost(gone)
            return True
    return False


def _harmless(session: Session, hunt: Hunt, there: Statement, task: Task, note: EvictionNote) -> bool:
    """Let gangs that would be broken go as a whole, if they may, and see that no queue loses its guarantee."""
    for job in dict.fromkeys(victim.job for victim in there.evicted()):
        if job is not None and not _complete(hunt, there, task, job, note):
            return False
    mine = session.queue_of(task)
    queues = dict.fromkeys(session.queue_of(victim) for victim in there.evicted())
    return all(
        queue is mine or queue is None or less_equal(queue.guarantee, plus(queue.allocated, queue.pipelined))
        for queue in queues
    )


def _complete(hunt: Hunt, there: Statement, task: Task, job: Job, note: EvictionNote) -> bool:
    """If a gang fell below its minimum, let the rest of it go too; false if somebody of it must stay."""
    lost = sum(victim.job is job for victim in there.evicted())
    if job.ready_count >= job.minimum or job.ready_count + lost < job.minimum:
        return True
    rest = hunt.members(job)
    if len(rest) < job.allocated_count or not all(hunt.may_go(task, victim) for victim in rest):
        return False
    return all(there.evict(victim, note) is None for victim in rest)
