"""Places for a whole gang in a domain, sub-group by sub-group (spec 02 7.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.eviction.eviction_domains import domains_of_sub_job
from stromboli.engine.placement.node_fit import fits, slots
from stromboli.model.topology.domain_sums import RowGroups

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.model.job import SubJob
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


def pipeline_job(
    session: Session, pending: Mapping[SubJob, list[Task]], domain: Domain, evicted: bool, first_only: bool
) -> dict[SubJob, Domain] | None:
    """Pipeline the tasks of sub-groups in a domain until their job can start; none if a sub-group finds no place.

    Gives the domain in which each sub-group is. With `first_only`, the first sub-group is all that is wanted.
    """
    chosen: dict[SubJob, Domain] = {}
    for sub_job, tasks in pending.items():
        candidates = domains_with_slots(session, domains_of_sub_job(session, sub_job, domain), tasks)
        place = next(
            (each for each in candidates if _pipeline_all(session, sub_job, tasks, each, evicted)), None
        )
        if place is None:
            return None
        chosen[sub_job] = place
        if first_only or session.rules.job_pipelined(sub_job.job):
            break
    return chosen


def _pipeline_all(
    session: Session, sub_job: SubJob, tasks: list[Task], domain: Domain, evicted: bool
) -> bool:
    """Pipeline every task of a sub-group in a domain, or none of them."""
    queue, inside = sub_job.job.queue, domain.mask(len(session.cluster.columns))
    if queue is None:
        return False
    with session.statement() as trial:
        for task in tasks:
            if not session.rules.allocatable(queue, task):
                return False
            node = _best_node(session, task, inside)
            if node is None or trial.pipeline(task, node, evicted) is not None:
                return False
        if not session.sub_job_ready(sub_job) and not session.sub_job_pipelined(sub_job):
            return False
        trial.keep()
    return True


class SlotBound:
    """An upper bound on how many tasks of each shape find room once some victims have left."""

    def __init__(self, session: Session, tasks: list[Task], inside: Bools):
        self._room = _room_for(session, tasks) * inside
        self._needed = Counter(task.shape for task in tasks)

    def add_freed(self, victims: Iterable[Task]) -> None:
        for victim in victims:
            if victim.node is not None:
                self._room[:, victim.node.row] += victim.shape.dense(len(self._room))

    def may_suffice(self) -> bool:
        """Whether each shape by itself would find enough; together they may still not."""
        return all(slots(shape, self._room).sum() >= count for shape, count in self._needed.items())


def _room_for(session: Session, tasks: Iterable[Task]) -> Ints:
    """What will be free on each node, with the room that is held for these tasks."""
    room = session.cluster.columns.future_idle.copy()
    for task in tasks:
        own = session.cluster.reservations.own_room(task)
        if own is not None:
            room[:, own.row] += own.amount
    return room


def domains_with_slots(
    session: Session, domains: Sequence[Domain], tasks: Sequence[Task], freeable: Ints | int = 0
) -> list[Domain]:
    """The domains in which tasks of each shape may find room, if as much as `freeable` leaves each node."""
    room = _room_for(session, tasks) + freeable
    groups = RowGroups([domain.rows for domain in domains], room.shape[1])
    enough = np.ones(len(domains), dtype=np.bool_)
    for shape, count in Counter(task.shape for task in tasks).items():
        enough &= groups.sums(slots(shape, room)) >= count
    return [domains[place] for place in np.flatnonzero(enough).tolist()]


def _best_node(session: Session, task: Task, inside: Bools) -> Node | None:
    """The best node with room now, else with room to come; filters that an eviction may cure are not asked.

    They are for tasks that hold more than amounts, such as devices: there the room alone says little.
    """
    cluster = session.cluster
    later = inside & session.reachable(task) & fits(task, cluster.reservations.future_idle_for(task))
    now = later & fits(task, cluster.columns.idle)
    holds_more = bool(cluster.ledgers_of(task.shape))
    for candidates in (now, later):
        if np.any(candidates):
            ranked = session.ranked(task, candidates)
            best = next((node for node in ranked if not holds_more or session.admits(task, node)), None)
            if best is not None:
                return best
    return None
