"""Filter nodes by free CPUs of their NUMA nodes, prefer those that serve a pod from few, and choose the CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stromboli.api import names
from stromboli.api.resources.qos import GUARANTEED, qos_class
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.model.cpus.cpu_grant import CpuGrant
from stromboli.model.cpus.cpu_set import format_cpu_set
from stromboli.model.ledgers import Grant
from stromboli.model.node_columns import Node
from stromboli.model.requirements.placement_requirement import NUMA_POLICY, PREFERRED_NUMA_POLICY
from stromboli.model.shape import Shape
from stromboli.model.task import Task
from stromboli.plugins.numa_aware.cpu_assignment import Ask
from stromboli.plugins.numa_aware.node_verdicts import NodeVerdicts
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
                yield Check(codes != code, reason)

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
        assignment = self._verdicts_on(ask).assignment(node)
        if assignment.refusal:
            yield Refusal(assignment.refusal, plugin=self.name)
        elif assignment.cpus:
            topology = self.session.cluster.cpus.nodes[node.name].topology
            yield CpuGrant(format_cpu_set(assignment.cpus), topology.numa_counts(assignment.cpus))


def _fewer_is_better(task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
    """The most NUMA nodes become 0, none at all 100, in whole numbers as Kubernetes divides."""
    most = int(raw[candidates].max())
    return 100 - (raw.astype(int) * 100 // most if most else raw)
