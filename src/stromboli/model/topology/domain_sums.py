"""What domains have and hold, summed over their nodes when it is asked for.

The columns are the only truth. Of a block (idle, used, ...) that was asked for before, only nodes that changed since
are read again, so a question between two moves costs as much as the moves, and an undo needs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stromboli.model.node_columns import (
    ALLOCATABLE,
    IDLE,
    PIPELINED,
    RELEASING,
    USED,
    Columns,
    Ints,
    read_only,
)

if TYPE_CHECKING:
    from stromboli.model.topology.domain import Domain

SATURATED = 2**61
"""What a sum counts for that is larger, as of thousandths of bytes over all nodes; three of these add up in 64 bits."""
_FEW = 64
"""If more than one node in so many changed, computing all sums anew costs less than updating them."""


class DomainSums:
    """Sums over these domains, shaped (resource, domain); valid as long as domains and columns keep their layout."""

    def __init__(self, domains: Sequence[Domain], columns: Columns):
        self.index: dict[str, int] = {domain.name: place for place, domain in enumerate(domains)}
        """The place of each domain, by name: `sums.idle[CPU, sums.index["rack-1"]]`."""
        self._columns = columns
        self._groups = RowGroups([domain.rows for domain in domains], len(columns))
        self._blocks: dict[int, _BlockSums] = {}

    @property
    def clock(self) -> int:
        """Counts the changes of nodes: as long as it is the same, so are the sums."""
        return self._columns.clock

    @property
    def allocatable(self) -> Ints:
        """What may be allocated on the nodes of each domain."""
        return self._block(ALLOCATABLE)

    @property
    def used(self) -> Ints:
        """What tasks hold there, those that are leaving included."""
        return self._block(USED)

    @property
    def idle(self) -> Ints:
        """What is free there now."""
        return self._block(IDLE)

    @property
    def leaving(self) -> Ints:
        """What will be free there beyond what is idle, once all that is leaving has left and what is promised came."""
        leaving: Ints = self._block(RELEASING) - self._block(PIPELINED)
        return leaving

    @property
    def future_idle(self) -> Ints:
        """What will be free there once all that is promised and all that is leaving has come to pass."""
        future: Ints = self._block(IDLE) + self.leaving
        return future

    def _block(self, block: int) -> Ints:
        sums = self._blocks.get(block)
        if sums is None:
            sums = self._blocks[block] = _BlockSums(self._groups, self._columns, block)
        return sums.current()


class RowGroups:
    """Groups of places in the columns, which may overlap, laid out for sums over each."""

    def __init__(self, groups: Sequence[Ints], count: int):
        sizes = np.array([len(rows) for rows in groups], dtype=np.int64)
        self.count = len(groups)
        self.longest = int(sizes.max(initial=0))
        self._rows = np.concatenate([*groups, np.zeros(0, dtype=np.int64)])
        self._filled = np.flatnonzero(sizes)  # reduceat does not know empty groups
        self._starts = (np.cumsum(sizes) - sizes)[self._filled]
        owners = np.repeat(np.arange(self.count), sizes)
        self._owners = owners[np.argsort(self._rows, kind="stable")]
        self._ends = np.cumsum(np.bincount(self._rows, minlength=count))

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by node summed over each group; whole numbers that exceed 64 bits wrap around."""
        sums = np.zeros((*values.shape[:-1], self.count), dtype=values.dtype)
        if len(self._filled):
            sums[..., self._filled] = np.add.reduceat(values[..., self._rows], self._starts, axis=-1)
        return sums

    def of_row(self, row: int) -> Ints:
        """The groups that have a node."""
        begin = self._ends[row - 1] if row else 0
        return self._owners[begin : self._ends[row]]


class _BlockSums:
    """The sums of one block of the columns, with the numbers that they were made of."""

    def __init__(self, groups: RowGroups, columns: Columns, block: int):
        self._groups, self._columns, self._block = groups, columns, block
        self._compute(columns.amounts[block])

    def current(self) -> Ints:
        columns = self._columns
        if columns.clock != self._clock:
            values = columns.amounts[self._block]
            changed = np.flatnonzero(columns.version > self._clock)
            if len(changed) * _FEW <= len(columns) and not self._large:
                self._update(values, changed)
            else:
                self._compute(values)
        return read_only(self._sums)

    def _compute(self, values: Ints) -> None:
        self._clock = self._columns.clock
        self._values = values.copy()
        self._sums = self._groups.sums(values)
        self._large = self._may_overflow(values)
        if self._large:
            high = self._groups.sums(values >> 32)
            limit = SATURATED >> 32
            self._sums = np.where(high >= limit, SATURATED, np.where(high < -limit, -SATURATED, self._sums))

    def _update(self, values: Ints, changed: Ints) -> None:
        differences = values[:, changed] - self._values[:, changed]
        if not differences.any():  # a move changes few of the blocks
            self._clock = self._columns.clock
        elif self._may_overflow(values[:, changed]):
            self._compute(values)
        else:
            self._clock = self._columns.clock
            self._values[:, changed] = values[:, changed]
            for row, difference in zip(changed.tolist(), differences.T, strict=True):
                self._sums[:, self._groups.of_row(row)] += difference[:, None]

    def _may_overflow(self, values: Ints) -> bool:
        largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        return largest * self._groups.longest >= SATURATED
