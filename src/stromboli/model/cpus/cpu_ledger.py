"""The free CPUs of each node: those that the kubelet has not given away, less those granted to tasks.

A grant holds from the moment a task gets its node, whatever its status there, until it leaves. The ledger counts it
until the Numatopology lists the pod: from then on, the CPUs that the kubelet really gave it are not allocatable.
The kubelet gives a pod its CPUs when it starts, and the Numatopology lists them some seconds later. An annotation of
the pod, written with the bind, carries the grant to the node and to a scheduler that restarts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

import msgspec

from stromboli.api import names
from stromboli.api.resources.qos import GUARANTEED, qos_class
from stromboli.api.resources.quantity import milli
from stromboli.api.types.numa_topology import Numatopology
from stromboli.model.cpus.cpu_topology import CpuTopology, NodeCpus, cpu_details, node_cpus, parse_cpu_set
from stromboli.model.feed import Feed, Topic
from stromboli.model.ledgers import Fact, Grant, Ledger, Unsettled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stromboli.api.types.meta import Object
    from stromboli.api.types.numa_topology import CpuDetail
    from stromboli.api.types.pod import Container, PodSpec
    from stromboli.model.node_columns import Node
    from stromboli.model.status import Status
    from stromboli.model.task import Task


# -- the CPUs that a task was given on its node


MAX_DECISION_LENGTH = 131_072
"""Maximum characters of an annotation of a decision that is read."""
MAX_CPUS_PER_REQUESTED = 8
"""Maximum CPUs of an annotation per requested CPU: whole cores may be more than the pod requests."""


class CpuGrant(Grant, frozen=True, tag="cpus"):
    """CPUs of a node for one task."""

    cpus: str
    """The CPUs by number, such as `0-3,8`."""
    numa: tuple[tuple[int, int], ...]
    """NUMA nodes and how many of the CPUs belong to each, by the number of the NUMA node."""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations that the pod gets with its bind (spec 05 6.1).

        Volcano's decision has the counts of each NUMA node. The CPUs are an extension that its readers skip.
        """
        counts = {str(numa): {"cpu": str(count)} for numa, count in self.numa}
        return {names.TOPOLOGY_DECISION: msgspec.json.encode({"numa": counts, "cpus": self.cpus}).decode()}


class _Decision(msgspec.Struct):
    """The fields of the annotation that are read."""

    cpus: str = ""
    numa: dict[int, dict[str, str]] = {}


_decoder = msgspec.json.Decoder(_Decision)


def granted_cpus(annotations: dict[str, str]) -> CpuGrant | None:
    """The CPUs that a scheduler wrote into the annotations of a pod; none without valid ones."""
    text = annotations.get(names.TOPOLOGY_DECISION)
    if text is None or len(text) > MAX_DECISION_LENGTH:
        return None
    try:
        decision = _decoder.decode(text)
        if not parse_cpu_set(decision.cpus):
            return None
        counts = sorted((numa, int(amounts.get("cpu", "0"))) for numa, amounts in decision.numa.items())
    except ValueError:  # msgspec's errors are ValueErrors too
        return None
    return CpuGrant(decision.cpus, tuple(counts))


# -- the ledger


_Key = tuple[tuple[int, "CpuDetail"], ...]


def whole_cpus(container: Container) -> int:
    """The number of exclusive CPUs of a container: its request, if that is a whole number, else 0."""
    cpus, rest = divmod(milli(container.resources.requests.get(names.CPU, 0)), 1000)
    return 0 if rest else cpus


class _Held(NamedTuple):
    """The CPUs of one task."""

    cpus: int
    namespace: str
    name: str


class CpuLedger(Ledger):
    """The free CPUs of nodes that have a Numatopology."""

    kinds = (Numatopology,)

    def __init__(self, feed: Feed, nodes: Mapping[str, Node]) -> None:
        self._feed = feed
        self._known_nodes = nodes
        self.nodes: dict[str, NodeCpus] = {}
        """The contents of Numatopologies, by the name of the node."""
        self.changes: Topic[str] = feed.topic()
        """Names of nodes whose CPUs or grants changed."""
        self._is_used = False
        """Whether any node had a Numatopology when that was last looked at; if not, no pod is concerned."""
        self._held: dict[str, dict[str, _Held]] = {}
        """What tasks hold, by node and uid."""
        self._free: dict[str, int | None] = {}
        self._topologies: WeakValueDictionary[_Key, CpuTopology] = WeakValueDictionary()

    # -- objects

    def put(self, obj: Object) -> None:
        """A Numatopology is new or has changed; a bad one raises `BadObject` and changes nothing."""
        assert isinstance(obj, Numatopology)
        details = cpu_details(obj.spec)
        key = tuple(sorted(details.items(), key=lambda item: item[0]))
        topology = self._topologies.get(key)
        if topology is None:
            topology = CpuTopology(details)
        cpus = node_cpus(obj, topology)
        self._topologies[key] = topology
        self.nodes[obj.name] = cpus
        self._touch(obj.name)

    def drop(self, obj: Object) -> None:
        """A Numatopology was deleted; without any, nothing is counted."""
        if self.nodes.pop(obj.name, None) is not None:
            self._touch(obj.name)
            if not self.nodes:
                self._held.clear()

    def changed(self, obj: Object) -> None:
        """With the first Numatopology pods are concerned, and with the last one they cease to be."""
        if self._is_used is bool(self.nodes):
            return
        self._is_used = bool(self.nodes)
        self._feed.concerns.note(None)
        self._feed.note_everything()
        if self._is_used:
            self._count_all()

    def _count_all(self) -> None:
        """Count the CPUs of all tasks on nodes, whose grants were not read until now."""
        tasks = [(task, node) for node in self._known_nodes.values() for task in node.tasks]
        concerned = {shape for shape in {task.shape for task, _ in tasks} if self.concerns(shape.spec)}
        for task, node in tasks:
            if task.shape in concerned:
                task.grants = self.shown(task, task.grants)
                self.add(task, task.status, node)

    # -- tasks

    def concerns(self, spec: PodSpec) -> bool:
        """Only containers of Guaranteed pods that request whole CPUs get exclusive ones.

        Without any Numatopology, what they hold is not read.
        """
        if not self.nodes or qos_class(spec) != GUARANTEED:
            return False
        return any(whole_cpus(container) for container in spec.containers)

    @property
    def generation(self) -> int:
        return self.changes.generation

    def counts_at(self, node: Node) -> bool:
        return node.name in self.nodes

    def shown(self, task: Task, assumed: tuple[Grant, ...]) -> tuple[Grant, ...]:
        shown = granted_cpus(task.annotations)
        requested = sum(whole_cpus(container) for container in task.shape.spec.containers)
        if shown is None or parse_cpu_set(shown.cpus).bit_count() > MAX_CPUS_PER_REQUESTED * requested:
            return assumed
        return (*(grant for grant in assumed if not isinstance(grant, CpuGrant)), shown)

    def add(self, task: Task, status: Status, node: Node) -> None:
        cpus = 0
        for grant in task.grants:
            if isinstance(grant, CpuGrant):
                cpus |= parse_cpu_set(grant.cpus)
        if cpus:
            held = self._held.setdefault(node.name, {})
            held[task.uid] = _Held(cpus, task.namespace, task.name)
            self._touch(node.name)

    def remove(self, task: Task, status: Status, node: Node) -> None:
        held = self._held.get(node.name)
        if held is not None and held.pop(task.uid, None) is not None:
            if not held:
                del self._held[node.name]
            self._touch(node.name)

    # -- what is free

    def free(self, node: str) -> int | None:
        """The CPUs of a node that may be given to a task; none if they are unknown."""
        if node not in self._free:
            self._free[node] = self._count(node)
        return self._free[node]

    def _count(self, node: str) -> int | None:
        cpus = self.nodes.get(node)
        if cpus is None or cpus.allocatable is None:
            return None
        waiting = listed = 0
        for uid, held in self._held.get(node, {}).items():
            if cpus.lists(uid, held.namespace, held.name):
                listed |= held.cpus
            else:
                waiting |= held.cpus
        if waiting & ~cpus.allocatable:
            # The kubelet gave a listed pod other CPUs than the chosen ones, among them some that were chosen for a pod
            # not listed yet. That pod will get some of the remaining CPUs, so as many must not be given to others.
            waiting |= listed
        return cpus.allocatable & ~waiting

    def facts(self, unsettled: Unsettled) -> Iterator[Fact]:
        for node in self.nodes.keys() - unsettled.nodes:
            yield ("Node", f"{node} CPUs"), f"free CPUs {self.free(node) or 0:#x}"

    def _touch(self, node: str) -> None:
        self._free.pop(node, None)
        self.changes.note(node)
