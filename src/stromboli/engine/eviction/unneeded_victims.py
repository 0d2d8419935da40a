"""Victims that turn out not to be needed stay: all that was promised must still fit without their eviction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.eviction.node_clearing import would_admit
from stromboli.engine.eviction.victim_bundles import is_complete
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task


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
            trial.restore(victim, trial.status_before(victim))
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
