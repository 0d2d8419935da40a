"""Fewest victims: use room that is there before anybody goes, and let everybody stay who need not go.

Beyond Volcano; off unless an action's argument `fewestVictims` turns it on, as the presets do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.arguments import arg
from stromboli.engine.placement import Place
from stromboli.model.cluster import Change
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.nodes import Node
    from stromboli.model.task import Task


def fewest_victims() -> bool:
    """The argument that evicting actions share."""
    wanted: bool = arg(
        "fewestVictims",
        False,
        "Use room that is free or being freed before evicting anybody else, find a legal victim wherever one exists, "
        "and let every victim stay that turns out not to be needed.",
    )
    return wanted


def settle_in(session: Session, trial: Statement, task: Task) -> bool:
    """Promise a task room that is free, or is being freed already, without a further eviction."""
    place = session.place(task)
    return isinstance(place, Place) and trial.pipeline(task, place.node, evicted=not place.now) is None


def spare(session: Session, trial: Statement) -> None:
    """Let victims of a statement stay where all that was promised fits without their going; last in, first out."""
    for change in reversed(trial.changes()):
        victim = change.task
        if change.status is Status.RELEASING and victim.status is Status.RELEASING:
            _try_to_spare(session, trial, change)


def _try_to_spare(session: Session, trial: Statement, change: Change) -> None:
    victim, node = change.task, change.node
    if node is None:
        return
    future = session.future_idle(node)
    if any(future.get(dim, 0) < amount for dim, amount in victim.request.items() if amount > 0):
        return
    note = session.eviction_of(victim)
    if trial.restore(victim, change.old_status) is not None:
        return
    if not all(_still_fits(session, task, node) for task in _promised(trial, node)):
        trial.evict(victim, note)


def _promised(trial: Statement, node: Node) -> list[Task]:
    """Tasks that the statement holds for a node."""
    here = (change.task for change in trial.changes() if change.status is Status.PIPELINED)
    return [task for task in dict.fromkeys(here) if task.status is Status.PIPELINED and task.node is node]


def _still_fits(session: Session, task: Task, node: Node) -> bool:
    """Whether a task that is held for a node would still be let in there."""
    nominated = session.is_nominated(task)
    with session.statement() as look:
        look.release(task)
        fits = session.admits(task, node)
    if nominated:
        session.nominate(task)
    return fits
