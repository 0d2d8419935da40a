"""What a reader of a record should know: a bounded number of notes, equal ones counted."""

from __future__ import annotations

from collections.abc import Iterable

EXAMPLES = 5
"""Of a kind of note."""


class RunNotes:
    """Notes by kind: how many there were, and the first few."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def add(self, kind: str, example: str) -> None:
        """One more of a kind, such as `jobs are left out`."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < EXAMPLES and example not in examples:
            examples.append(example)

    def add_all(self, kind: str, examples: Iterable[str]) -> None:
        for example in examples:
            self.add(kind, example)

    def lines(self) -> list[str]:
        """A sentence for each kind."""
        lines = []
        for kind, count in self._counts.items():
            examples = self._examples[kind]
            more = ", ..." if count > len(examples) else ""
            lines.append(f"{count} {kind}: {'; '.join(examples)}{more}")
        return lines
