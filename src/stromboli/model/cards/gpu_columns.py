"""The GPUs of all nodes as columns: how many thousandths of each will be free, and of which model they are.

Where a node has registered its cards, they are these; else they are as many whole GPUs as its resource says, of which
nobody knows which is which: the free ones stand first. What is leaving counts as free, what is promised as taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import card_names, names
from stromboli.model.cards.gpu_demands import WHOLE, GpuDemand, GpuModels
from stromboli.model.change_log import ChangeLog
from stromboli.model.dimensions import CPU

if TYPE_CHECKING:
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Ints, Node

MOST_GPUS = 64
"""GPUs of a node that count, at most; a node with more is scored by its first ones."""


def free_shares(cards: NodeCards) -> list[int]:
    """The free thousandths of each card of a node, once those that are leaving have left."""
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
    """Free CPU and free GPUs of all nodes, kept up where nodes change."""

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
        """CPU of each node in all, in thousandths."""
        self.free: Ints = np.zeros((0, 1), dtype=np.int64)
        """Free thousandths of each GPU, a row for each node; 0 where it has none."""
        self.count: Ints = np.zeros(0, dtype=np.int64)
        """How many GPUs each node has that work."""
        self.memory: Ints = np.zeros(0, dtype=np.int64)
        """The memory of a GPU of each node, as registered; 0: unknown."""
        self._sizes: list[int] = []
        """The different memories, ascending."""
        self._size_of: Ints = self.memory
        """Which of them each node has."""
        self.models: list[tuple[str, str]] = []
        """The model of each node by its label, and the type of its cards."""

    def update(self) -> None:
        """Follow what changed since the last time."""
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
        return max(1, min(MOST_GPUS, len(cards.cards) if cards is not None else self._whole(node.row)[1]))

    def _whole(self, row: int) -> tuple[int, int]:
        """How many whole GPUs of a node are free, and how many it has."""
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
        """What a pod asks of a GPU of these nodes, in thousandths: memory is a share of the cards that are there."""
        if not demand.memory:
            return np.full(len(rows), demand.share)
        shares = np.array([demand.share_of(size) for size in self._sizes], dtype=np.int64)
        return shares[self._size_of[rows]]

    def usual_memory(self) -> int:
        """The memory that most GPUs have, as registered; 0: unknown."""
        counts = np.bincount(self._size_of, weights=self.count * (self.memory > 0))
        return self._sizes[counts.argmax()] if self._sizes else 0

    def allow(self, models: GpuModels) -> Bools:
        """Which nodes have one of these models of GPUs."""
        allowed = {node: models.allow(*node) for node in set(self.models)}
        return np.array([allowed[node] for node in self.models], dtype=bool)
