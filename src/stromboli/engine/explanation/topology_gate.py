"""Why a gang that must keep to a domain waits: no HyperNode has capacity for it, or no value of its label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stromboli.api import names
from stromboli.engine.explanation.closest_domain import DomainSearch, pods
from stromboli.engine.explanation.diagnosis import Diagnosis, largest_holders
from stromboli.engine.explanation.node_gates import LESS_OR_NODES
from stromboli.engine.explanation.quantities import amounts_text, resources_text
from stromboli.engine.placement.verdict import INSUFFICIENT
from stromboli.engine.topology.left_out_hyper_nodes import left_out, without_nodes
from stromboli.engine.topology.topology_limits import label_key, placed, possible_domains, requested_topology
from stromboli.model.job import SubJob
from stromboli.model.status import Status
from stromboli.model.topology.domain import label_domains

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.engine.session import Session
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


LESS = "request less"
_NO_HYPER_NODE, _NO_DOMAIN_CODE = "No HyperNode with room", "NoDomain"
_USE_NODES = "uncordon nodes, remove their taints or allow its pods to use them"
_LOST = (
    "the nodes of its other pods were deleted, so its domain is unknown",
    "it continues when these pods are deleted",
)


class _Size(Enum):
    """Whether a domain would have capacity for a gang if nothing ran there."""

    ENOUGH = 0
    WITH_ALL_NODES = 1
    """If its nodes could all be used."""
    TOO_SMALL = 2


class TopologyGate:
    """Diagnoses of jobs for which the search found no domain, by its records in `session.attempts`."""

    def __init__(self, session: Session, by_size: Callable[[Job], Diagnosis | None]):
        self._session = session
        self._by_size = by_size
        self._asked = AskedPods(session)
        self._sizes: dict[tuple[int | str, frozenset[tuple[Shape, int]]], _Size] = {}
        self._lacking: dict[frozenset[tuple[Shape, int]], Amounts] = {}

    def of_job(self, job: Job) -> Diagnosis | None:
        """The diagnosis of a job for which, or for a sub-group of which, no domain has capacity; none for others."""
        unit = self._unit(job)
        if unit is None:
            return None
        for limited in (unit, job):
            limit = self._session.topology.tier_limit(limited)
            if limit is not None and limit < self._session.cluster.hyper_nodes.top.tier:
                return self._by_size(job) or self._diagnosis(job, limited)
        if job not in self._session.attempts.without_domain:
            return None
        return self._by_size(job) or self._without_capacity(unit)

    def by_size(self, job: Job) -> Diagnosis | None:
        """The diagnosis of a job that was not tried, since even empty HyperNodes are too small; none for others.

        The queue gate and the shares ignore such a job, so they cannot explain why it waits.
        """
        session, limit = self._session, self._session.topology.tier_limit(job)
        if limit is None or session.needs.is_hopeless(job) or not session.needs.could_never_start(job):
            return None
        if job.complete:
            return self._diagnosis(job, job)
        text = f"no HyperNode of {_tier_text(job, limit)} or below is large enough for its minResources"
        remedy = f"{LESS}, {_farther_apart(job)}, or add nodes"
        return Diagnosis("topology", _NO_HYPER_NODE, text, remedy, code=_NO_DOMAIN_CODE)

    def _without_capacity(self, unit: Job | SubJob) -> Diagnosis | None:
        """The diagnosis of a job without topology limits for which all nodes together have too little capacity."""
        asked = self._asked.of(unit).tasks
        key = frozenset(Counter(task.shape for task in asked).items())
        if key not in self._lacking:
            search = DomainSearch(self._session, asked)
            self._lacking[key] = search.lacking(self._session.cluster.hyper_nodes.top)
        dims, short = self._session.cluster.dims, self._lacking[key]
        if not short:
            return None
        reasons = [names.INSUFFICIENT.format(dims.names[dim]) for dim in dims.ordered(short)]
        summary = f"nodes are unavailable: {', '.join(reasons)}"
        remedy = f"wait until enough {resources_text(dims, short)} is free, {LESS_OR_NODES}"
        if self._asked.of(unit).more_than_needed:
            summary = (
                f"all nodes together have no capacity for {self._asked.of(unit).text}: {', '.join(reasons)}"
            )
            remedy = f"{self._asked.fewer_remedy}, {remedy}"
        steady = Diagnosis("nodes", reasons[0], summary, remedy, code=INSUFFICIENT)
        return replace(steady, measure=partial(self._capacity_numbers, unit, steady))

    def _capacity_numbers(self, unit: Job | SubJob, steady: Diagnosis) -> Diagnosis:
        session, search = self._session, DomainSearch(self._session, self._asked.of(unit).tasks)
        top, dims = session.cluster.hyper_nodes.top, session.cluster.dims
        lacking = search.lacking(top)
        room = f"all nodes together have capacity for {search.fits([top])[0]} of {pods(search.needed)}"
        text = f"{room} and lack {amounts_text(dims, lacking)}" if lacking else room
        if self._asked.of(unit).more_than_needed:
            text += f"; {self._asked.plugin} requires capacity for {self._asked.of(unit).text}"
        return replace(steady, message=text, holders=largest_holders(session.cluster, dims.ordered(lacking)))

    def _unit(self, job: Job) -> Job | SubJob | None:
        """The job, or the sub-group of it, that found no domain."""
        session = self._session
        if job in session.attempts.without_domain:
            unit = session.attempts.without_domain[job]
            return unit if isinstance(unit, SubJob) and unit.policy is not None else job
        for task, verdict in session.attempts.verdicts.get(job, {}).items():
            if verdict.hyper_node and self._would_be_admitted(task, verdict):
                return task.sub_job if task.sub_job is not None and task.sub_job.policy is not None else job
        return None

    def _would_be_admitted(self, task: Task, verdict: Verdict) -> bool:
        """Whether more capacity would help: a verdict is about one domain, and nodes of another may admit the task."""
        lacks_capacity = any(reason.curable for reason in verdict.reasons)
        return lacks_capacity or bool(self._session.reachable(task, confined=False).any())

    # -- texts without numbers that change

    def _texts(self, unit: Job | SubJob, wider: str) -> tuple[str, str]:
        """What holds a job or a sub-group, and the remedy, with `wider` as the way to allow more distance."""
        return self._label_texts(unit) if label_key(unit) else self._hyper_node_texts(unit, wider)

    def _hyper_node_texts(self, unit: Job | SubJob, wider: str) -> tuple[str, str]:
        limit = self._session.topology.tier_limit(unit) or 0
        tree = self._session.cluster.hyper_nodes
        bad = _and(left_out(tree, lambda spec: spec.tier <= limit))
        tier = _tier_text(unit, limit)
        if any(placed(unit)):
            domains = possible_domains(self._session.cluster, unit)
            if not domains and _nodes_are_lost(unit):
                return _LOST
            if not domains:
                text = f"its running pods share no HyperNode of {tier} or below{bad}"
                return text, "delete its pods so that they all start in one"
            where = f"HyperNode {domains[-1].title}, where its other pods are"
            text = f"it must stay in {where}, which has no capacity for {_rest(unit)}{bad}"
            return text, self._with_actions(f"wait until capacity is free there, {wider}")
        size, gang = self._size(unit, limit), self._asked.of(unit).text
        fewer = f"{self._asked.fewer_remedy}, " if self._asked.of(unit).more_than_needed else ""
        if size is _Size.ENOUGH:
            text = f"no HyperNode of {tier} or below has capacity for {gang}{bad}"
            return text, self._with_actions(f"wait until one has capacity, {fewer}{wider}")
        bad += _and(without_nodes(tree, limit))
        if size is _Size.WITH_ALL_NODES:
            text = f"no HyperNode of {tier} or below has enough usable nodes for {gang}{bad}"
            return text, f"{_USE_NODES}, {fewer}{wider}"
        text = f"no HyperNode of {tier} or below is large enough for {gang}{bad}"
        later = f"or {_farther_apart(unit)} and wait"
        return text, f"{fewer}{LESS}, {later if wider == LESS else wider}"

    def _label_texts(self, job: Job | SubJob) -> tuple[str, str]:
        key, columns = label_key(job), self._session.cluster.columns
        anew = "create a new PodGroup without schedulingConstraints"
        if not label_domains(columns, key).by_value:
            return f"no node has the label {key}", f"label the nodes with {key}, or {anew}"
        if any(placed(job)):
            domains = possible_domains(self._session.cluster, job)
            if not domains and _nodes_are_lost(job):
                return _LOST
            if not domains:
                text = f"its running pods have no common value of node label {key}"
                return text, "delete its pods so that they all start with the same value"
            text = f"it must stay on nodes with {domains[0].name}, where its other pods are, which have no capacity"
            return f"{text} for {_rest(job)}", self._with_actions("wait until capacity is free there")
        size, gang = self._size(job, key), self._asked.of(job).text
        if size is _Size.TOO_SMALL:
            text = f"no value of node label {key} has enough nodes for {gang}"
            return text, f"add nodes, request less, or {anew}"
        if size is _Size.WITH_ALL_NODES:
            text = f"no value of node label {key} has enough usable nodes for {gang}"
            return text, f"{_USE_NODES}, or {anew}"
        text = f"no value of node label {key} has nodes with capacity for {gang}"
        return text, self._with_actions(f"wait until one has capacity, or {anew}")

    def _size(self, unit: Job | SubJob, limit: int | str) -> _Size:
        """Whether any domain up to a tier, or of a label, could take it if it were empty; the same for equal gangs."""
        asked = self._asked.of(unit).tasks
        key = (limit, frozenset(Counter(task.shape for task in asked).items()))
        if key not in self._sizes:
            domains = possible_domains(self._session.cluster, unit)
            self._sizes[key] = next(
                (size for size in (_Size.ENOUGH, _Size.WITH_ALL_NODES) if self._holds(size, asked, domains)),
                _Size.TOO_SMALL,
            )
        return self._sizes[key]

    def _holds(self, size: _Size, tasks: list[Task], domains: list[Domain]) -> bool:
        """Whether an empty domain has capacity, on the nodes that the tasks can use or on all of them."""
        search = DomainSearch(self._session, tasks, empty=True, every_node=size is _Size.WITH_ALL_NODES)
        return int(search.fits(domains).max(initial=0)) >= search.needed

    def _with_actions(self, known: str) -> str:
        """A remedy, with the actions for gangs that the policy lacks."""
        freeing = [action.name for action in self._session.catalog.freeing_domains]
        missing = [action for action in freeing if action not in self._session.policy.actions]
        return f"{known}, or add {' or '.join(missing)} to the policy actions" if missing else known

    # -- the current numbers

    def _diagnosis(self, job: Job, unit: Job | SubJob) -> Diagnosis:
        reason = "No domain with room" if label_key(job) else _NO_HYPER_NODE
        steady = Diagnosis("topology", reason, *self._texts(unit, _farther_apart(unit)), code=_NO_DOMAIN_CODE)
        return replace(steady, measure=partial(self._numbers, job, unit, steady))

    def _numbers(self, job: Job, unit: Job | SubJob, steady: Diagnosis) -> Diagnosis:
        remedy = steady.remedy
        closest = DomainSearch(self._session, self._asked.of(unit).tasks).closest(self._candidates(job, unit))
        if closest is not None and not label_key(job):
            wider = self._wider(unit)
            remedy = (
                f"{wider}: {remedy}" if wider else f"{self._all_nodes(unit)}: {self._texts(unit, LESS)[1]}"
            )
        return replace(steady, remedy=remedy, closest=closest)

    def _wider(self, unit: Job | SubJob) -> str:
        """The domain with capacity if a higher tier were allowed; empty if there is none."""
        domain = wider_domain(self._session, unit, self._asked.of(unit).tasks)
        if domain is None:
            return ""
        if domain is self._session.cluster.hyper_nodes.top:
            return "all nodes together have capacity"
        return f"tier {domain.tier} has capacity (HyperNode {domain.title})"

    def _all_nodes(self, unit: Job | SubJob) -> str:
        """Why it would not help to allow a higher tier."""
        search = DomainSearch(self._session, self._asked.of(unit).tasks)
        fits = int(search.fits([self._session.cluster.hyper_nodes.top])[0])
        if fits >= search.needed:
            return "no higher tier has capacity within the other limits of its job and subgroups"
        return f"all nodes together have capacity for {fits} of {pods(search.needed)}"

    def _candidates(self, job: Job, unit: Job | SubJob) -> list[Domain]:
        """The domains that it may use; of a sub-group, below those that its job may use."""
        domains = possible_domains(self._session.cluster, unit)
        if unit is job or self._session.topology.tier_limit(job) is None:
            return domains
        above = possible_domains(self._session.cluster, job)
        return [domain for domain in domains if any(each.contains(domain) for each in above)]


def _and(text: str) -> str:
    return f", and {text}" if text else ""


def _nodes_are_lost(unit: Job | SubJob) -> bool:
    return all(task.node is None or task.node.row < 0 for task in placed(unit))


def _tier_text(unit: Job | SubJob, limit: int) -> str:
    """`tier 1`, or `tier 1 (rack)` if it was requested by name."""
    topology = requested_topology(unit)
    by_name = topology is not None and topology.highest_tier_allowed is None
    name = topology.highest_tier_name if topology is not None and by_name else ""
    return f"tier {limit} ({name})" if name else f"tier {limit}"


def _rest(unit: Job | SubJob) -> str:
    if isinstance(unit, SubJob) and unit.policy is not None:
        return f"the remaining pods of subgroup {unit.policy.name}"
    return "its remaining pods"


def _farther_apart(unit: Job | SubJob) -> str:
    """How to allow a higher tier; the tier of a Job is immutable, that of its PodGroup is not."""
    job = unit.job if isinstance(unit, SubJob) else unit
    owner, where = job.owner, ""
    if owner is not None and owner.kind == "Job":
        of_sub_group = isinstance(unit, SubJob) and unit.policy is not None
        where = "in a new Job" if of_sub_group else f"in PodGroup {job.name} or in a new Job"
        where = f" ({where})"
    return f"allow a higher tier or set mode: soft{where}"


# -- the pods of a gang for which a domain must have capacity: its minimum, or by Volcano's rule all pending pods


class Asked(NamedTuple):
    """The pods of a job or a sub-group for which a domain must have capacity."""

    tasks: list[Task]
    needed: int
    """How many of them it needs to start."""
    text: str
    """`16 pods`, `4 pods of subgroup worker`, `all 4 pending pods, although 1 would be enough to start`."""

    @property
    def more_than_needed(self) -> bool:
        return len(self.tasks) > self.needed


class AskedPods:
    """The pods for which domains must have capacity, by job or sub-group, when the actions of a cycle have run."""

    def __init__(self, session: Session):
        self._session = session
        self._known: dict[Job | SubJob, Asked] = {}
        plugins = (plugin for plugin in session.rules.plugins if plugin.fewer_pods_remedy)
        asking = next(plugins, None)
        self.plugin = asking.name if asking is not None else ""
        """The plugin that requires a HyperNode with capacity for all pending pods, if any does (spec 04 9)."""
        self.fewer_remedy = asking.fewer_pods_remedy if asking is not None else ""

    def of(self, unit: Job | SubJob) -> Asked:
        if unit not in self._known:
            self._known[unit] = self._of(unit)
        return self._known[unit]

    def _of(self, unit: Job | SubJob) -> Asked:
        tasks = unit.tasks if isinstance(unit, SubJob) else unit.tasks.values()
        waiting = [task for task in tasks if task.status is Status.PENDING and not task.gates]
        needed = min(self._session.rules.tasks_needed(unit), len(waiting))
        if needed < len(waiting):
            waiting.sort(key=lambda task: task.order)
            if not self._asks_for_all(unit):
                waiting = waiting[:needed]
        return Asked(waiting, needed, _text(unit, len(waiting), needed))

    def _asks_for_all(self, unit: Job | SubJob) -> bool:
        """Whether the plugin applies: not to a job with sub-groups as a whole, nor to a gang with placed pods."""
        whole = isinstance(unit, SubJob) or not unit.policies
        return bool(self.plugin) and whole and not label_key(unit) and not any(placed(unit))


def _text(unit: Job | SubJob, asked: int, needed: int) -> str:
    text = f"all {asked} pending pods" if asked > needed else pods(max(unit.minimum, 1))
    if isinstance(unit, SubJob) and unit.policy is not None:
        text += f" of subgroup {unit.policy.name}"
    return f"{text}, although {needed} would be enough to start" if asked > needed else text


# -- whether a gang would have capacity if a higher tier were allowed; the limits of its sub-groups stay


def wider_domain(session: Session, unit: Job | SubJob, tasks: Sequence[Task]) -> Domain | None:
    """The lowest domain above the allowed ones with capacity for these tasks, perhaps the top; none if none has."""
    tree, limit = session.cluster.hyper_nodes, session.topology.tier_limit(unit) or 0
    of_job = session.topology.tier_limit(unit.job) if isinstance(unit, SubJob) else None
    highest = tree.top.tier if of_job is None else of_job
    wider = [domain for domain in tree.lookup.domains if limit < domain.tier <= max(highest, limit)]
    search, sub_groups = DomainSearch(session, tasks), _SubGroups(session, unit, tasks)
    fits = search.fits(wider)
    roomy = (domain for domain, fit in zip(wider, fits, strict=True) if fit >= search.needed)
    return next((domain for domain in roomy if sub_groups.fit(domain)), None)


class _SubGroups:
    """For how many sub-groups of a job domains have capacity, each kept within its own limit."""

    def __init__(self, session: Session, unit: Job | SubJob, tasks: Sequence[Task]):
        self._needed: list[tuple[int, int, Counter[Domain]]] = []
        """By sub-group policy: the tier within which each stays, how many there are, and how many fit."""
        by_policy: dict[str, dict[SubJob, list[Task]]] = {}
        for task in () if isinstance(unit, SubJob) else tasks:
            if task.sub_job is not None and task.sub_job.policy is not None:
                groups = by_policy.setdefault(task.sub_job.policy.name, {})
                groups.setdefault(task.sub_job, []).append(task)
        for groups in by_policy.values():
            limit = session.topology.tier_limit(next(iter(groups)))
            if limit is not None and limit < session.cluster.hyper_nodes.top.tier:
                self._needed.append((limit, len(groups), _groups_that_fit(session, limit, groups)))

    def fit(self, domain: Domain) -> bool:
        """Whether a domain has capacity for all of them."""
        return all(fitting[domain] >= count for limit, count, fitting in self._needed if limit < domain.tier)


def _groups_that_fit(session: Session, limit: int, groups: dict[SubJob, list[Task]]) -> Counter[Domain]:
    """For how many sub-groups of one size each domain has capacity in its parts up to a tier."""
    search = DomainSearch(session, [task for tasks in groups.values() for task in tasks])
    size = max(map(len, groups.values()))
    parts = [
        domain
        for domain in session.cluster.hyper_nodes.domains.values()
        if domain.tier <= limit and (domain.parent is None or domain.parent.tier > limit)
    ]
    fitting: Counter[Domain] = Counter()
    for part, fits in zip(parts, search.fits(parts), strict=True):
        for domain in part.ancestors():
            fitting[domain] += int(fits) // size
    return fitting
