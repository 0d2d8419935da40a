"""The plugin `numa-aware`: CPUs of as few NUMA nodes as possible for Guaranteed pods (spec 04 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.api.resources.qos import GUARANTEED, qos_class
from stromboli.api.types.pod import PodSpec
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Cluster, Dirty
from stromboli.model.cpus.cpu_ledger import CpuGrant, whole_cpus
from stromboli.model.cpus.cpu_picker import reserved_cpus, take_cpus
from stromboli.model.cpus.cpu_topology import CpuTopology, NodeCpus, NodePolicies, format_cpu_set
from stromboli.model.ledgers import Grant
from stromboli.model.node_columns import Ints, Node
from stromboli.model.remedy import NO_REMEDY, Rank, Remedy
from stromboli.model.requirements.placement_requirement import NUMA_POLICY, PREFERRED_NUMA_POLICY
from stromboli.model.shape import Shape
from stromboli.model.task import Task
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.model.cpus.cpu_ledger import CpuLedger


# -- remedies for a Guaranteed pod without exclusive CPUs


RUN_EXPORTER = Remedy(
    "run Volcano's resource exporter, which creates a Numatopology for each node", rank=Rank.ABSENCE
)
SET_STATIC = Remedy("set cpuManagerPolicy: static in the kubelet configuration", rank=Rank.ABSENCE)
ALL_ASSIGNED = Remedy("all CPUs are exclusively assigned to containers: wait or add nodes")
SAME_POLICY = Remedy("set the task's topologyPolicy to the topologyManagerPolicy of the kubelets")
SINGLE = "single-numa-node"
STRICT = ("restricted", SINGLE)
"""The policies of kubelets that refuse a container whose CPUs are of more NUMA nodes than necessary."""


def fewer_cpus(ledger: CpuLedger, policy: str, asked: int) -> Remedy:
    """The remedy for a container without NUMA nodes that have enough CPUs left."""
    return Remedy(
        lambda task: _text(ledger, policy, asked, in_numbers=False),
        lambda task: _text(ledger, policy, asked, in_numbers=True),
    )


def _text(ledger: CpuLedger, policy: str, asked: int, in_numbers: bool) -> str:
    nodes = {
        name: cpus
        for name, cpus in ledger.nodes.items()
        if cpus.policies.static and cpus.policies.topology in ((policy,) if policy else STRICT)
    }
    policies = Counter(cpus.policies.topology for cpus in nodes.values())
    where = ", ".join(f"{policy} on {_nodes(count)}" for policy, count in sorted(policies.items()))
    single = set(policies) == {SINGLE}
    among = "one NUMA node" if single else "the fewest possible NUMA nodes"
    asks = f"it requests {_cpus(asked)} from {among} ({where})"
    largest, node = _most(ledger, nodes, free=False)
    if single and asked > largest:
        return f"{asks}, and the largest has {largest} (node {node}): request less, or use best-effort"
    free, node = _most(ledger, nodes, free=True)
    number = f", and at most {free} are free on one (node {node})" if in_numbers else ""
    return f"{asks}{number}: wait, request less, or use best-effort"


def _most(ledger: CpuLedger, nodes: Iterable[str], free: bool) -> tuple[int, str]:
    """The CPUs of the NUMA node with the most CPUs, or the most free ones, and its node."""
    most = ((_most_of_node(ledger, name, free), name) for name in nodes)
    return max(most, default=(0, ""), key=lambda each: each[0])


def _most_of_node(ledger: CpuLedger, name: str, free: bool) -> int:
    cpus = ledger.nodes[name]
    counted = ((ledger.free(name) or 0) if free else ~0) & ~reserved_cpus(
        cpus.topology, cpus.policies.reserved
    )
    return max(((counted & members).bit_count() for members in cpus.topology.numa.values()), default=0)


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def _cpus(count: int) -> str:
    return f"{count} CPU{'s' if count != 1 else ''}"


# -- the CPUs of a node for the containers of a pod


NO_POLICY = ("", "none")
NAME_LENGTH = 63


class CpuRequest(NamedTuple):
    """The policy of a task, and its containers with their exclusive CPUs."""

    policy: str
    containers: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, spec: PodSpec, policy: str) -> CpuRequest:
        containers = tuple(
            (container.name[:NAME_LENGTH], whole_cpus(container)) for container in spec.containers
        )
        return cls("" if policy in NO_POLICY else policy[:NAME_LENGTH], containers)


class Assignment(NamedTuple):
    """The CPUs for a pod on one node, or why it cannot have them."""

    cpus: int = 0
    refusal: str = ""
    remedy: Remedy = NO_REMEDY
    asked: int | None = None
    """The CPUs of the container for which too few are left."""


PASSES = Assignment()
UNKNOWN_CPUS = Assignment(refusal=names.NUMA_INFO_EMPTY, remedy=RUN_EXPORTER)


def assign(request: CpuRequest, cpus: NodeCpus, free: int | None) -> Assignment:
    """The CPUs of a node for a pod, in the order of checks of Volcano (spec 04 7)."""
    static, policy, reserved = cpus.policies
    if request.policy:
        if not static:
            return Assignment(refusal=names.CPU_MANAGER_NOT_STATIC, remedy=SET_STATIC)
        if policy != request.policy:
            differs = names.NUMA_POLICY_DIFFERS.format(task=request.policy, node=policy)
            return Assignment(refusal=differs, remedy=SAME_POLICY)
        if not free:
            return Assignment(refusal=names.NUMA_CPUS_EMPTY, remedy=ALL_ASSIGNED)
    elif not static or policy in NO_POLICY:
        return PASSES
    kept, assigned = reserved_cpus(cpus.topology, reserved), 0
    for container, count in request.containers:
        available = None if free is None else free & ~kept
        hint = best_hint(policy, cpus.topology, available, count)
        if not admits(policy, hint):
            unassignable = names.NUMA_UNASSIGNABLE.format(container=container)
            return Assignment(refusal=unassignable, asked=count)
        given = _cpus_for(cpus.topology, hint, available or 0, count)
        assigned |= given
        free = None if free is None else free & ~given
    return Assignment(assigned)


def _cpus_for(topology: CpuTopology, hint: Hint, available: int, request: int) -> int:
    """CPUs of the NUMA nodes of the hint first, others after them; none at all if there are not enough."""
    near = sum(cpus for number, cpus in topology.numa.items() if hint.mask >> number & 1) & available
    aligned = take_cpus(topology, near, min(near.bit_count(), request))
    if aligned is None:
        return 0
    rest = take_cpus(topology, available & ~aligned, request - aligned.bit_count())
    return 0 if rest is None else aligned | rest


# -- the NUMA nodes for the CPUs of a container, as the kubelet's topology manager would choose them


class Hint(NamedTuple):
    """NUMA nodes as the bits of a number."""

    mask: int
    preferred: bool
    """Whether no smaller set of NUMA nodes could ever serve the container."""


def best_hint(policy: str, topology: CpuTopology, free: int | None, request: int) -> Hint:
    """The NUMA nodes for a number of free CPUs; without a whole number of CPUs, any."""
    everything = sum(1 << number for number in topology.numa)
    if not request or free is None:
        return Hint(everything, everything > 0)
    totals = {number: cpus.bit_count() for number, cpus in topology.numa.items()}
    least = _fewest(totals, request) or len(totals)
    available = _available(topology, free)
    preferred = _first_set(available, least, request)
    if preferred and (policy != SINGLE or least == 1):
        return Hint(preferred, True)
    size = _fewest(available, request) if policy != SINGLE else 0
    return Hint(_first_set(available, size, request) if size else everything, False)


def admits(policy: str, hint: Hint) -> bool:
    """Whether a container may have CPUs of these NUMA nodes."""
    return hint.preferred or policy not in STRICT


def _available(topology: CpuTopology, free: int) -> dict[int, int]:
    """The free CPUs of each NUMA node. # quirk: spec 04 7: unknown CPUs count for NUMA node 0."""
    available = {number: (cpus & free).bit_count() for number, cpus in topology.numa.items()}
    if 0 in available:
        available[0] += (free & ~topology.cpus).bit_count()
    return available


def _fewest(counts: Mapping[int, int], request: int) -> int:
    """The minimum number of NUMA nodes with enough CPUs; 0 if all together have too few."""
    total = 0
    for size, count in enumerate(sorted(counts.values(), reverse=True), start=1):
        total += count
        if total >= request:
            return size
    return 0


def _first_set(counts: Mapping[int, int], size: int, request: int) -> int:
    """The lowest mask of a number of NUMA nodes with enough CPUs together; 0 if there is none."""
    numbers, mask = sorted(counts), 0
    if not _can_serve(counts, numbers, size, request):
        return 0
    while numbers:
        highest = numbers.pop()
        if not _can_serve(counts, numbers, size, request):
            mask |= 1 << highest
            size -= 1
            request -= counts[highest]
    return mask


def _can_serve(counts: Mapping[int, int], numbers: list[int], size: int, request: int) -> bool:
    """Whether some of these NUMA nodes, of the given number, have enough CPUs together."""
    largest = sorted((counts[number] for number in numbers), reverse=True)[:size]
    return len(largest) == size and sum(largest) >= request


# -- the plugin


@dataclass(frozen=True, slots=True)
class NumaArguments:
    """The weight of the score."""

    weight: int = arg("weight", 1, "Weight of the preference for few NUMA nodes.")


class NumaAware(Plugin):
    """Assigns Guaranteed pods CPUs of as few NUMA nodes as possible, on nodes with a Numatopology."""

    name = "numa-aware"
    honours = frozenset({NUMA_POLICY.name, PREFERRED_NUMA_POLICY.name})
    Arguments = NumaArguments
    arguments: NumaArguments

    def __init__(self, arguments: NumaArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._verdicts: dict[CpuRequest, NodeVerdicts] = {}
        self._used: set[CpuRequest] = set()
        self._requests: dict[tuple[Shape, str], CpuRequest | None] = {}

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._verdicts = (
            {} if dirty.everything else {request: self._verdicts[request] for request in self._used}
        )
        self._used, self._requests = set(), {}

    # -- requests

    def shape_key(self, task: Task) -> CpuRequest | None:
        return self._request(task)

    def _request(self, task: Task) -> CpuRequest | None:
        """The CPUs that a task requests; none if this plugin does not apply to it."""
        policy = task.annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
        key = (task.shape, policy)
        if key not in self._requests:
            guaranteed = qos_class(task.shape.spec) == GUARANTEED
            self._requests[key] = CpuRequest.of(task.shape.spec, policy) if guaranteed else None
        known = self._requests[key]
        return known if known is not None and (known.policy or self.session.cluster.cpus.nodes) else None

    def _verdicts_on(self, request: CpuRequest) -> NodeVerdicts:
        self._used.add(request)
        known = self._verdicts.get(request)
        if known is None:
            known = self._verdicts[request] = NodeVerdicts(self.session.cluster, request)
        return known

    def _version(self, task: Task) -> int:
        return self.session.cluster.cpus.changes.position

    # -- filter

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        if self._request(task) is not None:
            yield NodeFilter(self._checks, self.name, "pods", self._version)

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        request = self._request(task)
        if request is not None:
            verdicts = self._verdicts_on(request)
            verdicts.follow()
            codes = nodes.pick(verdicts.codes)
            for reason, code in verdicts.reasons.items():
                yield Check(codes != code, reason, remedy=verdicts.remedies[code])

    # -- score

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        """Only tasks with a policy of their own have preferences, and only where the filter has chosen CPUs."""
        request = self._request(task)
        if request is not None and request.policy and self.switches.get("enablePredicate", True):
            yield NodeScore(
                self._numa_nodes,
                self.name,
                "pods",
                self._version,
                self.arguments.weight,
                _fewer_is_better,
                of_some_nodes=True,
                batch=True,
            )

    def _numa_nodes(self, task: Task, nodes: Nodes) -> Column:
        request = self._request(task)
        if request is None:
            return nodes.zeros()
        verdicts = self._verdicts_on(request)
        verdicts.follow()
        return nodes.pick(verdicts.touched)

    # -- the CPUs

    def grants(self, task: Task, node: Node, now: bool) -> Iterable[Grant | Refusal]:
        request = self._request(task)
        if request is None:
            return
        verdicts = self._verdicts_on(request)
        assignment = verdicts.assignment(node)
        if assignment.refusal:
            yield Refusal(assignment.refusal, plugin=self.name, remedy=verdicts.remedy(assignment))
        elif assignment.cpus:
            topology = self.session.cluster.cpus.nodes[node.name].topology
            yield CpuGrant(format_cpu_set(assignment.cpus), topology.numa_counts(assignment.cpus))


def _fewer_is_better(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
    """The most NUMA nodes become 0, none at all 100, in whole numbers as Kubernetes divides."""
    most = int(raw[candidates].max())
    return 100 - (raw.astype(int) * 100 // most if most else raw)


# -- the result of each node for pods with equal requests, as columns that follow the ledger


REMEMBERED_STATES = 65_536
"""Maximum states of nodes whose assignments are cached."""


class NodeVerdicts:
    """For one request, the refusal of each node and the number of NUMA nodes used; follows nodes that change.

    Nodes with the same CPUs and the same free CPUs share their assignment.
    """

    def __init__(self, cluster: Cluster, request: CpuRequest):
        self._cluster = cluster
        self._request = request
        self._assignments: dict[tuple[CpuTopology, NodePolicies, int | None], Assignment] = {}
        self._layout = self._position = -1
        self.reasons: dict[str, int] = {}
        """The code of each refusal; 0 in the column means that the node passes."""
        self.remedies: dict[int, Remedy] = {}
        """The remedies by the code of the refusal."""
        self.codes: Ints = np.zeros(0, dtype=np.int64)
        self.touched: Ints = np.zeros(0, dtype=np.int64)
        """The number of NUMA nodes that the CPUs of the pod would belong to, by node."""

    def follow(self) -> None:
        """Evaluate the nodes that changed since the last call."""
        columns, ledger = self._cluster.columns, self._cluster.cpus
        changed = ledger.changes.since(self._position) if columns.layout == self._layout else None
        if changed is None:
            unknown = UNKNOWN_CPUS if self._request.policy else PASSES
            self.codes = np.full(len(columns), self._code(unknown), dtype=np.int64)
            self.touched = np.zeros(len(columns), dtype=np.int64)
            changed = set(ledger.nodes)
        for name in sorted(changed):
            node = self._cluster.nodes.get(name)
            if node is not None and node.row >= 0:
                self._judge(node)
        self._layout, self._position = columns.layout, ledger.changes.position

    def assignment(self, node: Node) -> Assignment:
        """The CPUs of a node as they are now."""
        ledger = self._cluster.cpus
        cpus = ledger.nodes.get(node.name)
        if cpus is None:
            return UNKNOWN_CPUS if self._request.policy else PASSES
        free = ledger.free(node.name)
        state = (cpus.topology, cpus.policies, free)
        known = self._assignments.get(state)
        if known is None:
            if len(self._assignments) >= REMEMBERED_STATES:
                self._assignments.clear()
            known = self._assignments[state] = assign(self._request, cpus, free)
        return known

    def _judge(self, node: Node) -> None:
        assignment, cpus = self.assignment(node), self._cluster.cpus.nodes.get(node.name)
        self.codes[node.row] = self._code(assignment)
        self.touched[node.row] = len(cpus.topology.numa_counts(assignment.cpus)) if cpus else 0

    def _code(self, assignment: Assignment) -> int:
        if not assignment.refusal:
            return 0
        code = self.reasons.setdefault(assignment.refusal, len(self.reasons) + 1)
        self.remedies.setdefault(code, self.remedy(assignment))
        return code

    def remedy(self, assignment: Assignment) -> Remedy:
        """The remedy for the refusal of a node."""
        if assignment.asked is None:
            return assignment.remedy
        return fewer_cpus(self._cluster.cpus, self._request.policy, assignment.asked)
