"""Members of HyperNodes by pattern: which names of nodes each pattern matches (spec 01 7.1).

The work of all patterns is bounded. The oldest HyperNodes are served first, so that a new one never costs an old one
its nodes, and what a pattern may cost is known before it is matched. Many patterns contain plain text, such as
`rack-17-`; these are matched only with the names that contain the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from stromboli.api.patterns import PatternError, compiled_size, matching_texts, program_size

MAX_MATCHING = 2_000_000_000
"""The maximum cost of matching all patterns of HyperNodes with all names of nodes: some four seconds, once."""
MAX_MATCHING_OF_ONE = MAX_MATCHING // 10
"""The same for the patterns of a single HyperNode."""
COST_OF_INSTRUCTION = 1000
"""The cost of compiling an instruction of a pattern; running one on a byte costs 1."""
COST_OF_MATCH = 500
"""The cost of matching any pattern with any name."""
_REMEDY = "give patterns a longer text that only their nodes have, or select nodes by labels"
_PART = re.compile(r"(?:([A-Za-z0-9-]+)|\[\^?+[^\]\[\\]+\]|\\[.dwsDWSbBAz-]|[.^$])([*?]|\{[^}]*\})?[+?]?")
"""Letters, or anything that matches a character or a position; then the quantifier of its last character."""

Asked = Mapping[str, Sequence[str]]
"""The patterns of each HyperNode that has any, the oldest HyperNode first."""


@dataclass(slots=True)
class _Pattern:
    """A pattern, and the names that contain its text."""

    text: str
    instructions: int
    fixed_cost: int
    candidates: int = 0
    """The number of names with its text."""
    candidate_bytes: int = 0
    """Their total length."""
    matched: set[str] | None = None
    """The names that it matches; none before it is matched."""

    def count(self, names: Iterable[str], sign: int) -> None:
        for name in names:
            if self.text in name:
                self.candidates += sign
                self.candidate_bytes += sign * len(name)

    def cost(self, names_bytes: int) -> int:
        matching = COST_OF_MATCH * self.candidates + self.instructions * self.candidate_bytes
        return self.fixed_cost + names_bytes + matching


class NamePatterns:
    """The names that each pattern matches, and the HyperNodes whose patterns cannot be used."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        """Why the patterns of a HyperNode are not used, by its name."""
        self._patterns: dict[str, _Pattern] = {}
        """The patterns of all HyperNodes within the bounds."""
        self._names: Set[str] = frozenset()
        self._bytes = 0
        """The total length of the names."""

    def update(self, asked: Asked, names: Set[str]) -> None:
        """Match these patterns with these names; a pattern that is known is matched with new names only."""
        new, removed = names - self._names, self._names - names
        self._names = names
        self._bytes += sum(map(len, new)) - sum(map(len, removed))
        for known in self._patterns.values():
            known.count(removed, -1)
            known.count(new, 1)
            if known.matched is not None:
                known.matched -= removed
        self._check(asked)
        self._match(asked, new)

    def matched(self, pattern: str) -> Set[str]:
        """The names that a pattern matches; empty if no HyperNode may use it."""
        known = self._patterns.get(pattern)
        return known.matched or frozenset() if known is not None else frozenset()

    # -- the bound

    def _check(self, asked: Asked) -> None:
        """Find the HyperNodes whose patterns are used."""
        known, self._patterns = self._patterns, {}
        self.faults = {}
        spent = 0
        for hyper_node, patterns in asked.items():
            if spent > MAX_MATCHING:
                self.faults[hyper_node] = (
                    f"matching the patterns of older HyperNodes takes all the time that there is: {_REMEDY}"
                )
                continue
            try:
                cost = self._cost(patterns, known)
            except PatternError as error:
                self.faults[hyper_node] = f"a pattern of its members is invalid: {error}"
                continue
            if cost > MAX_MATCHING_OF_ONE:
                self.faults[hyper_node] = f"matching its patterns takes too long: {_REMEDY}"
            spent += min(cost, MAX_MATCHING_OF_ONE)

    def _cost(self, patterns: Iterable[str], known: dict[str, _Pattern]) -> int:
        cost = 0
        for pattern in patterns:
            entry = self._patterns.get(pattern) or known.get(pattern)
            if entry is None:
                size = COST_OF_INSTRUCTION * compiled_size(pattern)
                entry = _Pattern(plain_text(pattern), program_size(pattern), size)
                entry.count(self._names, 1)
            self._patterns[pattern] = entry
            cost += entry.cost(self._bytes)
            if cost > MAX_MATCHING_OF_ONE:
                break
        return cost

    # -- matching

    def _match(self, asked: Asked, new: Set[str]) -> None:
        """Match new names with all patterns, and all names with new patterns."""
        used = {
            pattern
            for hyper_node, patterns in asked.items()
            if hyper_node not in self.faults
            for pattern in patterns
        }
        for pattern, entry in self._patterns.items():
            if pattern not in used:
                entry.matched = None
                continue
            names = new
            if entry.matched is None:
                entry.matched, names = set(), self._names
            if candidates := [name for name in names if entry.text in name]:
                entry.matched.update(matching_texts(pattern, candidates))


def plain_text(pattern: str) -> str:
    """A text that every matching name contains; empty if none can be derived."""
    texts, place = [""], 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            return ""
        letters, optional = part[1] or "", part[2]
        texts.append(letters[:-1] if optional else letters)
        place = part.end()
    return max(texts, key=len)
