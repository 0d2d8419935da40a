"""The GPUs of all nodes as columns: the thousandths of each that will be free, its model, and what pods request.

If a node has registered its cards, its GPUs are these cards. Otherwise it has as many whole GPUs as its resource
states, not identified, the free ones first. What is leaving counts as free, what is promised as taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import card_names, names
from stromboli.model.cards.pod_cards import (
    UNSET,
    ContainerRequest,
    asked_of_gpu_share,
    container_requests,
)
from stromboli.model.constraints.node_selection import required_selector
from stromboli.model.dimensions import CPU
from stromboli.model.feed import ChangeLog

if TYPE_CHECKING:
    from stromboli.model.cards.device_config import NvidiaConfig
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cards.registrations import Models
    from stromboli.model.cluster import Cluster
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.node_columns import Bools, Ints, Node
    from stromboli.model.task import Task


# -- the request of a pod: a number of GPUs, and a part of each


WHOLE = 1000
"""A whole GPU, in thousandths."""
_MAX_KNOWN = 10_000


class GpuDemand(NamedTuple):
    """What a pod requests of a node: CPU, and of each of its GPUs the larger of a share and an amount of memory.

    Containers of a pod that request different parts count as if each requested the largest.
    """

    cpu: int = 0
    """In thousandths."""
    share: int = 0
    """Of each GPU, in thousandths; 0 if it requests only memory, or no GPU."""
    gpus: int = 0
    memory: int = 0
    """Of each GPU, in the unit of registrations: usually MiB."""

    def share_of(self, memory: int) -> int:
        """Its share of a GPU with an amount of memory, in thousandths; the whole GPU if the amount is unknown."""
        by_memory = -(-WHOLE * self.memory // memory) if memory else WHOLE if self.memory else 0
        return min(max(by_memory, self.share), WHOLE)


def gpu_demand(task: Task, dims: Dimensions, config: NvidiaConfig | None, resource: str) -> GpuDemand:
    """The demand of a task: parts of registered cards, else whole GPUs as a resource of nodes."""
    request, spec = task.shape.request, task.shape.spec
    cpu = int(request.get(CPU, 0))
    containers = container_requests(spec, config) if config is not None else ()
    if parts := [_vgpu_part(asked) for asked in containers if asked.cards]:
        counts, shares, memories = zip(*parts, strict=True)
        return GpuDemand(cpu, max(shares), sum(counts), max(memories))
    if memory := asked_of_gpu_share(spec, card_names.GPU_MEMORY):
        return GpuDemand(cpu, 0, 1, memory)
    if number := asked_of_gpu_share(spec, card_names.GPU_NUMBER):
        return GpuDemand(cpu, WHOLE, number)
    dim = dims.index.get(resource)
    gpus = int(request.get(dim, 0)) // 1000 if dim is not None else 0
    return GpuDemand(cpu, WHOLE, gpus) if gpus > 0 else GpuDemand(cpu)


class GpuDemands:
    """The demands of tasks, read once for all tasks of a shape."""

    def __init__(self, cluster: Cluster, resource: str):
        self._cluster = cluster
        self._resource = resource
        self._models: Models | None = None
        self._known: dict[int, GpuDemand] = {}

    def of(self, task: Task) -> GpuDemand:
        models = self._cluster.cards.models
        if models is not self._models or len(self._known) > _MAX_KNOWN:
            self._known.clear()
            self._models = models
        demand = self._known.get(task.shape.id)
        if demand is None:
            config = models.config.nvidia if models is not None and models.vgpu else None
            demand = gpu_demand(task, self._cluster.dims, config, self._resource)
            self._known[task.shape.id] = demand
        return demand


def _vgpu_part(asked: ContainerRequest) -> tuple[int, int, int]:
    """GPUs, and the share and the memory of each, that a container requests."""
    if asked.percent == UNSET:
        return asked.cards, min(10 * asked.cores, WHOLE), asked.memory
    return asked.cards, min(10 * max(asked.percent, asked.cores), WHOLE), 0


class GpuModels(NamedTuple):
    """The models of GPUs that a pod may run on; both empty: any."""

    models: tuple[str, ...] = ()
    """By the exact label `nvidia.com/gpu.product` of nodes, or the exact type of their cards."""
    types: tuple[str, ...] = ()
    """Parts of the type of cards, as in `nvidia.com/use-gputype`."""

    def allow(self, label: str, card_type: str) -> bool:
        """Whether a node with this label and this type of cards has one of these models."""
        if self.models:
            return label in self.models or card_type.removeprefix(f"{card_names.NVIDIA}-") in self.models
        return not self.types or any(part.upper() in card_type.upper() for part in self.types)


ANY_MODEL = GpuModels()


def asked_models(task: Task) -> GpuModels:
    """The models that a pod requests: by its node selector or node affinity, else by its annotation."""
    spec = task.shape.spec
    selected = (spec.node_selector or {}).get(names.GPU_PRODUCT)
    if selected is not None:
        return GpuModels((selected,))
    required = required_selector(spec)
    terms = required.node_selector_terms if required is not None else ()
    values = [
        requirement.values
        for term in terms
        for requirement in term.match_expressions
        if requirement.key == names.GPU_PRODUCT and requirement.operator == "In"
    ]
    if values and len(values) == len(terms):
        return GpuModels(tuple(dict.fromkeys(value for each in values for value in each)))
    types = task.annotations.get(card_names.USE_GPU_TYPE)
    return ANY_MODEL if types is None else GpuModels(types=tuple(part for part in types.split(",") if part))


# -- the columns


MAX_GPUS = 64
"""Maximum GPUs of a node that count; a node with more is scored by its first ones."""


def free_shares(cards: NodeCards) -> list[int]:
    """The free thousandths of each card of a node, once leaving tasks have left."""
    taken = cards.later
    shares = []
    for card in cards.cards:
        index = card.index
        held = max(10 * taken.cores[index], _share(taken.memory[index], card.memory))
        if taken.sharers[index] and (taken.sharers[index] >= card.count or not held):
            held = WHOLE
        shares.append(max(WHOLE - held, 0) if card.healthy else 0)
    return shares


def _share(memory: int, of: int) -> int:
    return WHOLE * memory // of if of else 0


class GpuColumns:
    """Free CPU and free GPUs of all nodes, updated for nodes that change."""

    def __init__(self, cluster: Cluster, resource: str = names.NVIDIA_GPU):
        self._cluster = cluster
        self._resource = resource
        self._layout = self._position = self._cards_position = -1
        self._objects = -1
        self.changes: ChangeLog[int] = ChangeLog()
        """The rows of nodes whose CPU or GPUs changed."""
        self.cpu: Ints = np.zeros(0, dtype=np.int64)
        """Free CPU of each node, in thousandths."""
        self.cpu_sizes: Ints = self.cpu
        """Total CPU of each node, in thousandths."""
        self.free: Ints = np.zeros((0, 1), dtype=np.int64)
        """Free thousandths of each GPU, a row for each node; 0 beyond its GPUs."""
        self.count: Ints = np.zeros(0, dtype=np.int64)
        """The number of healthy GPUs of each node."""
        self.memory: Ints = np.zeros(0, dtype=np.int64)
        """The memory of a GPU of each node, as registered; 0: unknown."""
        self._sizes: list[int] = []
        """The different memories, ascending."""
        self._size_of: Ints = self.memory
        """The index into them for each node."""
        self.models: list[tuple[str, str]] = []
        """The model of each node by its label, and the type of its cards."""

    def update(self) -> None:
        """Apply the changes since the last call."""
        columns, ledger = self._cluster.columns, self._cluster.cards
        rows = columns.changes.since(self._position) if columns.layout == self._layout else None
        named = ledger.changes.since(self._cards_position)
        if rows is None or named is None or columns.objects != self._objects:
            self._start()
        else:
            nodes = self._cluster.nodes
            rows |= {nodes[name].row for name in named if name in nodes and nodes[name].row >= 0}
            for row in sorted(rows):
                self._read(row, columns.nodes[row])
        self._layout, self._objects = columns.layout, columns.objects
        self._position, self._cards_position = columns.changes.position, ledger.changes.position

    def _start(self) -> None:
        nodes = self._cluster.columns.nodes
        count = len(nodes)
        self.cpu, self.count = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self.memory = np.zeros(count, dtype=np.int64)
        self.cpu_sizes = self._cluster.columns.allocatable[CPU].copy()
        self.free = np.zeros((count, max(map(self._width, nodes), default=1)), dtype=np.int64)
        self.models = [("", "")] * count
        for row, node in enumerate(nodes):
            cards = self._cards(node)
            self.models[row] = (
                node.labels.get(names.GPU_PRODUCT, ""),
                cards.cards[0].type if cards is not None else "",
            )
            self.memory[row] = cards.cards[0].memory if cards is not None else 0
            self._read(row, node)
        sizes, self._size_of = np.unique(self.memory, return_inverse=True)
        self._sizes = sizes.tolist()
        self.changes.note_everything()

    def _cards(self, node: Node) -> NodeCards | None:
        known = self._cluster.cards.nodes.get(node.name)
        return None if known is None else known.get(card_names.VGPU) or known.get(card_names.GPU_SHARE)

    def _width(self, node: Node) -> int:
        cards = self._cards(node)
        return max(1, min(MAX_GPUS, len(cards.cards) if cards is not None else self._whole(node.row)[1]))

    def _whole(self, row: int) -> tuple[int, int]:
        """The number of free whole GPUs of a node, and of all."""
        dim = self._cluster.dims.index.get(self._resource)
        columns = self._cluster.columns
        if dim is None or dim >= len(columns.idle):
            return 0, 0
        free = columns.idle[dim, row] + columns.releasing[dim, row] - columns.pipelined[dim, row]
        return max(int(free), 0) // 1000, max(int(columns.allocatable[dim, row]), 0) // 1000

    def _read(self, row: int, node: Node) -> None:
        columns = self._cluster.columns
        self.cpu[row] = columns.idle[CPU, row] + columns.releasing[CPU, row] - columns.pipelined[CPU, row]
        width = self.free.shape[1]
        cards = self._cards(node)
        if cards is not None:
            shares = free_shares(cards)[:width]
            self.count[row] = sum(card.healthy for card in cards.cards[:width])
        else:
            free, count = self._whole(row)
            shares = [WHOLE] * min(free, width)
            self.count[row] = min(count, width)
        self.free[row] = [*shares, *[0] * (width - len(shares))]
        self.changes.note(row)

    def shares_of(self, demand: GpuDemand, rows: Ints) -> Ints:
        """The share of a GPU of these nodes that a pod requests, in thousandths: memory as a share of their cards."""
        if not demand.memory:
            return np.full(len(rows), demand.share)
        shares = np.array([demand.share_of(size) for size in self._sizes], dtype=np.int64)
        return shares[self._size_of[rows]]

    def usual_memory(self) -> int:
        """The memory that most GPUs have, as registered; 0: unknown."""
        counts = np.bincount(self._size_of, weights=self.count * (self.memory > 0))
        return self._sizes[counts.argmax()] if self._sizes else 0

    def allow(self, models: GpuModels) -> Bools:
        """The nodes that have one of these models of GPUs."""
        allowed = {node: models.allow(*node) for node in set(self.models)}
        return np.array([allowed[node] for node in self.models], dtype=bool)
