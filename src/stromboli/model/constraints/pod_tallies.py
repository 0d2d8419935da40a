"""How many pods of some description each node carries, kept up by moves: what affinity and spreading count.

Tasks that no description can tell apart are asked about once. A description may name marks (a label, a term) of which
a task must bear one to be counted; then only such tasks are asked about, however many others there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.task import Task

Counts = Callable[["Task"], bool]
Marks = tuple[Hashable, ...]
T = TypeVar("T")
ANYBODY: Marks = (None,)


class Tally:
    """One count column. `version` is another at every change, and never one that any tally had before."""

    __slots__ = ("by_node", "counts", "marks", "used", "version")

    def __init__(self, counts: Counts, marks: Marks = ANYBODY):
        self.counts = counts
        """Whether a task is counted; may read its label set, its shape and whether it is dying, nothing else."""
        self.marks = marks
        self.by_node: Ints = np.zeros(0, dtype=np.int64)
        self.version = 0
        self.used = True

    def domain_sums(self, columns: Columns, key: str) -> tuple[Ints, Ints]:
        """Per domain of a topology key, how many are counted there; and every node's domain (-1: none)."""
        codes, values = columns.label_codes(key)
        inside = codes >= 0
        sums = np.bincount(codes[inside], weights=self.by_node[inside], minlength=len(values))
        return sums.astype(np.int64), codes

    def around(self, columns: Columns, key: str) -> Ints:
        """How many are counted in the domain of each node; 0 where a node belongs to none."""
        sums, codes = self.domain_sums(columns, key)
        nearby: Ints = np.append(sums, 0)[codes]
        return nearby


class _Alike:
    """Tasks that no tally can tell apart: one of them, where they are, and the tallies that count them."""

    __slots__ = ("marks", "rows", "sample", "tallies")

    def __init__(self, sample: Task, marks: Marks):
        self.sample = sample
        self.marks = marks
        self.rows: dict[int, int] = {}
        self.tallies: list[Tally] = []


def labels_of(task: Task) -> Iterable[Hashable]:
    """The marks of a task where nothing else is said: its labels."""
    return task.label_set.labels.items()


class Tallies:
    """All tallies of a cluster, made when first asked for and dropped when a whole cycle did not ask."""

    def __init__(self, columns: Columns, marks_of: Callable[[Task], Iterable[Hashable]] = labels_of):
        self._columns = columns
        self._marks_of = marks_of
        self._all: dict[Hashable, Tally] = {}
        self._by_mark: dict[Hashable, dict[Tally, None]] = {}
        self._census: dict[tuple[int, int, bool], _Alike] = {}
        self._census_by_mark: dict[Hashable, dict[_Alike, None]] = {}
        self._clock = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    def get(self, key: Hashable, counts: Counts, marks: Marks = ()) -> Tally:
        """The tally of this description; ask anew each time rather than keep it."""
        tally = self._all.get(key)
        if tally is None:
            if not self._all:
                self._take_census()
            tally = self._all[key] = Tally(counts, marks or ANYBODY)
            for mark in tally.marks:
                self._by_mark.setdefault(mark, {})[tally] = None
            self._count(tally)
        tally.used = True
        return tally

    def add(self, task: Task, row: int, sign: int) -> None:
        """A task entered the pod view of a node, or left it."""
        alike = self._alike(task)
        _shift(alike.rows, row, sign)
        for tally in alike.tallies:
            tally.by_node[row] += sign
            self._touch(tally)

    def recount(self) -> None:
        """Count everything afresh: nodes were laid out anew, or what a description means changed."""
        if self._all:
            self._take_census()
            for tally in self._all.values():
                self._count(tally)

    def sweep(self) -> None:
        """Forget what nobody asked for since the last sweep."""
        unused = {key: tally for key, tally in self._all.items() if not tally.used}
        for key, tally in unused.items():
            del self._all[key]
            for mark in tally.marks:
                _drop(self._by_mark, mark, tally)
        self._tidy_census(set(unused.values()))
        for tally in self._all.values():
            tally.used = False

    def _touch(self, tally: Tally) -> None:
        self._clock += 1
        tally.version = self._clock

    def _count(self, tally: Tally) -> None:
        """Count a tally from nothing, and let everybody whom it counts know."""
        tally.by_node = np.zeros(len(self._columns), dtype=np.int64)
        self._touch(tally)
        for alike in _all_of(self._census_by_mark, tally.marks):
            if tally.counts(alike.sample):
                alike.tallies.append(tally)
                for row, count in alike.rows.items():
                    tally.by_node[row] += count

    # -- the census: who is where

    def _take_census(self) -> None:
        self._census.clear()
        self._census_by_mark.clear()
        tallies, self._by_mark = self._by_mark, {}  # they all count from nothing afterwards
        for row, node in enumerate(self._columns.nodes):
            for task in node.tasks:
                if task.in_view:
                    _shift(self._alike(task).rows, row, 1)
        self._by_mark = tallies

    def _alike(self, task: Task) -> _Alike:
        key = (task.label_set.id, task.shape.id, task.dying)
        alike = self._census.get(key)
        if alike is None:
            alike = self._census[key] = _Alike(task, (*ANYBODY, *self._marks_of(task)))
            for mark in alike.marks:
                self._census_by_mark.setdefault(mark, {})[alike] = None
            alike.tallies = [one for one in _all_of(self._by_mark, alike.marks) if one.counts(task)]
        return alike

    def _tidy_census(self, dropped: set[Tally]) -> None:
        """Forget tallies that are gone and tasks that are nowhere; without tallies nobody need be known."""
        if not self._all:
            self._census.clear()
            self._census_by_mark.clear()
        for key, alike in list(self._census.items()):
            if dropped:
                alike.tallies = [tally for tally in alike.tallies if tally not in dropped]
            if not alike.rows:
                del self._census[key]
                for mark in alike.marks:
                    _drop(self._census_by_mark, mark, alike)


def _shift(rows: dict[int, int], row: int, by: int) -> None:
    count = rows.get(row, 0) + by
    if count:
        rows[row] = count
    else:
        rows.pop(row, None)


def _all_of(index: dict[Hashable, dict[T, None]], marks: Marks) -> list[T]:
    """Whatever the index has under any of the marks, once."""
    found: dict[T, None] = {}
    for mark in marks:
        found.update(index.get(mark, {}))
    return list(found)


def _drop(index: dict[Hashable, dict[T, None]], mark: Hashable, item: T) -> None:
    del index[mark][item]
    if not index[mark]:
        del index[mark]
