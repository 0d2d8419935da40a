"""What nodes have and what pods hold there, as columns: one number per node, computed when it is asked for.

Columns hold until a record changes, and are made by a walk over the nodes. The tree of HyperNodes and the places of
jobs are kept from change to change.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.api.node_state import is_gpu
from stromboli.cli.dashboard.topology.job_places import JobPlaces
from stromboli.cli.dashboard.topology.network_tree import NetworkTree
from stromboli.cli.live.cluster_content import GPU
from stromboli.cli.live.cluster_records import ClusterRecords, PodSums

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
USABLE = ("Ready", "Unknown")
"""States of nodes to which new pods may come, as `api/node_state.is_usable` has it."""
_NONE = PodSums()


def unit(resource: str) -> float:
    """How much of an amount is one core, byte, pod or GPU."""
    return 1.0 if resource in (names.MEMORY, names.PODS) else 1000.0


class ResourceColumns(NamedTuple):
    """A resource, by node, in the units of records."""

    has: Floats
    used: Floats

    @property
    def free(self) -> Floats:
        """What is free, on nodes that take pods and on those that do not."""
        return (self.has - self.used).clip(min=0.0)

    @property
    def share(self) -> Floats:
        """The part in use, from 0 to 1; 0 where a node has nothing of it."""
        return np.divide(self.used, self.has, out=np.zeros_like(self.has), where=self.has > 0).clip(0.0, 1.0)


class NodeOccupancy:
    """All nodes of some records at one version of them, in the order of the rows of the tree."""

    def __init__(self, records: ClusterRecords, network: NetworkTree, jobs: JobPlaces) -> None:
        self.network = network
        self.jobs = jobs
        self.names = network.names
        nodes, sums = records.nodes, records.of_node
        self._nodes = [nodes[name] for name in self.names]
        self._sums = [sums.get(name, _NONE) for name in self.names]
        self._columns: dict[str, ResourceColumns] = {}
        self._gpus = [name for name in records.total if is_gpu(name)]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def states(self) -> list[str]:
        return [node.state for node in self._nodes]

    @cached_property
    def usable(self) -> Bools:
        """Whether new pods may come to a node."""
        return np.array([node.state in USABLE for node in self._nodes], dtype=bool)

    @cached_property
    def pods(self) -> list[int]:
        """How many pods are on a node, of whatever owner."""
        return [sums.placed for sums in self._sums]

    @cached_property
    def vacant(self) -> Bools:
        """Whether no pod of a PodGroup is on a node; those of DaemonSets do not count."""
        return np.array([not self.jobs.has_job(name) for name in self.names], dtype=bool)

    @cached_property
    def free_nodes(self) -> Bools:
        """Whether a node is vacant, and new pods may come to it."""
        return self.vacant & self.usable

    def has_label(self, key: str) -> bool:
        """Whether any node has a label."""
        return any(key in node.labels for node in self._nodes)

    def labels(self, key: str) -> list[str]:
        """The value of a label by node; empty where it is missing."""
        return [node.labels.get(key, "") for node in self._nodes]

    def columns(self, resource: str) -> ResourceColumns:
        """A resource by its name, `gpu` for those of all makers, or `pods`."""
        known = self._columns.get(resource)
        if known is None:
            known = self._columns[resource] = self._read(resource)
        return known

    def _read(self, resource: str) -> ResourceColumns:
        if resource == GPU:
            each = [self.columns(name) for name in self._gpus]
            none = np.zeros(len(self))
            return ResourceColumns(
                sum((columns.has for columns in each), none), sum((columns.used for columns in each), none)
            )
        has = [node.allocatable.get(resource, 0) for node in self._nodes]
        used = self.pods
        if resource != names.PODS:
            used = [sums.used.get(resource, 0) for sums in self._sums]
        return ResourceColumns(np.array(has, dtype=np.float64), np.array(used, dtype=np.float64))


class FollowedNodes:
    """The nodes of some records, whenever they are asked for."""

    def __init__(self, records: ClusterRecords) -> None:
        self._records = records
        self._network = NetworkTree()
        self._jobs: JobPlaces | None = None
        self._known: NodeOccupancy | None = None
        self._version = -1

    def occupancy(self) -> NodeOccupancy:
        """The nodes as they are now; pods are followed from the first call on."""
        if self._known is None or self._version != self._records.version:
            self._jobs = self._jobs or JobPlaces(self._records)
            self._network.follow(self._records)
            self._known = NodeOccupancy(self._records, self._network, self._jobs)
            self._version = self._records.version
        return self._known


def resource_names(records: ClusterRecords) -> list[str]:
    """What nodes have: CPU, memory, GPUs, pods, and the rest by name; GPUs by name where there are several kinds."""
    there = sorted(name for name, amount in records.total.items() if amount > 0)
    gpus = [name for name in there if is_gpu(name)]
    first = [names.CPU, names.MEMORY, *([GPU] if gpus else [])]
    hidden = {*first, names.PODS, *(gpus if len(gpus) < 2 else ())}
    return [*first, names.PODS, *(name for name in there if name not in hidden)]
