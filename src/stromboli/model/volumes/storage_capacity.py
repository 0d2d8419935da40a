"""How much of a storage class can still be provisioned for a node: what drivers report, less what is promised.

A report applies to the nodes that match its selector. A volume that is provisioned for a node is charged to every
report of its class that applies there, from the grant to a task until the claim is bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api.types.meta import Requirement
from stromboli.api.types.pod import NodeSelectorTerm
from stromboli.model.constraints.node_selection import matching_term
from stromboli.model.volumes.claim_kind import MAX_BYTES, amount_of
from stromboli.model.volumes.volume_reach import rows_with_label

if TYPE_CHECKING:
    from stromboli.api.types.meta import LabelSelector
    from stromboli.api.types.storage import CSIStorageCapacity
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Bools, Columns, Ints, Node

FEW_NODES = 64
"""A report for at most this many nodes is looked up node by node; others are compared with all nodes at once."""


class Provision(NamedTuple):
    """A volume that is to be provisioned on a node."""

    storage_class: str
    node: str
    request: int


class StorageCapacity:
    """The reports of all classes, and what is promised of them."""

    def __init__(self, objects: LookupObjects, columns: Columns, nodes: dict[str, Node]):
        self._objects = objects
        self._columns = columns
        self._nodes = nodes
        self._class_of: dict[str, str] = {}
        self._by_class: dict[str, dict[str, None]] = {}
        self._promised: dict[str, dict[str, Provision]] = {}
        self._classes: dict[str, ClassCapacity] = {}

    def update(self, key: str) -> None:
        """A report was added, changed or removed."""
        report = self._objects.storage_capacities.get(key)
        before = self._class_of.pop(key, None)
        if report is not None and before == report.storage_class_name:
            known = self._classes.get(before)
            if known is None or known.replace(key, report):
                self._class_of[key] = before
                return
        if before is not None:
            del self._by_class[before][key]
            self._classes.pop(before, None)
        if report is not None:
            name = self._class_of[key] = report.storage_class_name
            self._by_class.setdefault(name, {})[key] = None
            self._classes.pop(name, None)

    def promise(self, claim: str, provision: Provision) -> None:
        """A claim is to be provisioned on a node."""
        self._promised.setdefault(provision.storage_class, {})[claim] = provision
        self._charge(provision, 1)

    def release(self, claim: str, provision: Provision) -> None:
        """A claim is no longer to be provisioned on a node."""
        del self._promised[provision.storage_class][claim]
        self._charge(provision, -1)

    def _charge(self, provision: Provision, sign: int) -> None:
        known = self._classes.get(provision.storage_class)
        node = self._nodes.get(provision.node)
        if known is not None and known.objects == self._columns.objects and node is not None:
            known.charge(node.row, sign * provision.request)

    def of_class(self, storage_class: str) -> ClassCapacity:
        """What is left of a class."""
        known = self._classes.get(storage_class)
        if known is None or known.objects != self._columns.objects:
            listed = sorted(self._by_class.get(storage_class, ()))
            reports = {key: self._objects.storage_capacities[key] for key in listed}
            known = self._classes[storage_class] = ClassCapacity(self._columns, reports)
            for provision in self._promised.get(storage_class, {}).values():
                if provision.node in self._nodes:
                    known.charge(self._nodes[provision.node].row, provision.request)
        return known


class ClassCapacity:
    """The reports of one class, by the nodes for which they hold."""

    def __init__(self, columns: Columns, reports: dict[str, CSIStorageCapacity]):
        self.objects = columns.objects
        self._count = len(columns)
        self._numbers = {key: number for number, key in enumerate(reports)}
        self._topologies = [report.node_topology for report in reports.values()]
        self._largest = np.array([_largest_volume(report) for report in reports.values()], dtype=np.int64)
        self._room = np.array([_room(report) for report in reports.values()], dtype=np.int64)
        self._promised = [0] * len(reports)
        self._free: Ints = self._room.copy()
        self._wide: list[tuple[int, Bools]] = []
        self._near: dict[int, list[int]] = {}
        for number, topology in enumerate(self._topologies):
            self._place(number, _matching_rows(columns, topology))
        self._pair_row = np.array([row for row, near in self._near.items() for _ in near], dtype=np.int64)
        self._pair_report = np.array([each for near in self._near.values() for each in near], dtype=np.int64)

    def _place(self, number: int, rows: Ints) -> None:
        if len(rows) > FEW_NODES:
            matching = np.zeros(self._count, dtype=bool)
            matching[rows] = True
            self._wide.append((number, matching))
            return
        for row in rows.tolist():
            self._near.setdefault(row, []).append(number)

    def replace(self, key: str, report: CSIStorageCapacity) -> bool:
        """Update the amounts of a report; not possible if its nodes changed."""
        number = self._numbers[key]
        if report.node_topology != self._topologies[number]:
            return False
        self._largest[number], self._room[number] = _largest_volume(report), _room(report)
        self._count_free(number)
        return True

    def charge(self, row: int, amount: int) -> None:
        """Count an amount as promised on a node, or no longer so."""
        wide = [number for number, matching in self._wide if row >= 0 and matching[row]]
        for number in (*self._near.get(row, ()), *wide):
            self._promised[number] += amount
            self._count_free(number)

    def _count_free(self, number: int) -> None:
        self._free[number] = self._room[number] - min(self._promised[number], MAX_BYTES)

    def enough(self, largest: Ints, total: Ints) -> Bools:
        """Nodes for which one report has capacity for a total of bytes, and for the largest volume.

        Volumes that are already promised count only for the largest volume.
        """
        passing = np.zeros(self._count, dtype=bool)
        if len(self._pair_row):
            rows, reports = self._pair_row, self._pair_report
            enough = (total[rows] == 0) | (self._free[reports] >= total[rows])
            passing[rows[enough & (self._largest[reports] >= largest[rows])]] = True
        for number, matching in self._wide:
            enough = (total == 0) | (self._free[number] >= total)
            passing |= matching & enough & (self._largest[number] >= largest)
        return passing

    def enough_on(self, row: int, largest: int, total: int) -> bool:
        """The same for one node."""
        wide = (number for number, matching in self._wide if matching[row])
        return any(
            self._largest[number] >= largest and (total == 0 or self._free[number] >= total)
            for number in (*self._near.get(row, ()), *wide)
        )

    def reported_for(self, row: int) -> int | None:
        """The capacity of a node that a report states; none if there is no report."""
        wide = (number for number, matching in self._wide if matching[row])
        numbers = (*self._near.get(row, ()), *wide)
        return int(self._room[numbers[-1]]) if numbers else None

    def most_free(self) -> int:
        """The maximum that any report has left, for messages."""
        return int(self._free.max(initial=0))


def _largest_volume(report: CSIStorageCapacity) -> int:
    """The largest volume that can be provisioned; -1: none can."""
    limit = report.capacity if report.maximum_volume_size is None else report.maximum_volume_size
    return amount_of(limit) if limit is not None else -1


def _room(report: CSIStorageCapacity) -> int:
    """The limit of all volumes together; a report without a capacity limits single volumes only."""
    if report.capacity is None:
        return MAX_BYTES * 2
    return max(amount_of(report.capacity), _largest_volume(report))


def _matching_rows(columns: Columns, selector: LabelSelector | None) -> Ints:
    """The rows of the nodes that match the topology of a report; none without a topology."""
    if selector is None:
        return np.zeros(0, dtype=np.int64)
    if len(selector.match_labels) == 1 and not selector.match_expressions:
        ((key, value),) = selector.match_labels.items()
        return rows_with_label(columns, key, (value,))
    labels = (Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    expressions = (*labels, *selector.match_expressions)
    if not expressions:
        return np.arange(len(columns))
    return np.flatnonzero(matching_term(columns, NodeSelectorTerm(match_expressions=expressions)))
