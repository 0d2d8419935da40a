"""Room for a whole gang at once: evict bundles in a domain until every pending task of the job has a place (spec 02 7).

Each try is a statement: victims are evicted and tasks pipelined, and unless all of them find room it is undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

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
from stromboli.engine.eviction.victim_selection import loss_limits, rounded_up
from stromboli.engine.pending_tasks import pending_tasks
from stromboli.engine.placement.node_fit import slots
from stromboli.engine.plugin import Eviction
from stromboli.engine.points import Choice, votes_in_turn
from stromboli.engine.transaction import EvictionReason
from stromboli.model.amounts import dominant_share, less_equal, shift, total_of
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.room_waits import WaitGroup
    from stromboli.model.job import Job, SubJob
    from stromboli.model.queue import Queue
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


FIRST_ASKED = 4
"""Bundles about which plugins are asked first, where they vote in turn."""


def evict_for_gangs(session: Session, action: str, candidates: VictimCandidates, reclaims: bool) -> None:
    """Queue by queue, job by job: every starving job gets room to start as a whole, or nothing."""
    victims = GangVictims(session, action, candidates, reclaims)
    starving = starving_jobs(session, victims.options.serves, victims.may_make_room)
    skipped = session.rules.overused if reclaims else None
    for _, jobs in session.jobs_by_queue(starving).visits(skip=skipped):
        for job in jobs:
            if lost_pods_lately(session, job, victims.options):
                continue
            if reclaims and no_attempt_before(session, job) is not None:
                continue
            with session.guard(job), session.statement() as trial:
                search = GangVictimSelection(victims, job)
                if search.make_room() and commit_evictions(session, trial, victims.options, job):
                    nominate_hyper_nodes(session, search.chosen)


class GangVictims:
    """Which tasks an action may evict for gangs, listed once for all jobs of a kind."""

    def __init__(self, session: Session, action: str, candidates: VictimCandidates, reclaims: bool):
        self.session = session
        self.action = action
        self.reclaims = reclaims
        self.options: GangEvictionOptions = session.arguments(action)
        self.guarantees = QueueGuarantees(session)
        tiers = [tier for tier in session.rules.methods_by_tier(candidates.point) if tier[1]]
        in_turn = all(votes_in_turn(method) for _, methods in tiers for method in methods)
        self.decisive_tier = tiers[0][0] if tiers and in_turn and not reclaims else None
        """The first tier, if what it allows of some victims does not depend on those that come after them."""
        self._candidates = candidates
        self._known: dict[Hashable, BundleIndex] = {}

    def of(self, task: Task) -> BundleIndex:
        """The possible victims of a task's job, as of now."""
        key = (self.session.queue_of(task), self._candidates.key(task))
        known = self._known.pop(key, None) or BundleIndex(self.session, self._candidates.scope(task))
        known.update(task, partial(self._victims_of, task))
        return remember(self._known, key, known)  # not if a plugin failed on the way

    def _victims_of(self, task: Task, job: Job) -> Iterable[Task]:
        candidates = self._candidates
        if job is task.job or not job.gang_evictable or not candidates.may_take_from(task, job):
            return ()
        return candidates.of_job(task, job)

    def may_make_room(self, group: WaitGroup) -> bool:
        """Whether jobs that wait for room could have it if all possible victims were evicted."""
        columns, task = self.session.cluster.columns, group.task
        if task.job is None or not task.may_preempt:
            return False
        room = slots(task.shape, columns.idle + columns.releasing + self.of(task).held)
        return bool(room.sum() >= group.needed)


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
        if session.unmet(job):
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
        self._index = self._victims.of(self._tasks[0])
        clearable = domains_with_slots(session, domains, first, self._index.held)[:limit]
        return any(
            self._make_room_in(domain, queue, may_lose) for may_lose in self._limits() for domain in clearable
        )

    def _limits(self) -> Iterator[MayLose]:
        """Which bundles are considered: with `fewestVictims`, lower priorities and smaller losses first."""
        losses = self._index.losses() if self._options.fewest_victims else set()
        for priority in sorted({priority for priority, _ in losses}):
            lower = {rounded_up(loss) for of_job, loss in losses if of_job <= priority}
            for loss in [*loss_limits(self._share(self._tasks), lower), inf]:
                yield partial(self._is_within, priority, loss)
        if not losses:
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
        freeable = self._index.held[:, domain.rows]
        if not less_equal(self._need, columns.total((available + freeable).clip(min=0))):
            return False
        room = columns.total(available.clip(min=0))
        slots, chosen = SlotBound(self._session, next(iter(self._pending.values())), inside), []
        for bundle in self._allowed(domain, inside, queue, may_lose):
            chosen.append(bundle)
            slots.add_freed(bundle.tasks)
            shift(room, bundle.frees)
            may_suffice = less_equal(self._need, room) and slots.may_suffice()
            if may_suffice and self._try_bundles(chosen, domain):
                return True
        return False

    def _try_bundles(self, bundles: list[Bundle], domain: Domain) -> bool:
        """Evict bundles; for tasks that hold more than amounts, such as devices, only those that are needed."""
        ledgers_of = self._session.cluster.ledgers_of
        if any(ledgers_of(task.shape) for task in self._tasks) and self._would_start(bundles, domain):
            for bundle in bundles[-MOST_SPARED:]:
                others = [other for other in bundles if other is not bundle]
                if self._would_start(others, domain):
                    bundles = others
        return self._try_evicting(_victims_of(bundles), domain, self._chosen_by)

    def _would_start(self, bundles: list[Bundle], domain: Domain) -> bool:
        with self._session.statement():  # neither committed nor kept: a mere question
            return self._try_evicting(_victims_of(bundles), domain, "")

    def _allowed(self, domain: Domain, inside: Bools, queue: Queue, may_lose: MayLose) -> Iterator[Bundle]:
        """The bundles in a domain that plugins allow, in order.

        Where they vote in turn, they are asked about the first few, and about more once these were not enough.
        """
        options, first_tier = self._options, self._victims.decisive_tier
        ordered = self._in_order(domain, inside, queue, may_lose)
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

    def _in_order(self, domain: Domain, inside: Bools, queue: Queue, may_lose: MayLose) -> Iterator[Bundle]:
        """What may be evicted in a domain, in order; nothing if it was tried before."""
        reclaims = self._victims.reclaims
        if bool(inside.all()) and not reclaims and not self._tried[domain]:
            return filter(may_lose, self._index.in_order())
        if domain not in self._offered:
            self._offered[domain] = self._candidates(domain, inside)
        candidates = list(filter(may_lose, self._offered[domain]))
        if reclaims:
            candidates = order_by_queue(self._session, candidates, queue, self._need)
        else:
            candidates = order_by_job(self._session, candidates)
        return iter(() if candidates in self._tried[domain] else candidates)

    def _candidates(self, domain: Domain, inside: Bools) -> list[Bundle]:
        """The bundles of jobs in a domain; where no harm may be done, their tasks elsewhere go along with the whole."""
        if inside.all():
            return self._index.bundles()
        victims, nodes = self._index.by_job, self._session.cluster.columns.nodes
        here: dict[Job, list[Task]] = {}
        for row in domain.rows.tolist():
            for task in nodes[row].tasks:
                if task.job in victims and task in victims[task.job].tasks:
                    here.setdefault(task.job, []).append(task)
        bundles: list[Bundle] = []
        for job, tasks in here.items():
            all_of_job = victims[job].tasks
            others = all_of_job if self._options.no_harm and len(tasks) < len(all_of_job) else ()
            bundles += bundles_of(
                job, tasks, (task for task in others if task.node and not inside[task.node.row])
            )
        return bundles

    # -- trying it out

    def _try_evicting(self, victims: list[Task], domain: Domain, chosen_by: str) -> bool:
        """Evict the victims and pipeline all tasks in a domain; undone unless the job can then start."""
        session, job = self._session, self._job
        reason = EvictionReason(self._victims.action, job.key, chosen_by, domain_words(session, domain))
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
