"""Why a gang that must keep to a domain waits: no HyperNode that it may use has room, or no value of its label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.explanation.closest_domain import DomainSearch, pods
from stromboli.engine.explanation.shortages import amounts_text, largest_holders, resources_text
from stromboli.engine.explanation.wait_cause import Cause, Details
from stromboli.engine.explanation.ways_out import LESS_OR_NODES
from stromboli.engine.topology.confinement import placed, possible_domains
from stromboli.engine.topology.label_topology import label_key
from stromboli.engine.topology.left_out_hyper_nodes import left_out
from stromboli.engine.topology.topology_limits import requested_topology
from stromboli.model.job import SubJob
from stromboli.model.status import Status
from stromboli.model.topology.label_domains import label_domains

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.engine.session import Session
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

GANG_ACTIONS = ("gangpreempt", "consolidate")
"""Actions that make room for a gang within a domain."""
_ROOM = (names.INSUFFICIENT.format(""), names.POD_NUMBER_EXCEEDED)
"""How reasons of nodes begin that more room would cure."""

_LOST = (
    "the nodes of its other pods are gone, so nobody knows where it must stay",
    "it goes on when these pods are deleted",
)


class TopologyCauses:
    """Causes of jobs for which the search found no domain, from what it left behind."""

    def __init__(self, session: Session, by_size: Callable[[Job], Cause | None]):
        self._session = session
        self._by_size = by_size
        self._sizes: dict[tuple[int | str, frozenset[tuple[Shape, int]]], bool] = {}
        self._lacking: dict[frozenset[tuple[Shape, int]], Amounts] = {}

    def of_job(self, job: Job) -> Cause | None:
        """By the job or the sub-group that found no domain with room; none if that is not what holds the job."""
        unit = self._unit(job)
        if unit is None:
            return None
        if label_key(job):
            return self._by_size(job) or self._cause(job, job, *self._label_words(job))
        for limited in (unit, job):
            limit = self._session.network_topology(limited)
            if limit is not None and limit < self._session.cluster.hyper_nodes.top.tier:
                return self._by_size(job) or self._cause(
                    job, limited, *self._hyper_node_words(limited, limit)
                )
        return self._by_size(job) or self._without_room(unit) if job in self._session.without_domain else None

    def _without_room(self, unit: Job | SubJob) -> Cause | None:
        """Of a job that may be anywhere and was not tried, since all nodes together have too little room."""
        needed = self._needed(unit)
        key = frozenset(Counter(task.shape for task in needed).items())
        if key not in self._lacking:
            search = DomainSearch(self._session, needed)
            self._lacking[key] = search.lacking(self._session.cluster.hyper_nodes.top)
        dims, short = self._session.cluster.dims, self._lacking[key]
        if not short:
            return None
        reasons = [names.INSUFFICIENT.format(dims.names[dim]) for dim in dims.ordered(short)]
        way_out = f"wait until enough {resources_text(dims, short)} is free, {LESS_OR_NODES}"
        details = partial(self._room_details, unit, reasons[0], way_out)
        return Cause("nodes", f"nodes are unavailable: {', '.join(reasons)}", way_out, details)

    def _room_details(self, unit: Job | SubJob, reason: str, way_out: str) -> Details:
        session, search = self._session, DomainSearch(self._session, self._needed(unit))
        top, dims = session.cluster.hyper_nodes.top, session.cluster.dims
        lacking = search.lacking(top)
        room = f"all nodes together have room for {search.fits([top])[0]} of {pods(search.needed)}"
        text = f"{room} and lack {amounts_text(dims, lacking)}" if lacking else room
        return Details(reason, text, way_out, holders=largest_holders(session.cluster, dims.ordered(lacking)))

    def _unit(self, job: Job) -> Job | SubJob | None:
        """The job, or the sub-group of it, that found no domain."""
        session = self._session
        if job in session.without_domain:
            unit = session.without_domain[job]
            return unit if isinstance(unit, SubJob) and unit.policy is not None else job
        for task, verdict in session.verdicts.get(job, {}).items():
            if verdict.hyper_node and self._would_be_let_in(task, verdict):
                return task.sub_job if task.sub_job is not None and task.sub_job.policy is not None else job
        return None

    def _would_be_let_in(self, task: Task, verdict: Verdict) -> bool:
        """Whether more room would help; a verdict is about the nodes of one domain, and others may let the task in."""
        lacks_room = any(reason.text.startswith(_ROOM) for reason in verdict.reasons)
        return lacks_room or bool(self._session.reachable(task, confined=False).any())

    # -- words without numbers that move

    def _hyper_node_words(self, unit: Job | SubJob, limit: int) -> tuple[str, str]:
        tree = self._session.cluster.hyper_nodes
        bad = left_out(tree, lambda spec: spec.tier <= limit)
        bad = f", and {bad}" if bad else ""
        topology = requested_topology(unit)
        name = (
            topology.highest_tier_name
            if topology is not None and topology.highest_tier_allowed is None
            else ""
        )
        tier = f"tier {limit}" + (f" ({name})" if name else "")
        if any(placed(unit)):
            domains = possible_domains(self._session, unit)
            if not domains and _nodes_are_lost(unit):
                return _LOST
            if not domains:
                text = f"its pods that run are in no HyperNode of {tier} or below{bad}"
                return text, "delete its pods, so that all of them start in one"
            where = f"HyperNode {domains[-1].name}"
            text = (
                f"it must stay in {where}, where its other pods are, and that has no room for {_rest(unit)}"
            )
            return text + bad, self._ways(
                "wait until room is free there, allow a higher tier or set mode: soft"
            )
        if not self._large_enough(unit, limit):
            text = f"no HyperNode of {tier} or below is large enough for {_pods(unit)}{bad}"
            return text, "allow a higher tier, set mode: soft, or ask for less"
        text = f"no HyperNode of {tier} or below has room for {_pods(unit)}{bad}"
        return text, self._ways("wait until one has, allow a higher tier or set mode: soft")

    def _label_words(self, job: Job) -> tuple[str, str]:
        key, columns = label_key(job), self._session.cluster.columns
        anew = "leave schedulingConstraints out of a new PodGroup"
        if not label_domains(columns, key).by_value:
            return f"no node has the label {key}", f"label the nodes with {key}, or {anew}"
        if any(placed(job)):
            domains = possible_domains(self._session, job)
            if not domains and _nodes_are_lost(job):
                return _LOST
            if not domains:
                text = f"its pods that run have no common value of the node label {key}"
                return text, "delete its pods, so that all of them start with the same"
            text = f"it must stay on nodes with {domains[0].name}, where its other pods are, and these have no room"
            return f"{text} for {_rest(job)}", self._ways("wait until room is free there")
        if not self._large_enough(job, key):
            text = f"no value of the node label {key} has enough nodes for {_pods(job)}"
            return text, f"add nodes, ask for less, or {anew}"
        text = f"no value of the node label {key} has nodes with room for {_pods(job)}"
        return text, self._ways(f"wait until one has, or {anew}")

    def _large_enough(self, unit: Job | SubJob, limit: int | str) -> bool:
        """Whether any domain up to a tier, or of a label, could take it if it were empty; the same for equal gangs."""
        needed = self._needed(unit)
        key = (limit, frozenset(Counter(task.shape for task in needed).items()))
        if key not in self._sizes:
            search = DomainSearch(self._session, needed, empty=True)
            fits = search.fits(possible_domains(self._session, unit))
            self._sizes[key] = int(fits.max(initial=0)) >= search.needed
        return self._sizes[key]

    def _ways(self, known: str) -> str:
        missing = [action for action in GANG_ACTIONS if action not in self._session.policy.actions]
        return f"{known}, or add {' or '.join(missing)} to the actions of the policy" if missing else known

    # -- numbers, when somebody asks

    def _cause(self, job: Job, unit: Job | SubJob, summary: str, way_out: str) -> Cause:
        return Cause("topology", summary, way_out, partial(self._details, job, unit, summary, way_out))

    def _details(self, job: Job, unit: Job | SubJob, summary: str, way_out: str) -> Details:
        session = self._session
        search = DomainSearch(session, self._needed(unit))
        closest = search.closest(self._candidates(job, unit))
        message = f"{summary}; closest: {closest.text}" if closest is not None else summary
        wider = "" if label_key(job) or closest is None else self._wider(search, unit)
        reason = "No domain with room" if label_key(job) else "No HyperNode with room"
        return Details(reason, message, f"{wider}{way_out}", closest=closest)

    def _needed(self, unit: Job | SubJob) -> list[Task]:
        """The pods that have to find room before it starts."""
        tasks = unit.tasks if isinstance(unit, SubJob) else unit.tasks.values()
        waiting = [task for task in tasks if task.status is Status.PENDING and not task.gates]
        needed = self._session.rules.tasks_needed(unit)
        if needed < len(waiting):
            waiting.sort(key=lambda task: task.order)
        return waiting[:needed]

    def _candidates(self, job: Job, unit: Job | SubJob) -> list[Domain]:
        """The domains that it may use; of a sub-group, below those that its job may use."""
        domains = possible_domains(self._session, unit)
        if unit is job or self._session.network_topology(job) is None:
            return domains
        above = possible_domains(self._session, job)
        return [domain for domain in domains if any(each.contains(domain) for each in above)]

    def _wider(self, search: DomainSearch, unit: Job | SubJob) -> str:
        """The lowest tier above the allowed ones at which there is room, or what all nodes together have."""
        tree, limit = self._session.cluster.hyper_nodes, self._session.network_topology(unit) or 0
        higher = sorted((domain for domain in tree.domains.values() if domain.tier > limit), key=_by_tier)
        fits = search.fits([*higher, tree.top])
        for domain, fit in zip(higher, fits, strict=False):
            if fit >= search.needed:
                return f"tier {domain.tier} has room (HyperNode {domain.name}): "
        if fits[-1] >= search.needed:
            return "all nodes together have room: "
        return f"all nodes together have room for {fits[-1]} of {pods(search.needed)}: "


def _by_tier(domain: Domain) -> tuple[int, str]:
    return domain.tier, domain.name


def _nodes_are_lost(unit: Job | SubJob) -> bool:
    return all(task.node is None or task.node.row < 0 for task in placed(unit))


def _pods(unit: Job | SubJob) -> str:
    """`16 pods`, or `4 pods of a sub-group worker`: what has to start together."""
    text = pods(max(unit.minimum, 1))
    if isinstance(unit, SubJob) and unit.policy is not None:
        text += f" of a sub-group {unit.policy.name}"
    return text


def _rest(unit: Job | SubJob) -> str:
    if isinstance(unit, SubJob) and unit.policy is not None:
        return f"the rest of a sub-group {unit.policy.name}"
    return "the rest"
