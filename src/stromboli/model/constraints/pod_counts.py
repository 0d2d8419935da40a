"""How many pods that match a predicate each node runs, updated by moves: for affinity and topology spread.

Predicates are evaluated once per equivalence class of tasks. A predicate may name index keys (labels, affinity terms),
of which a task must have at least one to match; then only classes with one of these keys are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stromboli.model.amounts import add_to

if TYPE_CHECKING:
    from stromboli.model.feed import Topic
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.task import Task

PodPredicate = Callable[["Task"], bool]
IndexKeys = tuple[Hashable, ...]
T = TypeVar("T")
UNINDEXED: IndexKeys = (None,)
"""The key of every task, and of predicates that name none."""


@dataclass(slots=True, eq=False, repr=False)
class PodCount:
    """One number per node."""

    counted: PodPredicate
    """The predicate; it may read a task's label set, shape and whether it is terminating, nothing else."""
    index_keys: IndexKeys
    changes: Topic[int]
    """The nodes whose number changed, by row."""
    by_node: Ints = field(init=False)
    used: bool = True

    @property
    def version(self) -> int:
        """The generation of the last change, or that of the cluster when the count was made."""
        return self.changes.generation

    def domain_sums(self, columns: Columns, key: str) -> tuple[Ints, Ints]:
        """The number of pods per domain of a topology key, and every node's domain (-1: none)."""
        codes, values = columns.label_codes(key)
        inside = codes >= 0
        sums = np.bincount(codes[inside], weights=self.by_node[inside], minlength=len(values))
        return sums.astype(np.int64), codes

    def in_domain_of_node(self, columns: Columns, key: str) -> Ints:
        """For each node, the number of pods in its domain; 0 where it belongs to none."""
        sums, codes = self.domain_sums(columns, key)
        per_node: Ints = np.append(sums, 0)[codes]
        return per_node


@dataclass(slots=True, eq=False, repr=False)
class _EquivalenceClass:
    """Tasks that no predicate can distinguish: one of them, the number by row, and the counts that include them."""

    sample: Task
    index_keys: IndexKeys
    rows: dict[int, int] = field(default_factory=dict)
    counts: list[PodCount] = field(default_factory=list)


class PodCounts:
    """All counts of a cluster, made on first use and dropped after a cycle without use."""

    def __init__(self, columns: Columns, keys_of: Callable[[Task], Iterable[Hashable]]):
        self._columns = columns
        self._keys_of = keys_of
        self._all: dict[Hashable, PodCount] = {}
        self._by_key: dict[Hashable, dict[PodCount, None]] = {}
        self._classes: dict[tuple[int, int, bool], _EquivalenceClass] = {}
        self._classes_by_key: dict[Hashable, dict[_EquivalenceClass, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def get(self, id: Hashable, counted: PodPredicate, index_keys: IndexKeys = ()) -> PodCount:
        """The count of this id, created if there is none; call this each time rather than keep the count."""
        count = self._all.get(id)
        if count is None:
            if not self._all:
                self._classify_tasks()
            count = self._all[id] = PodCount(counted, index_keys or UNINDEXED, self._columns.feed.topic())
            for key in count.index_keys:
                self._by_key.setdefault(key, {})[count] = None
            self._fill(count)
        count.used = True
        return count

    def add(self, task: Task, row: int, sign: int) -> None:
        """A task entered the pod view of a node, or left it."""
        task_class = self._class_of(task)
        add_to(task_class.rows, row, sign)
        for count in task_class.counts:
            count.by_node[row] += sign
            count.changes.note(row)

    def forget(self) -> None:
        """Drop all counts: nodes have other rows. Each is made again when it is used."""
        for known in (self._all, self._by_key, self._classes, self._classes_by_key):
            known.clear()

    def recount_namespace(self, namespace: str) -> None:
        """The labels of a namespace may have changed, which predicates read of its pods: count these again."""
        for task_class in self._classes.values():
            if task_class.sample.namespace == namespace:
                before, task_class.counts = task_class.counts, self._counts_of(task_class)
                for count in before:
                    if count not in task_class.counts:
                        self._shift(count, task_class, -1)
                for count in task_class.counts:
                    if count not in before:
                        self._shift(count, task_class, 1)

    def sweep(self) -> None:
        """Drop counts that were not used since the last sweep."""
        unused = {id: count for id, count in self._all.items() if not count.used}
        for id, count in unused.items():
            del self._all[id]
            for key in count.index_keys:
                _drop(self._by_key, key, count)
        self._sweep_classes(set(unused.values()))
        for count in self._all.values():
            count.used = False

    def _shift(self, count: PodCount, task_class: _EquivalenceClass, sign: int) -> None:
        """Add a class of tasks to a count, or remove it."""
        for row, number in task_class.rows.items():
            count.by_node[row] += sign * number
            count.changes.note(row)

    def _fill(self, count: PodCount) -> None:
        count.by_node = np.zeros(len(self._columns), dtype=np.int64)
        for task_class in _union(self._classes_by_key, count.index_keys):
            if count.counted(task_class.sample):
                task_class.counts.append(count)
                for row, number in task_class.rows.items():
                    count.by_node[row] += number

    # -- equivalence classes

    def _classify_tasks(self) -> None:
        for row, node in enumerate(self._columns.nodes):
            for task in node.tasks:
                if task.in_view:
                    add_to(self._class_of(task).rows, row, 1)

    def _class_of(self, task: Task) -> _EquivalenceClass:
        id = (task.label_set.id, task.shape.id, task.terminating)
        known = self._classes.get(id)
        if known is None:
            known = self._classes[id] = _EquivalenceClass(task, (*UNINDEXED, *self._keys_of(task)))
            for key in known.index_keys:
                self._classes_by_key.setdefault(key, {})[known] = None
            known.counts = self._counts_of(known)
        return known

    def _counts_of(self, task_class: _EquivalenceClass) -> list[PodCount]:
        counts = _union(self._by_key, task_class.index_keys)
        return [count for count in counts if count.counted(task_class.sample)]

    def _sweep_classes(self, dropped: set[PodCount]) -> None:
        """Drop classes without tasks, and all of them if there are no counts left."""
        if not self._all:
            self._classes.clear()
            self._classes_by_key.clear()
        for id, task_class in list(self._classes.items()):
            if dropped:
                task_class.counts = [count for count in task_class.counts if count not in dropped]
            if not task_class.rows:
                del self._classes[id]
                for key in task_class.index_keys:
                    _drop(self._classes_by_key, key, task_class)


def _union(index: dict[Hashable, dict[T, None]], keys: IndexKeys) -> list[T]:
    """The entries of the index under any of the keys, each once."""
    items: dict[T, None] = {}
    for key in keys:
        items.update(index.get(key, {}))
    return list(items)


def _drop(index: dict[Hashable, dict[T, None]], key: Hashable, item: T) -> None:
    del index[key][item]
    if not index[key]:
        del index[key]
