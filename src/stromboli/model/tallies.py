"""How many pods of some description each node carries, kept up by moves: what affinity and spreading count."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.model.nodes import Columns, Ints
    from stromboli.model.task import Task

Counts = Callable[["Task"], bool]


class Tally:
    """One count column. `version` is another at every change, and never one that any tally had before."""

    __slots__ = ("by_node", "counts", "used", "version")

    def __init__(self, counts: Counts):
        self.counts = counts
        """Whether a task is counted; may read its kin, its shape and whether it is dying, nothing else."""
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


class Tallies:
    """All tallies of a cluster, made when first asked for and dropped when a whole cycle did not ask."""

    def __init__(self, columns: Columns):
        self._columns = columns
        self._all: dict[Hashable, Tally] = {}
        self._concerned: dict[tuple[int, int, bool], tuple[Tally, ...]] = {}
        self._clock = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    def get(self, key: Hashable, counts: Counts) -> Tally:
        """The tally of this description; ask anew each time rather than keep it."""
        tally = self._all.get(key)
        if tally is None:
            tally = self._all[key] = Tally(counts)
            self._concerned.clear()
            self._recount(tally)
        tally.used = True
        return tally

    def add(self, task: Task, row: int, sign: int) -> None:
        """A task entered the pod view of a node, or left it."""
        for tally in self._concerning(task):
            tally.by_node[row] += sign
            self._touch(tally)

    def recount(self) -> None:
        """Count everything afresh: nodes were laid out anew, or what a description means changed."""
        self._concerned.clear()
        for tally in self._all.values():
            self._recount(tally)

    def sweep(self) -> None:
        """Forget what nobody asked for since the last sweep."""
        unused = [key for key, tally in self._all.items() if not tally.used]
        for key in unused:
            del self._all[key]
        if unused:
            self._concerned.clear()
        for tally in self._all.values():
            tally.used = False

    def _touch(self, tally: Tally) -> None:
        self._clock += 1
        tally.version = self._clock

    def _concerning(self, task: Task) -> tuple[Tally, ...]:
        key = (task.kin.id, task.shape.id, task.dying)
        concerned = self._concerned.get(key)
        if concerned is None:
            concerned = tuple(tally for tally in self._all.values() if tally.counts(task))
            self._concerned[key] = concerned
        return concerned

    def _recount(self, tally: Tally) -> None:
        tally.by_node = np.zeros(len(self._columns), dtype=np.int64)
        self._touch(tally)
        known: dict[tuple[int, int, bool], bool] = {}
        for row, node in enumerate(self._columns.nodes):
            for task in node.tasks:
                key = (task.kin.id, task.shape.id, task.dying)
                counted = known.get(key)
                if counted is None:
                    counted = known[key] = tally.counts(task)
                if counted and task.in_view:
                    tally.by_node[row] += 1
