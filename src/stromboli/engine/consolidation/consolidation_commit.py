"""Carrying out a plan: the moved tasks are evicted, the room of all is held, and it is noted who was moved when."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.go_scalars import rfc3339
from stromboli.engine.eviction.eviction_commit import remember_losers
from stromboli.engine.eviction.eviction_domains import domain_words, nominate_hyper_nodes
from stromboli.engine.transaction import EvictionReason
from stromboli.model.reservations import Reservation, RoleOwner

if TYPE_CHECKING:
    from stromboli.engine.consolidation.consolidation_options import ConsolidationOptions
    from stromboli.engine.consolidation.consolidation_plan import ConsolidationPlan, Move
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job


def carry_out(session: Session, plan: ConsolidationPlan, options: ConsolidationOptions) -> bool:
    """Commit a plan, the whole or nothing; not if the gang's queue may not have as much."""
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
    domain = domain_words(session, plan.domain)
    for move in plan.moves:
        reason = EvictionReason("consolidate", plan.job.key, plan.chosen_by, domain, move.destination.name)
        if trial.evict(move.task, reason) is not None:
            return False
        _hold_for_successor(session, move, options)
    return True


def _pipeline(session: Session, trial: Statement, plan: ConsolidationPlan) -> bool:
    """Promise the gang its room; what moved tasks take along counts against the limits of its queue."""
    queue = plan.job.queue
    for task, node in plan.placements:
        if queue is None or not session.rules.allocatable(queue, task):
            return False
        if trial.pipeline(task, node, evicted=True) is not None:
            return False
    return session.rules.job_pipelined(plan.job)


def _hold_for_successor(session: Session, move: Move, options: ConsolidationOptions) -> None:
    """Hold room for the pod that will take a moved pod's place; it is not there yet, so its role owns the room."""
    task, reservations = move.task, session.cluster.reservations
    if task.job is None:
        return
    replica = 0
    while (owner := RoleOwner(task.job.id, task.role, replica)) in reservations:
        replica += 1
    until = session.now + options.hold_seconds
    reservations.reserve(Reservation(owner, task.request, move.destination, session.now, until))
    session.record(partial(reservations.release, owner))


def _note_moves(session: Session, plan: ConsolidationPlan, options: ConsolidationOptions) -> None:
    """Note on each moved job when it was moved, so that it is left alone for a while, also after a restart."""
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
        session.write(job, "moved_at", session.now)
    remember_losers(session, set(by_job), options)
