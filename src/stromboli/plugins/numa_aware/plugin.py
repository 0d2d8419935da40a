"""Filter nodes by free CPUs of their NUMA nodes, prefer those that serve a pod from few, and choose the CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from stromboli.api import names
from stromboli.api.resources.qos import GUARANTEED, qos_class
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Cluster, Dirty
from stromboli.model.cpus.cpu_grant import CpuGrant
from stromboli.model.cpus.cpu_set import format_cpu_set
from stromboli.model.cpus.cpu_topology import CpuTopology, NodePolicies
from stromboli.model.ledgers import Grant
from stromboli.model.node_columns import Ints, Node
from stromboli.model.remedy import Remedy
from stromboli.model.requirements.placement_requirement import NUMA_POLICY, PREFERRED_NUMA_POLICY
from stromboli.model.shape import Shape
from stromboli.model.task import Task
from stromboli.plugins.numa_aware.cpu_assignment import PASSES, UNKNOWN_CPUS, Ask, Assignment, assign
from stromboli.plugins.numa_aware.cpu_remedies import fewer_cpus
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class NumaArguments:
    """How much the score counts."""

    weight: int = arg("weight", 1, "How much it counts that a pod's CPUs come from few NUMA nodes.")


class NumaAware(Plugin):
    """Gives Guaranteed pods CPUs of as few NUMA nodes as possible, on nodes that have a Numatopology."""

    name = "numa-aware"
    honours = frozenset({NUMA_POLICY.name, PREFERRED_NUMA_POLICY.name})
    Arguments = NumaArguments
    arguments: NumaArguments

    def __init__(self, arguments: NumaArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._verdicts: dict[Ask, NodeVerdicts] = {}
        self._used: set[Ask] = set()
        self._asks: dict[tuple[Shape, str], Ask | None] = {}

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._verdicts = {} if dirty.everything else {ask: self._verdicts[ask] for ask in self._used}
        self._used, self._asks = set(), {}

    # -- what is asked for

    def shape_key(self, task: Task) -> Ask | None:
        return self._ask(task)

    def _ask(self, task: Task) -> Ask | None:
        """What a task asks of the CPUs of a node; none if this plugin has no part in placing it."""
        policy = task.annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
        key = (task.shape, policy)
        if key not in self._asks:
            ask = Ask.of(task.shape.spec, policy) if qos_class(task.shape.spec) == GUARANTEED else None
            self._asks[key] = ask
        known = self._asks[key]
        return known if known is not None and (known.policy or self.session.cluster.cpus.nodes) else None

    def _verdicts_on(self, ask: Ask) -> NodeVerdicts:
        self._used.add(ask)
        known = self._verdicts.get(ask)
        if known is None:
            known = self._verdicts[ask] = NodeVerdicts(self.session.cluster, ask)
        return known

    def _version(self, task: Task) -> int:
        return self.session.cluster.cpus.changes.position

    # -- filter

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        if self._ask(task) is not None:
            yield NodeFilter(self._checks, self.name, "pods", self._version)

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        ask = self._ask(task)
        if ask is not None:
            verdicts = self._verdicts_on(ask)
            verdicts.follow()
            codes = nodes.pick(verdicts.codes)
            for reason, code in verdicts.reasons.items():
                yield Check(codes != code, reason, remedy=verdicts.remedies[code])

    # -- score

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        """Only tasks with a policy of their own have preferences, and only where the filter has chosen CPUs."""
        ask = self._ask(task)
        if ask is not None and ask.policy and self.switches.get("enablePredicate", True):
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
        ask = self._ask(task)
        if ask is None:
            return nodes.zeros()
        verdicts = self._verdicts_on(ask)
        verdicts.follow()
        return nodes.pick(verdicts.touched)

    # -- the CPUs

    def grants(self, task: Task, node: Node, now: bool) -> Iterable[Grant | Refusal]:
        ask = self._ask(task)
        if ask is None:
            return
        verdicts = self._verdicts_on(ask)
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


# -- what each node means to pods that ask for the same CPUs, as columns that follow the ledger


REMEMBERED_STATES = 65_536
"""States of nodes whose assignments are remembered; a bound on memory."""


class NodeVerdicts:
    """For one ask, why each node refuses it and how many NUMA nodes it would touch; only changed nodes are asked again.

    Nodes with the same CPUs, of which the same are free, share their assignment.
    """

    def __init__(self, cluster: Cluster, ask: Ask):
        self._cluster = cluster
        self._ask = ask
        self._assignments: dict[tuple[CpuTopology, NodePolicies, int | None], Assignment] = {}
        self._layout = self._position = -1
        self.reasons: dict[str, int] = {}
        """The code of each refusal; 0 in the column means that the node passes."""
        self.remedies: dict[int, Remedy] = {}
        """What would help, by the code of the refusal."""
        self.codes: Ints = np.zeros(0, dtype=np.int64)
        self.touched: Ints = np.zeros(0, dtype=np.int64)
        """How many NUMA nodes the CPUs of the pod would come from, by node."""

    def follow(self) -> None:
        """Look at the nodes that changed since the last call."""
        columns, ledger = self._cluster.columns, self._cluster.cpus
        changed = ledger.changes.since(self._position) if columns.layout == self._layout else None
        if changed is None:
            unknown = UNKNOWN_CPUS if self._ask.policy else PASSES
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
            return UNKNOWN_CPUS if self._ask.policy else PASSES
        free = ledger.free(node.name)
        state = (cpus.topology, cpus.policies, free)
        known = self._assignments.get(state)
        if known is None:
            if len(self._assignments) >= REMEMBERED_STATES:
                self._assignments.clear()
            known = self._assignments[state] = assign(self._ask, cpus, free)
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
        """What would help where a node refuses."""
        if assignment.asked is None:
            return assignment.remedy
        return fewer_cpus(self._cluster.cpus, self._ask.policy, assignment.asked)
