"""What each node means to pods that ask for the same CPUs, as columns that follow the ledger."""

from __future__ import annotations

import numpy as np

from stromboli.model.cluster import Cluster
from stromboli.model.cpus.cpu_topology import CpuTopology, NodePolicies
from stromboli.model.node_columns import Ints, Node
from stromboli.plugins.numa_aware.cpu_assignment import PASSES, UNKNOWN_CPUS, Ask, Assignment, assign

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
        return self.reasons.setdefault(assignment.refusal, len(self.reasons) + 1)
