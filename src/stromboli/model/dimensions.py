"""The row of each resource in the node columns."""

from collections.abc import Iterable, Mapping

CPU, MEMORY, PODS = 0, 1, 2
MOST = 512
"""More resource names than any cluster has: limits how far hostile objects can enlarge the columns."""


class TooManyResources(ValueError):
    """Objects name more different resources than the scheduler keeps columns for."""


class Dimensions:
    """Rows are numbered in order of first use and never change; cpu, memory and pods always exist."""

    __slots__ = ("index", "names")

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        """The name of each resource, by its number."""
        self.index: dict[str, int] = {name: row for row, name in enumerate(self.names)}
        """The number of each resource, by its name: `dims.index.get("nvidia.com/gpu")` is none if unused."""

    def __len__(self) -> int:
        return len(self.names)

    def row(self, name: str) -> int:
        """The row of a resource, a new one on first use."""
        row = self.index.get(name)
        if row is None:
            if len(self.names) >= MOST:
                raise TooManyResources(f"resource {name!r}: more than {MOST} different resource names")
            row = self.index[name] = len(self.names)
            self.names.append(name)
        return row

    def rows(self, amounts: Mapping[str, int]) -> dict[int, int]:
        """The same amounts, keyed by row."""
        return {self.row(name): amount for name, amount in amounts.items()}

    def named(self, amounts: Mapping[int, int]) -> dict[str, int]:
        """The same amounts, keyed by resource name: cpu, memory, then the others by name."""
        return {self.names[row]: amounts[row] for row in self.ordered(amounts)}

    def ordered(self, rows: Iterable[int]) -> list[int]:
        """Rows in the order of messages: cpu, memory, then by name."""
        return sorted(rows, key=lambda row: (row > MEMORY, row if row <= MEMORY else 0, self.names[row]))
