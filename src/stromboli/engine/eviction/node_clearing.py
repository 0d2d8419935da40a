"""Clearing a node for a task: evict one victim after the other until the task fits, all or nothing.

With `doNoHarm`, no gang is left below its minimum unless all of it is evicted, and no queue falls below its guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.engine.eviction.eviction_domains import domain_text
from stromboli.engine.eviction.victim_bundles import Surplus, is_complete
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import less_equal, plus, total_of

if TYPE_CHECKING:
    from stromboli.engine.eviction.victim_selection import VictimSelection
    from stromboli.engine.points import Choice
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


def would_admit(session: Session, task: Task, node: Node) -> bool:
    """Whether a task's queue and every filter admit it to a node, once what is leaving has left."""
    queue = session.queue_of(task)
    return queue is not None and session.rules.allocatable(queue, task) and session.admits(task, node)


def has_enough(session: Session, task: Task, node: Node, victims: Iterable[Task] = ()) -> bool:
    """Whether what a node will have free, together with what victims hold there, is enough for a task."""
    future = session.future_idle(node, task)
    return less_equal(task.request, plus(future, total_of(victim.request for victim in victims)))


def clear_first(
    search: VictimSelection,
    task: Task,
    nodes: Iterable[Node],
    within: Domain | None,
    by_amounts: bool = False,
) -> bool:
    """Evict on the first of these nodes to which the task is then pipelined; whether there is one."""
    for node in nodes:
        choice = search.choose(task, node)
        if choice is None or not has_enough(search.session, task, node, choice.victims):
            continue
        if clear_node(search, task, node, choice, within, by_amounts):
            return True
    return False


def clear_node(
    search: VictimSelection,
    task: Task,
    node: Node,
    choice: Choice,
    within: Domain | None = None,
    by_amounts: bool = False,
) -> bool:
    """Evict chosen victims on a node until the task fits there, and pipeline the task to it.

    `within` is the domain in which the task's gang is to be placed, if it must keep to one. With `by_amounts`, filters
    and limits of queues are not asked again after an eviction, unless the task needs devices or the like.
    """
    session, no_harm = search.session, search.options.no_harm
    holds_more = bool(session.cluster.ledgers_at(task.shape, node))
    fits = has_enough if by_amounts and not holds_more else would_admit
    beneficiary, where = task.job.key if task.job else "", domain_text(session, within)
    reason = EvictionReason(session.action, beneficiary, choice.by, where)
    jobs = {victim.job for victim in choice.victims if victim.job is not None}
    complete = {job for job in jobs if is_complete(job)} if no_harm else set()
    with session.statement() as trial:
        enough = fits(session, task, node)
        for victim in choice.victims:
            if enough:
                break
            if (
                _may_leave_group(search, task, victim)
                and (not no_harm or _is_harmless_victim(search, task, victim))
                and trial.evict(victim, reason) is None
            ):
                enough = fits(session, task, node)
        if enough and holds_more:
            restore_spared(session, trial, task, node)
        if not enough or not _evict_whole_gangs(search, trial, task, reason, complete):
            return False
        if no_harm and not search.guarantees.hold(trial, session.queue_of(task)):
            return False
        evicted = trial.evicted()
        if trial.pipeline(task, node, bool(evicted)) is None:
            trial.keep()
            search.note_evicted(evicted)
            return True
    return False


def restore_spared(session: Session, trial: Statement, task: Task, node: Node) -> None:
    """Restore victims that the task does not need to be admitted to the node, those of the first choice last."""
    for victim in reversed(trial.evicted()):
        with session.statement() as attempt:
            trial.restore(victim)
            if would_admit(session, task, node):
                attempt.keep()


def _is_harmless_victim(search: VictimSelection, task: Task, victim: Task) -> bool:
    """Whether a victim's gang can spare it or may be evicted as a whole, and its queue keeps its guarantee.

    The plugins of the first tier must allow the victim by itself, even where a later tier chose it.
    """
    session, job = search.session, victim.job
    queue = session.queue_of(victim)
    if job is None or queue is None:
        return True
    if not search.may_evict(task, victim):
        return False
    if not search.guarantees.hold_without(queue, session.queue_of(task), victim.request):
        return False
    return not is_complete(job) or Surplus(job).take(victim) or _may_evict_whole(search, task, job)


def _may_leave_group(search: VictimSelection, task: Task, victim: Task) -> bool:
    """Not if its group may only be evicted as a whole and some member of it must stay."""
    job = victim.job
    return job is None or not job.disrupted_as_group or _may_evict_whole(search, task, job)


def _evict_whole_gangs(
    search: VictimSelection, trial: Statement, task: Task, reason: EvictionReason, complete: set[Job]
) -> bool:
    """Evict the other members of groups that are evicted as a whole, and of gangs that are no longer complete.

    False if some member must stay.
    """
    for job in dict.fromkeys(victim.job for victim in trial.evicted()):
        if job is not None and (job.disrupted_as_group or (job in complete and not is_complete(job))):
            if not _may_evict_whole(search, task, job):
                return False
            if not all(trial.evict(victim, reason) is None for victim in search.members(job)):
                return False
    return True


def _may_evict_whole(search: VictimSelection, task: Task, job: Job) -> bool:
    members = search.members(job)
    if len(members) != job.allocated_count or not search.may_lose_all(job):
        return False
    if job.disrupted_as_group:
        return search.may_evict_together(task, members)
    return all(search.may_evict(task, member) for member in members)
