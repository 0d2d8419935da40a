"""The nomination fast path: a sub-group takes the nodes that were cleared for it (spec 02 3.6)."""

from __future__ import annotations

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
            session.widen(sub_job, domain)
            tasks.clear()
            trial.keep()
            return True
    session.update(sub_job, "nominated_hyper_node", "", lasting=True)
    for task in tasks:
        if task.nominated:
            session.update(task, "nominated", "", lasting=True)
    return False


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
