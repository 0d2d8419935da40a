"""The nomination fast path: a sub-group takes the nodes that were cleared for it (spec 02 3.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.engine.placement.node_placement import Place

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import SubJob
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


def place_nominated(session: Session, sub_job: SubJob, tasks: list[Task], root: Domain) -> bool:
    """Put all tasks where they were nominated, or none; a nomination that does not serve is forgotten."""
    domain = session.cluster.hyper_nodes.domain(sub_job.nominated_hyper_node)
    with session.statement() as trial:
        if domain is not None and root.contains(domain) and _place_all(session, trial, tasks, domain):
            session.topology.widen(sub_job, domain)
            tasks.clear()
            trial.keep()
            return True
    forget_nomination(session, sub_job, tasks)
    return False


def forget_nomination(session: Session, sub_job: SubJob, tasks: Iterable[Task]) -> None:
    """Room that was made does not serve: other room is looked for at once, and in later cycles."""
    _clear(session, sub_job, "nominated_hyper_node")
    for task in tasks:
        _clear(session, task, "nominated")


def _clear(session: Session, target: SubJob | Task, field: str) -> None:
    """Clear a field now, and also for later cycles, should the statement around be taken back."""
    if getattr(target, field):
        session.journal.update(target, field, "")
        session.deferred.write(target, field, "")


def _place_all(session: Session, trial: Statement, tasks: list[Task], domain: Domain) -> bool:
    inside = set(domain.rows.tolist())
    for task in reversed(tasks):
        node = session.cluster.nodes.get(task.nominated) if task.nominated else None
        queue = session.queue_of(task)
        if node is None or node.row not in inside or queue is None:
            return False
        if task.gates or not session.rules.allocatable(queue, task):
            return False
        place = session.place(task, session.only(node))
        if not isinstance(place, Place) or trial.assign(task, place) is not None:
            return False
    return bool(tasks)
