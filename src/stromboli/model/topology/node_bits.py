"""Sets of nodes as the bits of a whole number: unions and differences of thousands of nodes take a microsecond."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from stromboli.model.node_columns import Ints


class NodeNumbers:
    """The bit of each node; unlike its row it stays the same when other nodes come and go."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        """The number of each node, by name."""
        self.everyone = 0
        """The set of all nodes."""
        self._free: list[int] = []

    def add(self, name: str) -> int:
        """Give a new node a number."""
        number = self._free.pop() if self._free else len(self.number)
        self.number[name] = number
        self.everyone |= 1 << number
        return number

    def remove(self, name: str) -> int:
        """Take the number of a node back; another node may get it."""
        number = self.number.pop(name)
        self._free.append(number)
        self.everyone &= ~(1 << number)
        return number

    def bits(self, names: Iterable[str]) -> int:
        """The set of those of these nodes that exist."""
        numbers = [self.number[name] for name in names if name in self.number]
        if not numbers:
            return 0
        flags = np.zeros(max(numbers) + 1, dtype=bool)
        flags[numbers] = True
        return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")

    def in_order(self, names: Sequence[str]) -> Ints:
        """The numbers of all nodes in the order of the columns, for `rows_of`."""
        return np.fromiter((self.number[name] for name in names), dtype=np.int64, count=len(names))


def rows_of(bits: int, numbers: Ints) -> Ints:
    """The rows of a set of nodes, ascending; `numbers` has the number of the node in each row."""
    if not bits or not len(numbers):
        return np.zeros(0, dtype=np.int64)
    size = max(int(numbers.max()), bits.bit_length()) // 8 + 1
    packed = np.frombuffer(bits.to_bytes(size, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(packed, bitorder="little")[numbers])
