"""Room for a whole gang at once: evict bundles in a domain until every pending task of the job has a place (spec 02 7).

Each try is a statement: victims are evicted and tasks pipelined, and unless all of them find room it is undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.eviction.eviction_commit import commit_evictions, lost_pods_lately, no_attempt_before
from stromboli.engine.eviction.eviction_domains import (
    DEFAULT_MAX_DOMAINS,
    asks_for_topology,
    domain_words,
    domains_of_job,
    nominate_hyper_nodes,
)
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.gang_placement import SlotBound, domains_with_slots, pipeline_job
from stromboli.engine.eviction.queue_guarantees import QueueGuarantees
from stromboli.engine.eviction.starving_jobs import starving_jobs
from stromboli.engine.eviction.victim_bundles import Bundle, allowed_bundles, bundles_of, only_complete_gangs
from stromboli.engine.eviction.victim_selection import loss_limits, rounded_up
from stromboli.engine.pending_tasks import pending_tasks
from stromboli.engine.placement.node_fit import slots
from stromboli.engine.plugin import Eviction
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import Amounts, dominant_share, less_equal, shift, total_of
from stromboli.model.status import Status
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.room_waits import WaitGroup
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Ints
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


MayLose = Callable[[Bundle], bool]
"""Whether a bundle may be evicted."""


@dataclass(frozen=True, slots=True)
class GangEvictionOptions(EvictionOptions):
    """Arguments that gangpreempt and gangreclaim share."""

    max_domains: int = arg(
        "maxDomains",
        DEFAULT_MAX_DOMAINS,
        "How many domains to try; 0 or less: 8. With `fewestVictims`, those that could not have the room do not count.",
    )
    allow_whole_bundle: bool = arg(
        "allowWholeBundle", True, "Whether a gang may be evicted whole, not just its surplus."
    )
    only_topology_jobs: bool = arg(
        "onlyTopologyJobs",
        False,
        "Make room only for jobs that ask for a network topology, beside preempt, which leaves them out.",
    )

    def serves(self, job: Job) -> bool:
        """Whether room is made for a job of its kind."""
        return not self.only_topology_jobs or asks_for_topology(job)


MOST_SPARED = 32
"""Bundles that are tried whether the gang could start without each; the others go with the rest."""


@dataclass(frozen=True, slots=True)
class GangEviction:
    """What gangpreempt and gangreclaim differ in."""

    action: str
    kind: str
    """What plugins are asked about: "preempt" or "reclaim"."""
    statuses: tuple[Status, ...]
    """The statuses of tasks that may be victims."""
    may_take_from: Callable[[Job, Job], bool]
    order_bundles: Callable[[list[Bundle], Queue, Amounts], list[Bundle]]
    may_start: Callable[[Queue, list[Task]], bool] | None = None
    skip_queue: Callable[[Queue], bool] | None = None


def evict_for_gangs(session: Session, eviction: GangEviction) -> None:
    """Queue by queue, job by job: every starving job gets room to start as a whole, or nothing."""
    options: GangEvictionOptions = session.arguments(eviction.action)
    guarantees = QueueGuarantees(session)

    def may_make_room(group: WaitGroup) -> bool:
        job = group.task.job
        return job is not None and GangVictimSelection(session, eviction, options, guarantees, job).may_free(
            group
        )

    starving = starving_jobs(session, options.serves, may_make_room)
    for _, jobs in session.jobs_by_queue(starving).visits(skip=eviction.skip_queue):
        for job in jobs:
            if lost_pods_lately(session, job, options):
                continue
            if eviction.kind == "reclaim" and no_attempt_before(session, job) is not None:
                continue
            with session.guard(job), session.statement() as trial:
                search = GangVictimSelection(session, eviction, options, guarantees, job)
                if search.make_room() and commit_evictions(session, trial, options, job):
                    nominate_hyper_nodes(session, search.chosen)


class GangVictimSelection:
    """The search for a domain and for bundles with which a job can start."""

    def __init__(
        self,
        session: Session,
        eviction: GangEviction,
        options: GangEvictionOptions,
        guarantees: QueueGuarantees,
        job: Job,
    ):
        self._session = session
        self._guarantees = guarantees
        self._eviction = eviction
        self._options = options
        self._may_evict = options.may_evict(session)
        self._job = job
        self._pending = self._pending_by_sub_job()
        self._tasks = [task for tasks in self._pending.values() for task in tasks]
        self._need = total_of(task.request for task in self._tasks)
        self._victims: dict[Job, list[Task]] | None = None
        self._by_row: dict[int, list[tuple[Job, Task]]] | None = None
        self._freed: Ints | None = None
        self._offered: dict[Domain, list[Bundle]] = {}
        self._tried: dict[Domain, list[list[Bundle]]] = defaultdict(list)
        """By domain, the bundles among which none were enough."""
        self.chosen: dict[SubJob, Domain] = {}
        """In which domain each sub-group was given room by the try that worked."""

    def _pending_by_sub_job(self) -> dict[SubJob, list[Task]]:
        """Ungated pending tasks by sub-job; of a job that is ready, just the first sub-job that has any."""
        waiting, pending = pending_tasks(self._session, self._job), {}
        while waiting:
            sub_job, tasks = waiting.pop()
            if ungated := [task for task in reversed(tasks) if not task.gates]:
                pending[sub_job] = ungated
                if self._session.rules.job_ready(self._job):
                    break
        return pending

    def make_room(self) -> bool:
        """Try domain after domain; the first try that works is kept in the statement around."""
        session, job, options = self._session, self._job, self._options
        queue = job.queue
        if queue is None or not self._tasks:
            return False
        if not all(task.may_preempt and options.has_waited(session, task) for task in self._tasks):
            return False
        if session.unmet(job) or (
            self._eviction.may_start and not self._eviction.may_start(queue, self._tasks)
        ):
            return False
        limit = options.max_domains if options.max_domains > 0 else DEFAULT_MAX_DOMAINS
        domains, first = domains_of_job(session, job), next(iter(self._pending.values()))
        if options.fewest_victims:
            roomy = domains_with_slots(session, domains, first)
            if any(self._try_evicting([], domain, "") for domain in roomy[:limit]):
                return True
        else:
            domains = domains[:limit]
        clearable = domains_with_slots(session, domains, first, self._freeable())[:limit]
        return any(
            self._make_room_in(domain, queue, may_lose) for may_lose in self._limits() for domain in clearable
        )

    def may_free(self, group: WaitGroup) -> bool:
        """Whether jobs that wait for room could have it if all possible victims were evicted."""
        columns, task = self._session.cluster.columns, group.task
        if not task.may_preempt:
            return False
        room = slots(task.shape, columns.idle + columns.releasing + self._freeable())
        return bool(room.sum() >= group.needed)

    def _limits(self) -> Iterator[MayLose]:
        """Which bundles are considered: with `fewestVictims`, lower priorities and smaller losses first."""
        jobs = self._possible_victims() if self._options.fewest_victims else {}
        for priority in sorted({job.priority for job in jobs}):
            lower = {job: tasks for job, tasks in jobs.items() if job.priority <= priority}
            losses = {rounded_up(self._share(tasks)) for tasks in lower.values()}
            for loss in [*loss_limits(self._share(self._tasks), losses), inf]:
                yield partial(self._is_within, priority, loss)
        if not jobs:
            yield lambda bundle: True

    def _is_within(self, priority: int, loss: float, bundle: Bundle) -> bool:
        return bundle.safe or (bundle.job.priority <= priority and self._share(bundle.victims) <= loss)

    def _share(self, tasks: Iterable[Task]) -> float:
        return dominant_share(total_of(task.request for task in tasks), self._session.total)

    def _make_room_in(self, domain: Domain, queue: Queue, may_lose: MayLose) -> bool:
        """Add bundle after bundle until they could be enough, then try; failing that, go on adding."""
        columns = self._session.cluster.columns
        inside = domain.mask(len(columns))
        available = (columns.idle + columns.releasing)[:, domain.rows]
        freeable = self._freeable()[:, domain.rows]
        if not less_equal(self._need, columns.total((available + freeable).clip(min=0))):
            return False
        room = columns.total(available.clip(min=0))
        bundles, chosen_by = self._bundles(domain, inside, queue, may_lose)
        slots = SlotBound(self._session, next(iter(self._pending.values())), inside)
        for place, bundle in enumerate(bundles, start=1):
            slots.add_freed(bundle.tasks)
            shift(room, bundle.frees)
            may_suffice = less_equal(self._need, room) and slots.may_suffice()
            if may_suffice and self._try_bundles(bundles[:place], domain, chosen_by):
                return True
        return False

    def _try_bundles(self, bundles: list[Bundle], domain: Domain, chosen_by: str) -> bool:
        """Evict bundles; for tasks that hold more than amounts, such as devices, only those that are needed."""
        ledgers_of = self._session.cluster.ledgers_of
        if any(ledgers_of(task.shape) for task in self._tasks) and self._would_start(bundles, domain):
            for bundle in bundles[-MOST_SPARED:]:
                others = [other for other in bundles if other is not bundle]
                if self._would_start(others, domain):
                    bundles = others
        return self._try_evicting(_victims_of(bundles), domain, chosen_by)

    def _would_start(self, bundles: list[Bundle], domain: Domain) -> bool:
        with self._session.statement():  # neither committed nor kept: a mere question
            return self._try_evicting(_victims_of(bundles), domain, "")

    def _bundles(
        self, domain: Domain, inside: Bools, queue: Queue, may_lose: MayLose
    ) -> tuple[list[Bundle], str]:
        """What may be evicted in a domain, in order, and which plugins chose it."""
        session, eviction = self._session, self._eviction
        if domain not in self._offered:
            self._offered[domain] = self._candidates(domain, inside)
        candidates = list(filter(may_lose, self._offered[domain]))
        if candidates in self._tried[domain]:
            return [], ""
        self._tried[domain].append(candidates)
        ordered = eviction.order_bundles(candidates, queue, self._need)
        if not ordered:
            return [], ""
        offered = [task for bundle in ordered for task in bundle.victims]
        choice = session.rules.unified_evictable(Eviction(eviction.kind, self._job, domain), offered)
        allowed = allowed_bundles(candidates, set(choice.victims), self._options.allow_whole_bundle)
        if self._options.no_harm:
            allowed = only_complete_gangs(allowed)
        return eviction.order_bundles(allowed, queue, self._need), choice.by

    def _candidates(self, domain: Domain, inside: Bools) -> list[Bundle]:
        """The bundles of jobs in a domain; where no harm may be done, their tasks elsewhere go along with the whole."""
        victims, by_row = self._possible_victims(), self._victims_by_row()
        here: dict[Job, list[Task]] = {}
        for row in domain.rows.tolist():
            for job, task in by_row.get(row, ()):
                here.setdefault(job, []).append(task)
        bundles: list[Bundle] = []
        for job, tasks in here.items():
            others = victims[job] if self._options.no_harm and len(tasks) < len(victims[job]) else ()
            bundles += bundles_of(
                job, tasks, (task for task in others if task.node and not inside[task.node.row])
            )
        return bundles

    def _possible_victims(self) -> dict[Job, list[Task]]:
        """Tasks that may make room wherever they are, by job."""
        if self._victims is None:
            may_take_from = self._eviction.may_take_from
            self._victims = {
                other: tasks
                for other in self._session.jobs()
                if other is not self._job and other.gang_evictable and may_take_from(self._job, other)
                if self._tasks and (tasks := self._tasks_of(other))
            }
        return self._victims

    def _victims_by_row(self) -> dict[int, list[tuple[Job, Task]]]:
        """The same by the row of their node, with their job."""
        if self._by_row is None:
            self._by_row = {}
            for job, tasks in self._possible_victims().items():
                for task in tasks:
                    if task.node is not None:
                        self._by_row.setdefault(task.node.row, []).append((job, task))
        return self._by_row

    def _freeable(self) -> Ints:
        """What all possible victims hold on each node."""
        if self._freed is None:
            columns = self._session.cluster.columns
            tasks = [task for tasks in self._possible_victims().values() for task in tasks]
            rows_by_shape: dict[Shape, list[int]] = {}
            for task in tasks:
                if task.node is not None:
                    rows_by_shape.setdefault(task.shape, []).append(task.node.row)
            self._freed = np.zeros_like(columns.idle)
            for shape, rows in rows_by_shape.items():
                counts = np.bincount(rows, minlength=len(columns))
                self._freed += shape.dense(len(self._freed))[:, None] * counts
        return self._freed

    def _tasks_of(self, job: Job) -> list[Task]:
        return [
            task
            for status in self._eviction.statuses
            for task in job.by_status[status]
            if task.preemptable
            and task.node is not None
            and task.node.row >= 0
            and self._may_evict(self._tasks[0], task)
        ]

    # -- trying it out

    def _try_evicting(self, victims: list[Task], domain: Domain, chosen_by: str) -> bool:
        """Evict the victims and pipeline all tasks in a domain; undone unless the job can then start."""
        session, job = self._session, self._job
        reason = EvictionReason(self._eviction.action, job.key, chosen_by, domain_words(session, domain))
        was_ready = session.rules.job_ready(job)
        with session.statement() as trial:
            for victim in victims:
                trial.evict(victim, reason)
            if self._options.no_harm and not self._guarantees.hold(trial, job.queue):
                return False
            chosen = pipeline_job(session, self._pending, domain, bool(victims), was_ready)
            if chosen is None or not session.rules.job_pipelined(job):
                return False
            self.chosen = chosen
            trial.keep()
        return True


def _victims_of(bundles: list[Bundle]) -> list[Task]:
    return [victim for bundle in bundles for victim in bundle.victims]
