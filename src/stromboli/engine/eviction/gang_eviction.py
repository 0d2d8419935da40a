"""Evictions for a whole gang at once: bundles in a domain until every pending task of the job has a place (spec 02 7).

Each try is a statement: victims are evicted and tasks pipelined, and unless all of them find a node it is undone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.eviction.eviction_commit import commit_evictions, lost_pods_lately, no_attempt_before
from stromboli.engine.eviction.eviction_domains import (
    DEFAULT_MAX_DOMAINS,
    domain_text,
    domains_of_job,
    domains_of_sub_job,
    nominate_hyper_nodes,
)
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.queue_guarantees import QueueGuarantees
from stromboli.engine.eviction.starving_jobs import starving_jobs
from stromboli.engine.eviction.victim_bundles import (
    Bundle,
    BundleIndex,
    allowed_bundles,
    bundles_of,
    only_complete_gangs,
    order_by_job,
    order_by_queue,
)
from stromboli.engine.eviction.victim_candidates import VictimCandidates, remember
from stromboli.engine.eviction.victim_selection import Limits, is_out_of_proportion, loss_limits, rounded_up
from stromboli.engine.pending_tasks import pending_tasks
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots, fits
from stromboli.engine.plugin import Eviction
from stromboli.engine.points import Choice, votes_in_turn
from stromboli.engine.topology.topology_limits import has_topology
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import dominant_share, less_equal, shift, total_of
from stromboli.model.topology.domain_sums import RowGroups
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.eviction.victim_candidates import JobVictims
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.capacity_waits import WaitGroup
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


@dataclass(frozen=True, slots=True)
class GangEvictionOptions(EvictionOptions):
    """Arguments that gangpreempt and gangreclaim share."""

    max_domains: int = arg(
        "maxDomains",
        DEFAULT_MAX_DOMAINS,
        "Maximum number of domains to try; 0 or less: 8. With `fewestVictims`, those that could never fit do not "
        "count.",
    )
    allow_whole_bundle: bool = arg(
        "allowWholeBundle", True, "Whether a gang may be evicted whole, not just its surplus."
    )
    only_topology_jobs: bool = arg(
        "onlyTopologyJobs",
        False,
        "Evict only for jobs with a network topology, which preempt leaves out.",
    )

    def serves(self, job: Job) -> bool:
        """Whether pods are evicted for jobs of its kind."""
        return not self.only_topology_jobs or has_topology(job)


MAX_SPARED = 32
"""Bundles of which it is tried whether the gang could start without them; all others are evicted."""


FIRST_ASKED = 4
"""Bundles about which plugins are asked first, where they vote in turn."""


def evict_for_gangs(
    session: Session, options: GangEvictionOptions, candidates: VictimCandidates, reclaims: bool
) -> None:
    """Queue by queue, job by job: every starving job gets the capacity to start as a whole, or nothing."""
    victims = GangVictims(session, options, candidates, reclaims)
    starving = starving_jobs(session, victims.options.serves, victims.may_help)
    skipped = session.rules.overused if reclaims else None
    for _, jobs in session.jobs_by_queue(starving).visits(skip=skipped):
        for job in jobs:
            if lost_pods_lately(session, job, victims.options):
                continue
            if reclaims and no_attempt_before(session, job) is not None:
                continue
            with session.guard(job), session.statement() as trial:
                search = GangVictimSelection(victims, job)
                if search.run() and commit_evictions(session, trial, victims.options, job):
                    nominate_hyper_nodes(session, search.chosen)


class GangVictims:
    """Which tasks an action may evict for gangs, listed once for all jobs of a kind."""

    def __init__(
        self, session: Session, options: GangEvictionOptions, candidates: VictimCandidates, reclaims: bool
    ):
        self.session = session
        self.reclaims = reclaims
        self.options = options
        self.guarantees = QueueGuarantees(session)
        tiers = [tier for tier in session.rules.methods_by_tier(candidates.point) if tier[1]]
        in_turn = all(votes_in_turn(method) for _, methods in tiers for method in methods)
        self.decisive_tier = tiers[0][0] if tiers and in_turn and not reclaims else None
        """The first tier, if what it allows of some victims does not depend on those that come after them."""
        session.attempts.consider(session.action, candidates.of_job)
        self._candidates = candidates
        self._indexes: dict[Hashable, BundleIndex] = {}

    def index(self, task: Task) -> BundleIndex:
        """The possible victims for a task, as of now; where they may be in any queue, queues share the index."""
        scope = self._candidates.scope(task)
        key = (scope, self._candidates.key(task))
        index = self._indexes.pop(key, None)
        if index is None:
            candidates = self._candidates if scope is not None else self._candidates.of_any_job()
            index = BundleIndex(self.session, candidates, scope, ordered=not self.reclaims)
        index.update(task)
        return remember(self._indexes, key, index)  # not if a plugin failed on the way

    def taken(self, task: Task, index: BundleIndex) -> Mapping[Job, JobVictims]:
        """The jobs of an index from which a task may take."""
        if self._candidates.scope(task) is not None:
            return index.by_job
        may_take_from = self._candidates.may_take_from
        return {job: victims for job, victims in index.by_job.items() if may_take_from(task, job)}

    def may_help(self, group: WaitGroup) -> bool:
        """Whether jobs that wait for capacity could have it if all possible victims were evicted."""
        columns, task = self.session.cluster.columns, group.task
        if task.job is None or not task.may_preempt:
            return False
        index = self.index(task)
        freeable = index.held_by(self.taken(task, index))
        free = columns.idle + columns.releasing + freeable
        return SlotCount(task.shape.request, free).total >= group.needed


class GangVictimSelection:
    """The search for a domain and for bundles with which a job can start."""

    def __init__(self, victims: GangVictims, job: Job):
        self._session = victims.session
        self._options = victims.options
        self._guarantees = victims.guarantees
        self._victims = victims
        self._job = job
        self._pending = self._pending_by_sub_job()
        self._tasks = [task for tasks in self._pending.values() for task in tasks]
        self._need = total_of(task.request for task in self._tasks)
        self._chosen_by = ""
        self._offered: dict[Domain, list[Bundle]] = {}
        self._tried: dict[Domain, list[list[Bundle]]] = defaultdict(list)
        """By domain, the bundles among which none were enough."""
        self.chosen: dict[SubJob, Domain] = {}
        """The domain of each sub-group in the try that worked."""

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

    def run(self) -> bool:
        """Try domain after domain; the first try that works is kept in the statement around."""
        session, job, options = self._session, self._job, self._options
        queue = job.queue
        if queue is None or not self._tasks:
            return False
        if not all(task.may_preempt and options.has_waited(session, task) for task in self._tasks):
            return False
        if session.requirements.unmet(job):
            return False
        if self._victims.reclaims and not session.rules.preemptive(queue, self._tasks):
            return False
        limit = options.max_domains if options.max_domains > 0 else DEFAULT_MAX_DOMAINS
        domains, first = domains_of_job(session, job), next(iter(self._pending.values()))
        if options.fewest_victims:
            roomy = domains_with_slots(session, domains, first)
            if any(self._try_evicting([], domain, "") for domain in roomy[:limit]):
                return True
        else:
            domains = domains[:limit]
        self._index = self._victims.index(self._tasks[0])
        self._taken = self._victims.taken(self._tasks[0], self._index)
        self._freeable = self._index.held_by(self._taken)
        clearable = domains_with_slots(session, domains, first, self._freeable)[:limit]
        return any(self._evict_in(domain, queue, limits) for limits in self._limits() for domain in clearable)

    def _limits(self) -> Iterator[Limits]:
        """Which bundles are considered: with `fewestVictims`, lower priorities and smaller losses first.

        Losses of many times what is needed come last, whatever the priority.
        """
        losses = self._index.losses(self._taken) if self._options.fewest_victims else set()
        need, limits = self._share(self._tasks), []
        for priority in sorted({priority for priority, _ in losses}):
            lower = {rounded_up(loss) for of_job, loss in losses if of_job <= priority}
            limits += [(loss, Limits(priority, loss)) for loss in loss_limits(need, lower)]
            limits.append((max(lower), Limits(priority)))
        for is_large in (False, True):
            yield from (each for loss, each in limits if is_out_of_proportion(loss, need) is is_large)
        if not losses:
            yield Limits()

    def _within(self, limits: Limits, bundles: Iterable[Bundle]) -> Iterator[Bundle]:
        """The bundles that may be evicted within limits; a surplus always may."""
        for bundle in bundles:
            if bundle.safe or (
                bundle.job.priority <= limits.priority
                and (limits.loss == inf or self._share(bundle.victims) <= limits.loss)
            ):
                yield bundle

    def _share(self, tasks: Iterable[Task]) -> float:
        return dominant_share(total_of(task.request for task in tasks), self._session.total)

    def _evict_in(self, domain: Domain, queue: Queue, limits: Limits) -> bool:
        """Add bundle after bundle until they could be enough, then try; failing that, go on adding."""
        columns = self._session.cluster.columns
        inside = domain.mask(len(columns))
        available = (columns.idle + columns.releasing)[:, domain.rows]
        freeable = self._freeable[:, domain.rows]
        if not less_equal(self._need, columns.total((available + freeable).clip(min=0))):
            return False
        capacity = columns.total(available.clip(min=0))
        slots, chosen = SlotBound(self._session, next(iter(self._pending.values())), inside), []
        for bundle in self._allowed(domain, inside, queue, limits):
            chosen.append(bundle)
            slots.add_freed(bundle.tasks)
            shift(capacity, bundle.frees)
            may_suffice = less_equal(self._need, capacity) and slots.may_suffice()
            if may_suffice and self._try_bundles(chosen, domain):
                return True
        return False

    def _try_bundles(self, bundles: list[Bundle], domain: Domain) -> bool:
        """Evict bundles; for tasks that hold more than amounts, such as devices, only those that are needed."""
        ledgers_of = self._session.cluster.ledgers_of
        if any(ledgers_of(task.shape) for task in self._tasks) and self._would_start(bundles, domain):
            for bundle in bundles[-MAX_SPARED:]:
                others = [other for other in bundles if other is not bundle]
                if self._would_start(others, domain):
                    bundles = others
        return self._try_evicting(_victims_of(bundles), domain, self._chosen_by)

    def _would_start(self, bundles: list[Bundle], domain: Domain) -> bool:
        with self._session.statement():  # neither committed nor kept
            return self._try_evicting(_victims_of(bundles), domain, "")

    def _allowed(self, domain: Domain, inside: Bools, queue: Queue, limits: Limits) -> Iterator[Bundle]:
        """The bundles in a domain that plugins allow, in order.

        Where they vote in turn, they are asked about the first few, and about more once these were not enough.
        """
        options, first_tier = self._options, self._victims.decisive_tier
        ordered = self._in_order(domain, inside, queue, limits)
        asked: list[Bundle] = []
        count, given, complete = FIRST_ASKED if first_tier else None, 0, False
        while not complete:
            more = list(islice(ordered, count))
            complete = count is None or len(more) < count
            asked += more
            choice = self._ask(domain, asked)
            if not complete and choice.tier != first_tier:
                count = None
                continue
            allowed = allowed_bundles(asked, set(choice.victims), options.allow_whole_bundle)
            if options.no_harm:
                allowed = only_complete_gangs(allowed)
            if self._victims.reclaims:
                allowed = order_by_queue(self._session, allowed, queue, self._need)
            self._chosen_by = choice.by
            yield from allowed[given:]
            count, given = len(asked), len(allowed)
        self._tried[domain].append(asked)

    def _ask(self, domain: Domain, bundles: list[Bundle]) -> Choice:
        if not bundles:
            return Choice([])
        eviction = Eviction("reclaim" if self._victims.reclaims else "preempt", self._job, domain)
        choice: Choice = self._session.rules.unified_evictable(eviction, _victims_of(bundles))
        return choice

    def _in_order(self, domain: Domain, inside: Bools, queue: Queue, limits: Limits) -> Iterator[Bundle]:
        """What may be evicted in a domain, in order; nothing if it was tried before."""
        reclaims = self._victims.reclaims
        if bool(inside.all()) and not reclaims and not self._tried[domain]:
            return self._within(limits, self._index.in_order())
        if domain not in self._offered:
            self._offered[domain] = self._candidates(domain, inside)
        candidates = list(self._within(limits, self._offered[domain]))
        if reclaims:
            candidates = order_by_queue(self._session, candidates, queue, self._need)
        else:
            candidates = order_by_job(self._session, candidates)
        return iter(() if candidates in self._tried[domain] else candidates)

    def _candidates(self, domain: Domain, inside: Bools) -> list[Bundle]:
        """The bundles of jobs in a domain; with `doNoHarm`, a whole bundle includes their tasks elsewhere."""
        if inside.all():
            return self._index.bundles(self._taken)
        nodes = self._session.cluster.columns.nodes
        here: dict[Job, list[Task]] = {}
        for row in domain.rows.tolist():
            for task in nodes[row].tasks:
                if task.job is not None and task.job in self._taken and task in self._index:
                    here.setdefault(task.job, []).append(task)
        bundles: list[Bundle] = []
        for job, tasks in here.items():
            all_of_job = self._index.by_job[job].tasks
            others = all_of_job if self._options.no_harm and len(tasks) < len(all_of_job) else ()
            bundles += bundles_of(
                job, tasks, (task for task in others if task.node and not inside[task.node.row])
            )
        return bundles

    # -- trying it out

    def _try_evicting(self, victims: list[Task], domain: Domain, chosen_by: str) -> bool:
        """Evict the victims and pipeline all tasks in a domain; undone unless the job can then start."""
        session, job = self._session, self._job
        reason = EvictionReason(session.action, job.key, chosen_by, domain_text(session, domain))
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


# -- places for a whole gang in a domain, sub-group by sub-group (spec 02 7.3)


def pipeline_job(
    session: Session, pending: Mapping[SubJob, list[Task]], domain: Domain, evicted: bool, first_only: bool
) -> dict[SubJob, Domain] | None:
    """Pipeline the tasks of sub-groups in a domain until their job can start; None if a sub-group finds no place.

    Returns the domain of each sub-group. With `first_only`, only the first sub-group is placed.
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
    """An upper bound on how many tasks of each shape fit once some victims have left."""

    def __init__(self, session: Session, tasks: list[Task], inside: Bools):
        self._free = session.cluster.reservations.future_idle_for(*tasks)
        self._slots = _slots_for(tasks, self._free, inside)
        self._changed: set[int] = set()
        """Rows of nodes that are to be counted again."""

    def add_freed(self, victims: Iterable[Task]) -> None:
        for victim in victims:
            if victim.node is not None:
                self._free[:, victim.node.row] += victim.shape.dense(len(self._free))
                self._changed.add(victim.node.row)

    def may_suffice(self) -> bool:
        """Whether each shape by itself would find enough; together they may still not."""
        rows = np.array(sorted(self._changed), dtype=np.int64)
        self._slots.update(rows, self._free[:, rows])
        self._changed.clear()
        return self._slots.enough


def domains_with_slots(
    session: Session, domains: Sequence[Domain], tasks: Sequence[Task], freeable: Ints | int = 0
) -> list[Domain]:
    """The domains in which tasks of each shape may fit, if as much as `freeable` leaves each node."""
    free = session.cluster.reservations.future_idle_for(*tasks) + freeable
    groups = RowGroups([domain.rows for domain in domains], free.shape[1])
    enough = _slots_for(tasks, free).within(groups) >= len(tasks)
    return [domains[place] for place in np.flatnonzero(enough).tolist()]


def _slots_for(tasks: Sequence[Task], free: Ints, usable: Bools | None = None) -> TaskSlots:
    counts = Counter(task.shape for task in tasks)
    return TaskSlots((SlotCount(shape.request, free, usable), number) for shape, number in counts.items())


def _best_node(session: Session, task: Task, inside: Bools) -> Node | None:
    """The best node on which a task fits now, else once what is leaving has left.

    Filters that an eviction may cure are asked only for tasks that hold more than amounts, such as devices.
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
