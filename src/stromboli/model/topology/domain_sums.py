"""Domains by their nodes; their capacity and use, summed over their nodes on demand.

The columns are the only source. For a number (free, leaving, ...) that was used before, only nodes that changed since
are read again. So a query between two moves costs as much as the moves, and an undo needs nothing. An overbooked node
counts as full: it does not reduce what is free on other nodes of its domain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stromboli.model.node_columns import (
    ALLOCATABLE,
    IDLE,
    PIPELINED,
    RELEASING,
    Columns,
    Ints,
    read_only,
)

if TYPE_CHECKING:
    from stromboli.model.topology.domain import Domain

SATURATED = 2**61
"""The maximum of a sum, such as thousandths of bytes over all nodes; three of these can be added in 64 bits."""
_FEW = 64
"""If more than one node in this many changed, computing all sums again costs less than updating them."""


class DomainLookup:
    """Domains by their nodes and tiers; valid as long as domains and columns keep their layout."""

    def __init__(self, domains: Iterable[Domain], nodes: int):
        self.domains = sorted(domains, key=lambda domain: (domain.tier, domain.name))
        """The lowest first."""
        self.place = {domain: place for place, domain in enumerate(self.domains)}
        """The place of each domain among them."""
        self.count = len(self.domains)
        self.groups = RowGroups([domain.rows for domain in self.domains], nodes)
        self._nodes = nodes
        self._of_tier: dict[int, Ints] = {}

    def containing(self, rows: Iterable[int]) -> list[Domain]:
        """The domains that have all of these nodes, the lowest first."""
        wanted = set(rows)
        if not wanted:
            return list(self.domains)
        owners = np.concatenate([self.groups.of_row(row) for row in wanted])
        having_all = np.bincount(owners, minlength=len(self.domains)) == len(wanted)
        return [self.domains[place] for place in np.flatnonzero(having_all)]

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by node summed over each domain."""
        return self.groups.sums(values)

    def places(self, tier: int) -> range:
        """The places of the domains of a tier."""
        first, last = (find(self.domains, tier, key=_tier) for find in (bisect_left, bisect_right))
        return range(first, last)

    def of_tier(self, tier: int) -> Ints:
        """The place of the domain of a tier that has each node, of several the first by name; -1: none has it."""
        known = self._of_tier.get(tier)
        if known is None:
            known = self._of_tier[tier] = np.full(self._nodes, -1, dtype=np.int64)
            for place in reversed(self.places(tier)):
                known[self.domains[place].rows] = place
        return known


def _tier(domain: Domain) -> int:
    return domain.tier


class DomainSums:
    """Sums over the domains of a lookup, shaped (resource, place of the domain); valid as long as the lookup."""

    def __init__(self, lookup: DomainLookup, columns: Columns):
        self.lookup = lookup
        self._columns = columns
        self._known: dict[Read, _Sums] = {}

    @property
    def allocatable(self) -> Ints:
        """The allocatable amounts of the nodes of each domain."""
        return self._sum(_allocatable)

    @property
    def free(self) -> Ints:
        """The free amounts now."""
        return self._sum(_free)

    @property
    def free_in_future(self) -> Ints:
        """The free amounts once leaving tasks have left and promised tasks have started."""
        return self._sum(_free_in_future)

    @property
    def leaving(self) -> Ints:
        """The amounts of leaving tasks less those of promised tasks."""
        return self._sum(_leaving)

    def _sum(self, read: Read) -> Ints:
        sums = self._known.get(read)
        if sums is None:
            sums = self._known[read] = _Sums(self.lookup.groups, self._columns, read)
        return sums.current()


Read = Callable[[Ints], Ints]
"""Computes a number by node from the amounts of nodes, shaped (amount, resource, node)."""


def _allocatable(amounts: Ints) -> Ints:
    allocatable: Ints = amounts[ALLOCATABLE]
    return allocatable


def _free(amounts: Ints) -> Ints:
    free: Ints = amounts[IDLE].clip(min=0)
    return free


def _leaving(amounts: Ints) -> Ints:
    leaving: Ints = amounts[RELEASING] - amounts[PIPELINED]
    return leaving


def _free_in_future(amounts: Ints) -> Ints:
    free: Ints = (amounts[IDLE] + _leaving(amounts)).clip(min=0)
    return free


class RowGroups:
    """Groups of places in the columns, which may overlap, laid out for sums over each."""

    def __init__(self, groups: Sequence[Ints], count: int):
        sizes = np.array([len(rows) for rows in groups], dtype=np.int64)
        self.count = len(groups)
        self.longest = int(sizes.max(initial=0))
        self._rows = np.concatenate([*groups, np.zeros(0, dtype=np.int64)])
        self._filled = np.flatnonzero(sizes)  # reduceat needs groups that are not empty
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


class _Sums:
    """The sums of one number of the nodes, with the numbers that they were made of."""

    def __init__(self, groups: RowGroups, columns: Columns, read: Read):
        self._groups, self._columns, self._read = groups, columns, read
        self._compute()

    def current(self) -> Ints:
        columns = self._columns
        if columns.clock != self._clock:
            changed = np.flatnonzero(columns.version > self._clock)
            if len(changed) * _FEW <= len(columns) and not self._large:
                self._update(self._read(columns.amounts[:, :, changed]), changed)
            else:
                self._compute()
        return read_only(self._sums)

    def _compute(self) -> None:
        values = self._read(self._columns.amounts)
        self._clock = self._columns.clock
        self._values = values.copy()
        self._sums = self._groups.sums(values)
        self._large = self._may_overflow(values)
        if self._large:
            high = self._groups.sums(values >> 32)
            limit = SATURATED >> 32
            self._sums = np.where(high >= limit, SATURATED, np.where(high < -limit, -SATURATED, self._sums))

    def _update(self, values: Ints, changed: Ints) -> None:
        differences = values - self._values[:, changed]
        if not differences.any():  # a move changes few of the numbers
            self._clock = self._columns.clock
        elif self._may_overflow(values):
            self._compute()
        else:
            self._clock = self._columns.clock
            self._values[:, changed] = values
            for row, difference in zip(changed.tolist(), differences.T, strict=True):
                self._sums[:, self._groups.of_row(row)] += difference[:, None]

    def _may_overflow(self, values: Ints) -> bool:
        largest = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        return largest * self._groups.longest >= SATURATED
