"""Making room: who may be a victim, in which order, and on which nodes it is worth asking (spec 02 0.4, 5, 6).

Bound before you search: what a node could free at most is a column; a node that cannot reach the request even then is
never visited, and what failed for one task is not tried for the next of its kind until something moved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.placement.evaluation import fits
from stromboli.engine.placement.shard_nodes import own_nodes_first
from stromboli.engine.points import Choice
from stromboli.model.amounts import less_equal, plus, total_of
from stromboli.model.job import Job
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


@dataclass(frozen=True, slots=True)
class Offer:
    """Whom an action offers: tasks of which jobs, in which statuses, and which of them for a given task."""

    point: str
    """Where plugins vote on them: `preemptable` or `reclaimable`."""
    statuses: tuple[Status, ...]
    from_job: Callable[[Task, Job], bool]
    accepts: Callable[[Task, Task], bool] = field(default=lambda task, victim: True)
    somebody: bool = False
    """Whether nodes on which nobody is offered are passed over even if the task fits there."""
    depends_on: Callable[[Task], Hashable] = field(default=lambda task: None)
    """What of a task decides who is offered to it, besides its queue and whether it is best-effort."""

    def on(self, task: Task, node: Node) -> list[Task]:
        """The tasks of a node that are offered."""
        return [
            victim for victim in node.tasks if victim.status in self.statuses and self.includes(task, victim)
        ]

    def includes(self, task: Task, victim: Task) -> bool:
        """Whether a task that holds room is offered, whatever its status."""
        return (
            victim.preemptable
            and victim.job is not None
            and victim.job.visible
            and self.from_job(task, victim.job)
            and self.accepts(task, victim)
        )


def in_victim_order(session: Session, task: Task, victims: Iterable[Task]) -> list[Task]:
    """First who goes first: by queue, then the job that comes last, then the task that comes last (spec 02 0.4)."""
    ordered = sorted(victims, key=session.task_key, reverse=True)
    ordered.sort(key=lambda victim: _job_rank(session, victim), reverse=True)
    if task.job is not None and task.job.queue is not None:
        mine = task.job.queue
        queues = {victim.job.queue for victim in ordered if victim.job and victim.job.queue}

        def compare(left: Queue, right: Queue) -> int:
            return session.compare_victim_queues(left, right, mine)

        ranked = sorted(queues, key=cmp_to_key(compare))
        rank = {queue: place for place, queue in enumerate(ranked)}
        ordered.sort(key=lambda victim: rank[victim.job.queue] if victim.job and victim.job.queue else -1)
    return ordered


def _job_rank(session: Session, victim: Task) -> tuple[Any, ...]:
    return session.rules.job_order(victim.job) if victim.job is not None else ()


@dataclass(slots=True)
class Freeable:
    """What each node could free at most, and how many are offered there at all, as of a moment of the session."""

    freed: Ints
    offered: Ints
    asker: Task
    """One of the tasks to whom they are offered."""
    counted: set[Task]
    position: int
    """How long the journal was."""
    seen: int
    """How many roll-backs there had been."""

    def holds(self, session: Session) -> bool:
        """Whether it is still an upper bound: none of the evictions it takes for granted may be undone."""
        if any(start < self.position for start in session.rollbacks[self.seen :]):
            return False
        self.seen = len(session.rollbacks)
        return True

    def lose(self, victim: Task, row: int, position: int) -> None:
        """A victim that was offered went: it can free nothing again."""
        self.offered[row] -= 1
        self.position = position
        if victim in self.counted:
            self.counted.discard(victim)
            self.freed[:, row] -= victim.shape.dense(len(self.freed))


class Hunt:
    """The search for victims in one run of an action."""

    def __init__(self, session: Session, offer: Offer, legal_only: bool = False, no_harm: bool = False):
        self._session = session
        self._offer = offer
        self._legal_only = legal_only
        self._no_harm = no_harm
        self._columns: dict[Hashable, Freeable] = {}
        self._failed: dict[Hashable, tuple[int, int]] = {}
        self._family: list[Hunt] = [self]
        """This search, and those among its offer that look no higher than some priority."""
        self._last_tier: int | None = None
        """The last tier whose word counts, where not all do."""
        self._up_to: dict[int, Hunt] = {}
        self._levels: dict[Job | None, list[int]] = {}

    def steps(self, task: Task) -> list[Hunt]:
        """The searches to make one after the other.

        With manners, whom the first tier lets go is looked for everywhere, the least urgent first, before anybody else.
        """
        if not self._legal_only:
            return [self]
        return [*(self._no_higher_than(level) for level in self._priorities(task)), self]

    def _no_higher_than(self, level: int) -> Hunt:
        known = self._up_to.get(level)
        if known is None:
            offer = self._offer

            def accepts(task: Task, victim: Task) -> bool:
                return victim.job is not None and victim.job.priority <= level and offer.accepts(task, victim)

            known = Hunt(self._session, replace(offer, accepts=accepts), self._legal_only, self._no_harm)
            known._family = self._family
            known._last_tier = self._session.rules.first_tier(offer.point)
            self._family.append(known)
            self._up_to[level] = known
        return known

    def _priorities(self, task: Task) -> list[int]:
        """The priorities of jobs that are offered to a task's job, the lowest first."""
        found = self._levels.get(task.job)
        if found is None:
            offered = (job for job in self._session.jobs() if self._offer.from_job(task, job))
            running = {
                job.priority for job in offered if any(job.counts[status] for status in self._offer.statuses)
            }
            found = self._levels[task.job] = sorted(running)
        return found

    # -- where it is worth asking

    def nodes_in_order(self, task: Task) -> Iterator[Node]:
        """Nodes worth asking, one after the other."""
        worthwhile = self._nodes(task)
        nodes = self._session.cluster.columns.nodes
        for group in own_nodes_first(self._session.cluster, worthwhile):
            if group is not None:
                yield from (nodes[row] for row in np.flatnonzero(group).tolist())

    def nodes_by_score(self, task: Task) -> Iterator[Node]:
        """Nodes worth asking, the best for the task first."""
        return self._session.ranked(task, self._nodes(task))

    def _nodes(self, task: Task) -> Bools:
        """Nodes that could take the task if all who may go went."""
        session = self._session
        bound = session.rules.bound(self._offer.point, task, self._no_harm)
        key = (session.queue_of(task), task.best_effort, bound.key, self._offer.depends_on(task))
        freed, offered = self._freed(key, task, bound.may)
        reach = session.reachable(task)
        future = session.cluster.reservations.future_idle_for(task)
        worthwhile = reach & fits(task, future + freed)
        if self._offer.somebody:
            return worthwhile & (offered > 0)
        return worthwhile & ((offered > 0) | fits(task, future))

    def _freed(self, key: Hashable, task: Task, may: Callable[[Job], bool]) -> tuple[Ints, Ints]:
        session = self._session
        own = (key, task.job if self._depends_on_job(task) else None)
        known = self._columns.get(own)
        if known is None or not known.holds(session):
            known = self._columns[own] = self._sum_up(task, may)
        return known.freed, known.offered

    def _depends_on_job(self, task: Task) -> bool:
        """A job that has running tasks itself is offered to others but not to itself."""
        return task.job is not None and any(task.job.counts[status] for status in self._offer.statuses)

    def _sum_up(self, task: Task, may: Callable[[Job], bool]) -> Freeable:
        columns, offer = self._session.cluster.columns, self._offer
        everybody: list[int] = []
        counted: dict[Any, list[Task]] = {}
        for job in self._session.cluster.jobs.values():
            if not job.visible or not offer.from_job(task, job):
                continue
            counts = may(job)
            for status in offer.statuses:
                for victim in job.by_status[status]:
                    node = victim.node
                    if (
                        victim.preemptable
                        and node is not None
                        and node.row >= 0
                        and offer.accepts(task, victim)
                    ):
                        everybody.append(node.row)
                        if counts:
                            counted.setdefault(victim.shape, []).append(victim)
        freed = np.zeros_like(columns.idle)
        for shape, victims in counted.items():
            rows = [victim.node.row for victim in victims if victim.node is not None]
            freed += shape.dense(len(freed))[:, None] * np.bincount(rows, minlength=len(columns))
        return Freeable(
            freed,
            np.bincount(np.array(everybody, dtype=np.int64), minlength=len(columns)),
            task,
            {victim for victims in counted.values() for victim in victims},
            len(self._session.journal),
            len(self._session.rollbacks),
        )

    def lost(self, victims: Iterable[Task]) -> None:
        """These went: nobody need look for them again."""
        gone = list(victims)
        for hunt in self._family:
            hunt._lose(gone)

    def _lose(self, victims: list[Task]) -> None:
        position = len(self._session.journal)
        for known in self._columns.values():
            for victim in victims:
                if (
                    victim.node is not None
                    and self._offer.includes(known.asker, victim)
                    and known.holds(self._session)
                ):
                    known.lose(victim, victim.node.row, position)

    # -- who goes

    def choose(self, task: Task, node: Node) -> Choice | None:
        """The victims that plugins allow on a node, in the order in which they go; none if nobody is offered there."""
        candidates = in_victim_order(self._session, task, self._offer.on(task, node))
        if not candidates:
            return None
        choice = self._vote(task, candidates)
        if self._last_tier is not None and choice.tier > self._last_tier:
            return Choice([])
        chosen = set(choice.victims)
        return choice._replace(victims=[victim for victim in candidates if victim in chosen])

    def _vote(self, task: Task, candidates: list[Task]) -> Choice:
        ask: Callable[[Task, list[Task]], Choice] = getattr(self._session.rules, self._offer.point)
        if not self._legal_only:
            return ask(task, candidates)
        # Votes that count (so many per gang, per budget) name the first they see, and together may miss whoever all of
        # them would let go. So ask about one more at a time; what an earlier tier names beats what a later one does.
        choice = Choice([])
        for one in candidates:
            more = ask(task, [*choice.victims, one])
            if more.victims and (not choice.victims or _beats(more, choice)):
                choice = more
        return choice

    def members(self, job: Job) -> list[Task]:
        """The tasks of a job that could be victims by their status, the last one first."""
        found = (
            victim
            for status in self._offer.statuses
            for victim in job.by_status[status]
            if victim.node is not None and victim.node.row >= 0
        )
        return sorted(found, key=self._session.task_key, reverse=True)

    def may_go(self, task: Task, victim: Task) -> bool:
        """Whether a task could go by itself; what a gang could spare does not count, since all of it goes."""
        if not victim.preemptable or not self._offer.accepts(task, victim):
            return False
        return all(
            answer is None or victim in answer
            for plugin, answer in self._session.rules.votes(self._offer.point, task, [victim])
            if not plugin.counts_gangs
        )

    def may_all_go(self, task: Task, victims: list[Task]) -> bool:
        """Whether plugins would let all of these go together."""
        if not all(victim.preemptable and self._offer.accepts(task, victim) for victim in victims):
            return False
        ask: Callable[[Task, list[Task]], Choice] = getattr(self._session.rules, self._offer.point)
        return set(ask(task, victims).victims) >= set(victims)

    # -- what failed before

    def hopeless(self, task: Task) -> bool:
        """Whether a task like this one found nothing, and nothing moved since."""
        return self._failed.get(self._kind(task)) == self._moment()

    def give_up(self, task: Task) -> None:
        """Remember that a task found nothing."""
        self._failed[self._kind(task)] = self._moment()

    def _kind(self, task: Task) -> Hashable:
        session = self._session
        bound = session.rules.bound(self._offer.point, task)
        own = task.job if self._depends_on_job(task) else None
        return (session.queue_of(task), session.shape_key(task), bound.key, own, self._offer.depends_on(task))

    def _moment(self) -> tuple[int, int]:
        cluster = self._session.cluster
        return (cluster.columns.clock, len(cluster.touched))


def _beats(more: Choice, choice: Choice) -> bool:
    return (more.tier, -len(more.victims)) < (choice.tier, -len(choice.victims))


def enough(session: Session, task: Task, node: Node, victims: Iterable[Task] = ()) -> bool:
    """Whether what a node will have free, together with these victims, is enough for a task."""
    future = session.future_idle(node, task)
    return less_equal(task.request, plus(future, total_of(victim.request for victim in victims)))
