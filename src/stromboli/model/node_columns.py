"""Nodes as arrays: one contiguous row per resource, one column per node, ordered so that ties go to the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stromboli.model.amounts import plus
from stromboli.model.dimensions import Dimensions
from stromboli.model.feed import Feed, Topic
from stromboli.model.shape import VIEW_ROWS, Shape
from stromboli.model.status import Weight

if TYPE_CHECKING:
    from stromboli.api.types.node import Node as NodeObject
    from stromboli.model.amounts import Amounts, Vector
    from stromboli.model.task import Task

Ints = NDArray[np.int64]

# The blocks of numbers: five rows of amounts per dimension, two of the pod view.
AMOUNTS, VIEWS = 5, 2
ALLOCATABLE, USED, IDLE, RELEASING, PIPELINED = range(AMOUNTS)
VIEW_ALLOCATABLE, VIEW_USED = range(VIEWS)
MAX_NUMBER = 2**52
"""Numbers of nodes below this can be added, and multiplied with a thousand, as plain integers or as NumPy's."""
_FEW = 4
"""If more than one node in this many changed, summing up all nodes costs less than updating a sum."""
Bools = NDArray[np.bool_]
T = TypeVar("T")
A = TypeVar("A", bound=NDArray[Any])


def read_only(column: A) -> A:
    """A read-only view of the same numbers."""
    view = column.view()
    view.flags.writeable = False
    return view


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A node by name: its object once that is known, its tasks, and its index in the columns (-1: none)."""

    name: str
    """Its name, unique in the cluster."""
    object: NodeObject | None = None
    """The Node as the API server has it; none while only pods name it."""
    created: float = 0.0
    """When its object was created, in seconds since 1970."""
    row: int = -1
    """Its index in the columns, as in `columns.idle[CPU, node.row]`, until nodes change; -1: no object."""
    tasks: dict[Task, None] = field(default_factory=dict)
    """The tasks that are on it or pipelined to it; follows every move."""
    labels: dict[str, str] = field(default_factory=dict)
    """The labels of its object."""
    allocatable: Amounts = field(default_factory=dict)
    """What the scheduler may allocate, including oversubscription; changes with its object alone."""
    served: Amounts = field(default_factory=dict)
    """The maximum that its devices may serve of extended resources that its object does not list."""
    view_allocatable: tuple[int, ...] = (0,) * VIEW_ROWS
    """What Kubernetes' own filters and scores see: the node status as it is."""

    def __repr__(self) -> str:
        return f"Node({self.name})"


class Columns:
    """The numbers of all nodes. Rows follow (creation time, name), so the first of equals is the lowest row."""

    def __init__(self, dims: Dimensions, feed: Feed | None = None):
        self.dims = dims
        self.feed = feed if feed is not None else Feed()
        """Where changes are noted."""
        self.nodes: list[Node] = []
        """All nodes with an object, by creation time and name; the place in this list is the node's `row`."""
        self.changes: Topic[int] = self.feed.numbers
        """The nodes whose numbers changed, by index."""
        self.last: tuple[int, Shape | None] = (-1, None)
        """The node changed last, and the shape if that change was one more task of it holding its request."""
        self._resize(0)
        self._spare = SpareSums(self)

    @property
    def clock(self) -> int:
        """The generation of the last change to any node; `version` holds that of each node's own last change."""
        return self.changes.generation

    @property
    def layout(self) -> int:
        """The generation in which nodes last got their rows; caches by row are invalid when it increases."""
        return self.feed.layout.generation

    @property
    def objects(self) -> int:
        """The generation of the last change to node objects (labels, taints, sizes)."""
        return self.feed.nodes.generation

    def _resize(self, count: int) -> tuple[Ints, Ints]:
        self.version: Ints = np.zeros(count, dtype=np.int64)
        self._label_codes: dict[str, tuple[Ints, dict[str, int]]] = {}
        self._derived: dict[Callable[[Columns], Any], Any] = {}
        return self._set_dimensions(len(self.dims), count)

    def _set_dimensions(self, dims: int, count: int) -> tuple[Ints, Ints]:
        """All numbers are rows of one table, so that a node's numbers are read at once.

        Only methods of this class write them; all other code, including plugins, has read-only views.
        """
        self._table: Ints = np.zeros((AMOUNTS * dims + VIEWS * VIEW_ROWS, count), dtype=np.int64)
        self._numbers: dict[int, list[int] | None] = {}
        amounts = self._table[: AMOUNTS * dims].reshape(AMOUNTS, dims, count)
        views = self._table[AMOUNTS * dims :].reshape(VIEWS, VIEW_ROWS, count)
        self._allocatable, self._used, self._idle, self._releasing, self._pipelined = amounts
        self._view_allocatable, self._view = views
        self.amounts, self.views = read_only(amounts), read_only(views)
        self.allocatable: Ints = self.amounts[ALLOCATABLE]
        """What the scheduler may allocate: `columns.allocatable[CPU, node.row]`."""
        self.used: Ints = self.amounts[USED]
        """What tasks hold, including releasing tasks."""
        self.idle: Ints = self.amounts[IDLE]
        """What is free now: allocatable less used."""
        self.releasing: Ints = self.amounts[RELEASING]
        """What releasing tasks hold."""
        self.pipelined: Ints = self.amounts[PIPELINED]
        """What is promised to pipelined tasks."""
        self.view_allocatable, self.view = self.views
        return amounts, views

    def __len__(self) -> int:
        return len(self.nodes)

    # -- layout

    def arrange(self, nodes: list[Node]) -> None:
        """Lay all nodes out again; those that had an index keep their numbers."""
        nodes.sort(key=lambda node: (node.created, node.name))
        old_rows = np.array([node.row for node in nodes], dtype=np.int64)
        kept = np.flatnonzero(old_rows >= 0)
        old_amounts, old_views = self.amounts, self.views
        self.nodes = nodes
        amounts, views = self._resize(len(nodes))
        amounts[:, : old_amounts.shape[1], kept] = old_amounts[:, :, old_rows[kept]]
        views[:, :, kept] = old_views[:, :, old_rows[kept]]
        for row, node in enumerate(nodes):
            node.row = row
        self.feed.layout.note(None)
        self.feed.nodes.note_everything()
        self.changes.note_everything()
        self.version[:] = self.clock

    def widen(self) -> None:
        """Add rows for new dimensions."""
        missing = len(self.dims) - self.idle.shape[0]
        if missing > 0:
            old_amounts, old_views = self.amounts, self.views
            amounts, views = self._set_dimensions(len(self.dims), len(self.version))
            amounts[:, : old_amounts.shape[1]], views[:] = old_amounts, old_views
            self.feed.layout.note(None)

    def set_size(self, node: Node) -> None:
        """Copy a node's allocatable amounts; what its tasks hold stays as it is."""
        row = node.row
        self._allocatable[:, row] = 0
        for dim, amount in node.allocatable.items():
            self._allocatable[dim, row] = int(amount)
        for dim, amount in node.served.items():
            if not self._allocatable[dim, row]:
                self._allocatable[dim, row] = int(amount)
        self._idle[:, row] = self._allocatable[:, row] - self._used[:, row]
        self._view_allocatable[:, row] = node.view_allocatable
        self.object_changed(node)

    def object_changed(self, node: Node) -> None:
        """Record that labels, taints or sizes of a node changed."""
        self.feed.nodes.note(node.name)
        self._label_codes.clear()
        self._derived.clear()
        self._touch(node.row, None)

    # -- tasks

    def weigh(self, row: int, shape: Shape, weight: Weight, in_view: bool, sign: int) -> None:
        """Add a task to a node, seen in the pod view or not, or subtract it."""
        added = self._added_by(shape, weight, in_view)
        if sign > 0:
            self._table[:, row] += added
        else:
            self._table[:, row] -= added
        self._touch(row, shape if sign > 0 and weight.used and not weight.releasing else None)

    def _added_by(self, shape: Shape, weight: Weight, in_view: bool) -> Ints:
        """What a task adds to all numbers of its node: a column of the table."""
        known = shape.added.get((weight, in_view))
        if known is None or len(known) != len(self._table):
            added = np.zeros((AMOUNTS, len(self.idle)), dtype=np.int64)
            added[USED], added[IDLE] = weight.used, -weight.used
            added[RELEASING], added[PIPELINED] = weight.releasing, weight.pipelined
            views = np.zeros((VIEWS, VIEW_ROWS), dtype=np.int64)
            views[VIEW_USED] = shape.view * in_view
            known = np.concatenate([(added * shape.dense(len(self.idle))).ravel(), views.ravel()])
            shape.added[weight, in_view] = known
        return known

    def weigh_many(self, rows: list[int], shape: Shape, weight: Weight, in_view: bool) -> None:
        """Add equal tasks to their nodes, each to the one at its place in `rows`; seen in the pod view or not.

        This is part of laying the nodes out: `arrange` has noted that all of them changed.
        """
        touched, counts = np.unique(np.array(rows, dtype=np.int64), return_counts=True)
        added = shape.dense(self.idle.shape[0])[:, None] * counts
        if weight.used:
            self._idle[:, touched] -= added
            self._used[:, touched] += added
        if weight.releasing:
            self._releasing[:, touched] += added
        if weight.pipelined:
            self._pipelined[:, touched] += added
        if in_view:
            self._view[:, touched] += shape.view[:, None] * counts
        self._numbers.clear()

    def promise(self, row: int, amount: Vector, sign: int) -> None:
        """Count an amount as promised on a node, or no longer."""
        self._pipelined[:, row] += sign * self.dense(amount)
        self._touch(row, None)

    def dense(self, amount: Vector) -> Ints:
        """An amount as one column of the node table."""
        column = np.zeros(len(self.idle), dtype=np.int64)
        for dim, part in amount.items():
            column[dim] = int(part)
        return column

    @property
    def future_idle(self) -> Ints:
        """What will be free on nodes once releasing tasks have left and pipelined tasks have started."""
        future: Ints = self.idle + self.releasing - self.pipelined
        return future

    def _touch(self, row: int, shape: Shape | None) -> None:
        changes = self.changes
        changes.note(row)
        self.version[row] = changes.generation
        self.last = (row, shape)
        self._numbers.pop(row, None)

    def numbers(self, row: int) -> list[int] | None:
        """All amounts of a node, then all of its pod view; none if one is so large that arithmetic may wrap around."""
        try:
            return self._numbers[row]
        except KeyError:
            numbers: list[int] = self._table[:, row].tolist()
            small = min(numbers) > -MAX_NUMBER and max(numbers) < MAX_NUMBER
            known = self._numbers[row] = numbers if small else None
            return known

    # -- labels as codes

    def label_codes(self, key: str) -> tuple[Ints, dict[str, int]]:
        """The value of one label on every node as a small number (-1: no such label), and the number of each value."""
        known = self._label_codes.get(key)
        if known is None:
            codes: dict[str, int] = {}
            column = np.fromiter(
                (
                    codes.setdefault(node.labels[key], len(codes)) if key in node.labels else -1
                    for node in self.nodes
                ),
                dtype=np.int64,
                count=len(self.nodes),
            )
            column.flags.writeable = False
            known = self._label_codes[key] = (column, codes)
        return known

    def derived(self, make: Callable[[Columns], T]) -> T:
        """Something computed from the node objects alone, cached until one of them changes."""
        known = self._derived.get(make)
        if known is None:
            known = self._derived[make] = make(self)
        value: T = known
        return value

    @property
    def free(self) -> Amounts:
        """What is free now, summed over the nodes: an overbooked node counts as full, not as negative."""
        return self._spare.current()[0]

    @property
    def overbooked(self) -> Amounts:
        """What tasks that stay hold beyond the size of their nodes, for example because a node shrank."""
        return self._spare.current()[1]

    def total(self, column: Ints) -> Amounts:
        """The exact sum over all nodes, by dimension; sums may exceed 64 bits, so the halves are added apart."""
        high, low = column >> 32, column & 0xFFFFFFFF
        sums = [(int(h) << 32) + int(s) for h, s in zip(high.sum(axis=1), low.sum(axis=1), strict=True)]
        return {dim: amount for dim, amount in enumerate(sums) if amount}

    def row(self, name: str) -> dict[str, dict[str, int]]:
        """One node's numbers by name, for debugging."""
        index = next(node.row for node in self.nodes if node.name == name)
        return {
            column: {
                resource: int(getattr(self, column)[dim, index])
                for dim, resource in enumerate(self.dims.names)
            }
            for column in ("allocatable", "idle", "used", "releasing", "pipelined")
        }


class SpareSums:
    """Sums over all nodes of what is free and of what is overbooked; only nodes that changed are read again."""

    def __init__(self, columns: Columns):
        self._columns = columns
        self._layout = self._position = -1
        self._parts: Ints = np.zeros((2, 0, 0), dtype=np.int64)
        self._sums: tuple[Amounts, Amounts] = ({}, {})

    def current(self) -> tuple[Amounts, Amounts]:
        """Return what is free and what is overbooked; the caller must not change either."""
        columns, has_same_rows = self._columns, self._columns.layout == self._layout
        if has_same_rows and columns.changes.position == self._position:
            return self._sums
        changed = columns.changes.since(self._position) if has_same_rows else None
        if changed is None or len(changed) * _FEW > len(columns):
            self._parts = self._parts_of(slice(None))
            self._sums = columns.total(self._parts[0]), columns.total(self._parts[1])
        else:
            rows = np.fromiter(changed, dtype=np.int64, count=len(changed))
            parts = self._parts_of(rows)
            difference = parts - self._parts[:, :, rows]
            self._parts[:, :, rows] = parts
            free, overbooked = (plus(self._sums[part], columns.total(difference[part])) for part in (0, 1))
            self._sums = free, overbooked
        self._layout, self._position = columns.layout, columns.changes.position
        return self._sums

    def _parts_of(self, rows: slice | Ints) -> Ints:
        idle = self._columns.idle[:, rows]
        parts: Ints = np.empty((2, *idle.shape), dtype=np.int64)
        np.maximum(idle, 0, out=parts[0])
        np.maximum(-(idle + self._columns.releasing[:, rows]), 0, out=parts[1])
        return parts
