"""A plan of moves with which a gang fits, and its execution.

The moved tasks are evicted, capacity is reserved for all, and each moved job records the time of the move.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.go_scalars import rfc3339
from stromboli.engine.eviction.eviction_commit import remember_losers
from stromboli.engine.eviction.eviction_domains import domain_text, nominate_hyper_nodes
from stromboli.engine.transaction import EvictionReason
from stromboli.model.reservations import Reservation, RoleOwner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.engine.consolidation.consolidation_options import ConsolidationOptions
    from stromboli.engine.consolidation.movable_tasks import Cost
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


class Move(NamedTuple):
    """A task that starts again elsewhere."""

    task: Task
    origin: Node
    destination: Node


@dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """Moves with which a gang fits; none if it fits as it is."""

    job: Job
    domain: Domain
    moves: tuple[Move, ...]
    placements: tuple[tuple[Task, Node], ...]
    """The tasks of the gang that are placed, in order."""
    domains: Mapping[SubJob, Domain]
    """The domain of each sub-group."""
    cost: Cost
    chosen_by: str
    """The plugins that allowed the moves."""


def carry_out(session: Session, plan: ConsolidationPlan, options: ConsolidationOptions) -> bool:
    """Commit a plan as a whole; nothing is committed if a limit of the gang's queue forbids it."""
    with session.statement() as trial:
        if not _evict(session, trial, plan, options) or not _pipeline(session, trial, plan):
            return False
        for task, _ in plan.placements:
            session.reserve(task, options.hold_seconds)
        nominate_hyper_nodes(session, plan.domains)
        _note_moves(session, plan, options)
        trial.commit()
    return True


def _evict(
    session: Session, trial: Statement, plan: ConsolidationPlan, options: ConsolidationOptions
) -> bool:
    domain = domain_text(session, plan.domain)
    for move in plan.moves:
        reason = EvictionReason("consolidate", plan.job.key, plan.chosen_by, domain, move.destination.name)
        if trial.evict(move.task, reason) is not None:
            return False
        _hold_for_successor(session, move, options)
    return True


def _pipeline(session: Session, trial: Statement, plan: ConsolidationPlan) -> bool:
    """Pipeline the gang; what moved tasks hold elsewhere counts against the limits of its queue."""
    queue = plan.job.queue
    for task, node in plan.placements:
        if queue is None or not session.rules.allocatable(queue, task):
            return False
        if trial.pipeline(task, node, evicted=True) is not None:
            return False
    return session.rules.job_pipelined(plan.job)


def _hold_for_successor(session: Session, move: Move, options: ConsolidationOptions) -> None:
    """Reserve capacity for the pod that will replace a moved pod; it does not exist yet, so its role owns it."""
    task, reservations = move.task, session.cluster.reservations
    if task.job is None:
        return
    replica = 0
    while (owner := RoleOwner(task.job.id, task.role, replica)) in reservations:
        replica += 1
    until = session.now + options.hold_seconds
    reservations.reserve(Reservation(owner, task.request, move.destination, session.now, until))
    session.journal.record(partial(reservations.release, owner))


def _note_moves(session: Session, plan: ConsolidationPlan, options: ConsolidationOptions) -> None:
    """Record on each moved job when it was moved, so that it is not moved again soon, also after a restart."""
    by_job: dict[Job, list[Move]] = {}
    for move in plan.moves:
        if move.task.job is not None:
            by_job.setdefault(move.task.job, []).append(move)
    when = rfc3339(datetime.fromtimestamp(session.now, UTC))
    for job, moves in by_job.items():
        listed = ", ".join(
            f"{move.task.name} from {move.origin.name} to {move.destination.name}" for move in moves
        )
        message = names.MOVED_MESSAGE.format(pods=listed, beneficiary=plan.job.key, time=when)
        session.set_condition(job, names.CONDITION_MOVED, names.CONSOLIDATED, message)
        session.journal.deferred.write(job, "moved_at", session.now)
    remember_losers(session, set(by_job), options)
