"""What a reader of a record should know: a bounded number of notes, equal ones counted."""

from __future__ import annotations

from collections import Counter

from stromboli.simulator.count_sentences import count_sentence

EXAMPLES = 5
"""Of a kind of note."""


class RunNotes:
    """Notes by kind: how many there were, and the first few."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._examples: dict[tuple[str, str], list[str]] = {}

    def add(self, noun: str, what: str, example: str) -> None:
        """Another of a kind, such as `job` and `{is} left out`."""
        self._counts[noun, what] += 1
        examples = self._examples.setdefault((noun, what), [])
        if len(examples) < EXAMPLES and example not in examples:
            examples.append(example)

    def lines(self) -> list[str]:
        """A sentence for each kind."""
        lines = []
        for (noun, what), count in self._counts.items():
            examples = self._examples[noun, what]
            more = ", ..." if count > len(examples) else ""
            lines.append(f"{count_sentence(count, noun, what)}: {'; '.join(examples)}{more}")
        return lines
