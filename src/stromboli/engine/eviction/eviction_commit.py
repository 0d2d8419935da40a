"""How evictions are committed: without victims that are not needed, and with the cleared room reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.eviction.node_clearing import would_admit
from stromboli.engine.eviction.victim_bundles import is_complete
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.eviction.eviction_options import EvictionOptions
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task

EVICTED = "evicted"
"""The key of the cluster's memory under which it is kept which jobs lost pods lately, and until when that counts."""


def commit_evictions(session: Session, trial: Statement, options: EvictionOptions) -> bool:
    """Commit a statement, less the evictions that are not needed, and reserve the room that was cleared.

    False, and nothing committed, for a job that needs no eviction: it is left to allocate. Pipelined again in every
    cycle, it would never be bound.
    """
    if options.fewest_victims:
        restore_unneeded_victims(session, trial, options.no_harm)
    evicted = trial.evicted()
    pipelined = [change.task for change in trial.changes() if change.status is Status.PIPELINED]
    # If any pod is evicted, room that was free is reserved too: without it the eviction was in vain.
    cleared = [task for task in pipelined if evicted or session.is_nominated(task)]
    if not cleared and options.fewest_victims:
        return False
    for task in cleared:
        session.reserve(task, options.hold_seconds)
    remember_losers(session, {victim.job for victim in evicted if victim.job is not None}, options)
    trial.commit()
    return True


def lost_pods_lately(session: Session, job: Job, options: EvictionOptions) -> bool:
    """Whether a job lost pods so lately that it may not evict: else it and its evictor could take turns forever."""
    until: float = session.cluster.memory.get(EVICTED, {}).get(job.key, 0.0)
    return options.hold_seconds > 0 and not session.has_come(until)


def remember_losers(session: Session, jobs: set[Job], options: EvictionOptions) -> None:
    """Remember which jobs lost pods, for as long as the room that they left is reserved."""
    if options.hold_seconds > 0:
        memory = session.cluster.memory
        before = memory.get(EVICTED)
        current = {key: until for key, until in (before or {}).items() if until > session.now}
        session.restore_if_lost(memory, EVICTED, before)
        memory[EVICTED] = current | {job.key: session.now + options.hold_seconds for job in jobs}


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
