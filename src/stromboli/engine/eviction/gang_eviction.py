"""Room for a whole gang at once: evict bundles in a domain until every pending task of the job has a place (spec 02 7).

A trial is a statement: victims leave, tasks are placed, and unless all of them find room it is as if nothing had been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.eviction.eviction_options import Manners
from stromboli.engine.eviction.node_clearing import guarantees_hold
from stromboli.engine.eviction.starving_jobs import rests, seal, starving_jobs
from stromboli.engine.eviction.victim_bundles import Bundle, bundles_of, shrink, without_cripples
from stromboli.engine.pending_tasks import pending_tasks
from stromboli.engine.placement.evaluation import fits
from stromboli.engine.plugin import Eviction
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import Amounts, less_equal, shift, total_of
from stromboli.model.status import Status
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

MOST_DOMAINS = 8


@dataclass(frozen=True, slots=True)
class Arguments(Manners):
    """Arguments that gangpreempt and gangreclaim share."""

    most_domains: int = arg("maxDomains", MOST_DOMAINS, "How many domains to try; 0 or less: 8.")
    whole_bundles: bool = arg(
        "allowWholeBundle", True, "Whether a gang may be evicted whole, not just its surplus."
    )


@dataclass(frozen=True, slots=True)
class Raid:
    """How one of the gang actions goes about it."""

    action: str
    kind: str
    """What plugins are asked about: "preempt" or "reclaim"."""
    statuses: tuple[Status, ...]
    from_job: Callable[[Job, Job], bool]
    order: Callable[[Session, list[Bundle], Queue, Amounts], list[Bundle]]
    may_begin: Callable[[Session, Queue, list[Task]], bool]
    skip: Callable[[Queue], bool] | None = None


def raid(session: Session, how: Raid) -> None:
    """Queue by queue, job by job: whoever starves gets a plan that lets it start, or nothing."""
    arguments: Arguments = session.arguments(how.action)
    for _, jobs in session.jobs_by_queue(starving_jobs(session)).visits(skip=how.skip):
        for job in jobs:
            if rests(session, job, arguments):
                continue
            with session.guard(job), session.statement() as trial:
                if Plan(session, how, arguments, job).works() and session.rules.job_pipelined(job):
                    seal(session, trial, arguments)


class Plan:
    """The search for a domain and for bundles with which a job can start; what works stays in the statement around."""

    def __init__(self, session: Session, how: Raid, arguments: Arguments, job: Job):
        self._session = session
        self._how = how
        self._arguments = arguments
        self._job = job
        self._sheet = self._pending()
        tasks = [task for part in self._sheet.values() for task in part]
        self._tasks = tasks
        self._need = total_of(task.request for task in tasks)

    def _pending(self) -> dict[SubJob, list[Task]]:
        """Ungated pending tasks by sub-job; of a job that is ready, just the first sub-job that has any."""
        sheet, pending = pending_tasks(self._session, self._job), {}
        while sheet:
            sub_job, tasks = sheet.pop()
            if ungated := [task for task in reversed(tasks) if not task.gates]:
                pending[sub_job] = ungated
                if self._session.rules.job_ready(self._job):
                    break
        return pending

    def works(self) -> bool:
        """Try domain after domain."""
        queue, most = self._job.queue, self._arguments.most_domains
        if queue is None or not self._tasks or not all(task.may_preempt for task in self._tasks):
            return False
        if not self._how.may_begin(self._session, queue, self._tasks):
            return False
        domains = self._session.domains(self._job, "evict")[: most if most > 0 else MOST_DOMAINS]
        return any(self._works_in(domain, queue) for domain in domains)

    def _works_in(self, domain: Bools, queue: Queue) -> bool:
        """Add bundle after bundle until they could be enough, then try; failing that, go on adding."""
        if self._arguments.fewest_victims and self._try([], domain, ""):
            return True
        columns = self._session.cluster.columns
        room = columns.total((columns.idle + columns.releasing)[:, domain])
        bundles, chosen_by = self._bundles(domain, queue)
        victims: list[Task] = []
        slots = Slots(self._session, next(iter(self._sheet.values())), domain)
        for bundle in bundles:
            victims += bundle.tasks
            slots.free(bundle.tasks)
            shift(room, bundle.frees)
            enough = less_equal(self._need, room) and slots.suffice()
            if enough and self._try(victims, domain, chosen_by):
                return True
        return False

    def _bundles(self, domain: Bools, queue: Queue) -> tuple[list[Bundle], str]:
        """What may go in a domain, in the order in which it goes, and who said so."""
        session, how = self._session, self._how
        found = [
            bundle
            for other in session.jobs()
            if other is not self._job and other.yields and how.from_job(self._job, other)
            for bundle in bundles_of(other, self._inside(other, domain))
        ]
        offered = [task for bundle in how.order(session, found, queue, self._need) for task in bundle.tasks]
        if not offered:
            return [], ""
        choice = session.rules.unified_evictable(Eviction(how.kind, self._job), offered)
        left = shrink(found, set(choice.victims), self._arguments.whole_bundles)
        if self._arguments.no_harm:
            left = without_cripples(left)
        return how.order(session, left, queue, self._need), choice.by

    def _inside(self, job: Job, domain: Bools) -> list[Task]:
        return [
            task
            for status in self._how.statuses
            for task in job.by_status[status]
            if task.preemptable
            and task.node is not None
            and task.node.row >= 0
            and domain[task.node.row]
            and self._arguments.lets_go(self._session, task)
        ]

    # -- trying it out

    def _try(self, victims: list[Task], domain: Bools, chosen_by: str) -> bool:
        """Let the victims go and place everybody; it stays done only if the job can then start."""
        session, job = self._session, self._job
        was_ready = session.rules.job_ready(job)
        note = EvictionReason(self._how.action, job.key, chosen_by)
        with session.statement() as trial:
            for victim in victims:
                trial.evict(victim, note)
            if self._arguments.no_harm and not guarantees_hold(session, trial, job.queue):
                return False
            for sub_job, tasks in self._sheet.items():
                if not self._place_all(trial, sub_job, tasks, domain, bool(victims)):
                    return False
                if was_ready or session.rules.job_pipelined(job):
                    break
            if session.rules.job_pipelined(job):
                trial.keep()
                return True
        return False

    def _place_all(
        self, trial: Statement, sub_job: SubJob, tasks: list[Task], domain: Bools, evicted: bool
    ) -> bool:
        session, queue = self._session, sub_job.job.queue
        for task in tasks:
            if queue is None or not session.rules.allocatable(queue, task):
                return False
            node = _best(session, task, domain)
            if node is None or trial.pipeline(task, node, evicted) is not None:
                return False
        return session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)


class Slots:
    """For how many tasks of each shape nodes would have room once some have gone: a bound, before anybody is tried."""

    def __init__(self, session: Session, tasks: list[Task], domain: Bools):
        cluster = session.cluster
        self._room = cluster.columns.future_idle * domain
        for task in tasks:
            own = cluster.reservations.own_room(task)
            if own is not None:
                self._room[:, own.row] += own.amount
        self._wanted = Counter(task.shape for task in tasks)

    def free(self, victims: Iterable[Task]) -> None:
        for victim in victims:
            if victim.node is not None:
                self._room[:, victim.node.row] += victim.shape.dense(len(self._room))

    def suffice(self) -> bool:
        """Whether each shape by itself would find enough; together they may still not."""
        return all(self._count(shape) >= wanted for shape, wanted in self._wanted.items())

    def _count(self, shape: Shape) -> int:
        asked = [(dim, int(amount)) for dim, amount in shape.request.items() if amount > 0]
        there = [np.maximum(self._room[dim], 0) // amount for dim, amount in asked]
        return int(np.minimum.reduce(there).sum())


def _best(session: Session, task: Task, domain: Bools) -> Node | None:
    """The best node with room now, else with room to come; what an eviction may cure keeps nobody out here."""
    cluster = session.cluster
    later = domain & session.reachable(task) & fits(task, cluster.reservations.future_idle_for(task))
    now = later & fits(task, cluster.columns.idle)
    for group in (now, later):
        if np.any(group):
            return next(session.ranked(task, group))
    return None
