"""Eviction with manners: use room that is there first, let everybody stay who need not go, hold what was cleared.

Beyond Volcano; off unless an action's arguments turn it on, as the presets do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.engine.eviction.victim_bundles import intact
from stromboli.engine.placement.node_placement import Place
from stromboli.model.status import Status
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task


def _no_duration(text: str) -> str | None:
    seconds = duration(text)
    return None if seconds is not None and seconds >= 0 else "must be a duration such as 5m or 0s"


LONGEST_WISH = 24 * 3600.0
"""How long a PodGroup may ask to be left alone, in seconds, unless its queue grants more."""


@dataclass(frozen=True, slots=True)
class Manners:
    """Arguments that all evicting actions share."""

    fewest_victims: bool = arg(
        "fewestVictims",
        False,
        "Use room that is free or being freed before evicting anybody else, find a legal victim wherever one exists, "
        "and let every victim stay that turns out not to be needed.",
    )
    no_harm: bool = arg(
        "doNoHarm",
        False,
        "Never leave a gang below its minimum unless all of it goes, nor take a queue below its guarantee.",
    )
    hold_for: str = arg(
        "holdFor",
        "0s",
        "How long room that was cleared for a task is held for it, so that nobody else takes it; 0s: not at all.",
        check=_no_duration,
    )

    min_run_time: str = arg(
        "minRunTime",
        "",
        "How long a task runs before it may be a victim; a PodGroup's or else a queue's annotation "
        "`stromboli.sh/min-run-time` overrules it. Empty: neither counts.",
        check=_no_duration,
    )

    @property
    def hold(self) -> float:
        return duration(self.hold_for) or 0.0

    def lets_go(self, session: Session, victim: Task) -> bool:
        """Whether a task has run long enough to be a victim."""
        least = duration(self.min_run_time)
        if least is None or victim.job is None:
            return True
        queue = victim.job.queue
        granted = duration(queue.annotations.get(names.MIN_RUN_TIME, "")) if queue else None
        wished = duration(victim.job.annotations.get(names.MIN_RUN_TIME, ""))
        if wished is not None:
            least = min(wished, LONGEST_WISH if granted is None else granted)
        elif granted is not None:
            least = granted
        began = victim.started if victim.started is not None else victim.scheduled_at
        return least <= 0 or (began is not None and session.now - began >= least)


def welcome(session: Session, task: Task, node: Node) -> bool:
    """Whether a task's queue and every filter would let it in on a node, once what is leaving has left."""
    queue = session.queue_of(task)
    return queue is not None and session.rules.allocatable(queue, task) and session.admits(task, node)


def settle_in(session: Session, trial: Statement, task: Task) -> bool:
    """Promise a task room that is free, or is being freed already, without a further eviction."""
    queue = session.queue_of(task)
    if queue is None or not session.rules.allocatable(queue, task):
        return False
    place = session.place(task)
    return isinstance(place, Place) and trial.pipeline(task, place.node, evicted=not place.now) is None


def spare(session: Session, trial: Statement, whole_gangs: bool) -> None:
    """Let victims of a statement stay where all that was promised fits without their going; last in, first out."""
    groups: dict[object, list[Task]] = {}
    for victim in reversed(trial.evicted()):
        job = victim.job
        together = job is not None and (job.goes_whole or (whole_gangs and not intact(job)))
        groups.setdefault(job if together else victim, []).append(victim)
    for victims in groups.values():
        _try_to_spare(session, trial, victims)


def _try_to_spare(session: Session, trial: Statement, victims: list[Task]) -> None:
    """Let these stay together, if everything promised on their nodes still fits."""
    if not all(_has_room(session, victim) for victim in victims):
        return
    notes = {victim: session.eviction_of(victim) for victim in victims}
    for victim in victims:
        trial.restore(victim, trial.status_before(victim))
    nodes = dict.fromkeys(victim.node for victim in victims if victim.node is not None)
    if not all(_still_fits(session, task, node) for node in nodes for task in _promised(trial, node)):
        for victim in victims:
            trial.evict(victim, notes[victim])


def _has_room(session: Session, victim: Task) -> bool:
    """Whether a node will have so much to spare that a victim could stay; a quick look before the long one."""
    if victim.node is None:
        return False
    future = session.future_idle(victim.node)
    return all(future.get(dim, 0) >= amount for dim, amount in victim.request.items() if amount > 0)


def _promised(trial: Statement, node: Node) -> list[Task]:
    """Tasks that the statement holds for a node."""
    here = (change.task for change in trial.changes() if change.status is Status.PIPELINED)
    return [task for task in dict.fromkeys(here) if task.status is Status.PIPELINED and task.node is node]


def _still_fits(session: Session, task: Task, node: Node) -> bool:
    """Whether a task that is held for a node would still be let in there, by its queue as by the node."""
    nominated = session.is_nominated(task)
    with session.statement() as look:
        look.release(task)
        fits = welcome(session, task, node)
    if nominated:
        session.nominate(task)
    return fits
