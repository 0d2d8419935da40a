"""Place the tasks of a sub-group in a domain: on their nominated nodes, else one task after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.pending_tasks import worth_going_on
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.topology.topology_limits import requested_topology
from stromboli.model.remedy import Why

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import SubJob
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


def place_tasks(
    session: Session, trial: Statement, sub_job: SubJob, tasks: list[Task], domain: Domain
) -> bool:
    """Place tasks one after the other until the sub-group is ready; return whether it is ready or pipelined."""
    in_topology = requested_topology(sub_job) is not None
    while tasks:
        task = tasks.pop()
        place = find_place(session, sub_job, task, domain)
        if place is None:
            continue
        if isinstance(place, Verdict):
            session.explain(task, place)
            if worth_going_on(session, sub_job):
                continue
            break
        if trial.assign(task, place) is None:
            if in_topology:
                session.topology.follow(sub_job, place.node)
            if session.sub_job_ready(sub_job):
                break
    session.topology.stop_following(sub_job)
    return session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)


def find_place(session: Session, sub_job: SubJob, task: Task, domain: Domain) -> Place | Verdict | None:
    """The place for a task in a domain, or why it has none; none if its queue, a gate or its role forbids it."""
    return _find_node(session, task, domain) if _may_be_placed(session, sub_job, task) else None


def _may_be_placed(session: Session, sub_job: SubJob, task: Task) -> bool:
    queue = sub_job.job.queue
    if queue is None or not session.rules.allocatable(queue, task):
        return False
    if task.gates:
        if _may_lift_gate(session, task):
            session.journal.lift_gate(task)
        return False
    if task.role and task.role in session.attempts.failed_roles(sub_job):
        text, title = (
            template.format(task=task.name, role=task.role)
            for template in (names.ROLE_ALREADY_FAILED, names.ROLE_ALREADY_FAILED_TITLE)
        )
        session.explain(task, Verdict(why=Why(text, code="RoleAlreadyFailed", title=title)))
        return False
    return True


def _may_lift_gate(session: Session, task: Task) -> bool:
    """Whether a task has no gate but that of queue admission, and requests it (spec 05 6.5)."""
    gate = names.QUEUE_ALLOCATION_GATE
    return (
        names.QUEUE_ADMISSION in session.features
        and task.gates == (gate,)
        and task.annotations.get(gate) == "true"
    )


def _find_node(session: Session, task: Task, domain: Domain) -> Place | Verdict:
    """The nominated node, or the node with capacity reserved for the task, if it serves; else the best."""
    cluster = session.cluster
    node = cluster.nodes.get(task.nominated) if task.nominated else None
    if node is None and (own := cluster.reservations.own_reservation(task)) is not None:
        node = cluster.columns.nodes[own.row]
    if node is not None and node.row >= 0:
        place = session.place(task, session.only(node), domain=domain)
        if isinstance(place, Place):
            return place
    return session.place(task, domain=domain)


# -- the nomination fast path: a sub-group takes the nodes that were cleared for it (spec 02 3.6)


def place_nominated(session: Session, sub_job: SubJob, tasks: list[Task], root: Domain) -> bool:
    """Place all tasks on their nominated nodes, or none; a nomination that does not serve is cleared."""
    domain = session.cluster.hyper_nodes.domain(sub_job.nominated_hyper_node)
    with session.statement() as trial:
        if (
            domain is not None
            and root.contains(domain)
            and _place_all_nominated(session, trial, tasks, domain)
        ):
            session.topology.widen(sub_job, domain)
            tasks.clear()
            trial.keep()
            return True
    forget_nomination(session, sub_job, tasks)
    return False


def forget_nomination(session: Session, sub_job: SubJob, tasks: Iterable[Task]) -> None:
    """Clear a nomination that does not serve: other nodes are tried at once, and in later cycles."""
    _clear(session, sub_job, "nominated_hyper_node")
    for task in tasks:
        _clear(session, task, "nominated")


def _clear(session: Session, target: SubJob | Task, field: str) -> None:
    """Clear a field now, and also for later cycles if the enclosing statement is undone."""
    if getattr(target, field):
        session.journal.update(target, field, "")
        session.journal.deferred.write(target, field, "")


def _place_all_nominated(session: Session, trial: Statement, tasks: list[Task], domain: Domain) -> bool:
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
