"""Which nodes patterns select by their names, with a bound on all of that work.

HyperNodes are taken by age, so that a new one never costs an old one its nodes. What patterns may cost is known before
any is matched. Many patterns have plain text in them, such as `rack-17-`; they are matched with names that have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stromboli.api.patterns import PatternError, compiled_size, matching_texts, program_size
from stromboli.model.topology.node_bits import NodeNumbers

MAX_MATCHING = 2_000_000_000
"""What it may take to match all patterns of HyperNodes with all names of nodes: some four seconds, once."""
MAX_MATCHING_OF_ONE = MAX_MATCHING // 10
"""The same for the patterns of a single HyperNode."""
COST_OF_INSTRUCTION = 1000
"""What it takes to compile an instruction of a pattern; to run one on a byte is 1."""
COST_OF_MATCH = 500
"""What it takes to match any pattern with any name."""
_WAY_OUT = "give patterns a longer text that only their nodes have, or select nodes by labels"
_PART = re.compile(r"(?:([A-Za-z0-9-]+)|\[\^?+[^\]\[\\]+\]|\\[.dwsDWSbBAz-]|[.^$])([*?]|\{[^}]*\})?[+?]?")
"""Letters, or anything that stands for a character or a place; then how often the last of it may come."""

Age = tuple[float, str]
"""When a HyperNode was created, and its name."""


class _Asker(NamedTuple):
    age: Age
    patterns: Sequence[str]


@dataclass(slots=True)
class _Pattern:
    """A pattern, and the names that have its text."""

    text: str
    instructions: int
    fixed_cost: int
    candidates: int = 0
    """How many names have its text."""
    candidate_bytes: int = 0
    """How long they are together."""
    bits: int | None = None
    """The nodes that it selects, once it was matched."""

    def count(self, names: Iterable[str], sign: int) -> None:
        for name in names:
            if self.text in name:
                self.candidates += sign
                self.candidate_bytes += sign * len(name)

    def cost(self, names_bytes: int) -> int:
        matching = COST_OF_MATCH * self.candidates + self.instructions * self.candidate_bytes
        return self.fixed_cost + names_bytes + matching


class NamePatterns:
    """The nodes that each pattern selects, and the HyperNodes whose patterns cannot be used."""

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        """Why a HyperNode's patterns are not used, by its name."""
        self._askers: dict[str, _Asker] = {}
        self._patterns: dict[str, _Pattern] = {}
        """What is known of patterns as of the last update, of all that somebody asked for within the bounds."""
        self._stale = False
        self._bytes = 0
        """How long the names of all nodes are together."""

    def ask(self, asker: str, age: Age, patterns: Sequence[str]) -> None:
        """A HyperNode selects nodes by these patterns."""
        self._askers[asker] = _Asker(age, patterns)
        self._stale = True

    def forget(self, asker: str) -> None:
        """A HyperNode asks no more."""
        if self._askers.pop(asker, None) is not None:
            self._stale = True
            self.faults.pop(asker, None)

    def select(self, asker: str) -> int:
        """The nodes that the patterns of a HyperNode select."""
        bits = 0
        if asker in self._askers and asker not in self.faults:
            for pattern in self._askers[asker].patterns:
                bits |= self._patterns[pattern].bits or 0
        return bits

    def update(
        self, numbers: NodeNumbers, new: Iterable[str], removed: Iterable[str], freed: int
    ) -> set[str]:
        """Nodes came or went (by name; `freed` has their bits), or patterns changed. Whom that may concern."""
        new, removed = list(new), list(removed)
        self._bytes += sum(map(len, new)) - sum(map(len, removed))
        if not (self._stale or ((new or removed) and self._askers)):
            return set()
        self._stale = False
        for known in self._patterns.values():
            known.count(removed, -1)
            known.count(new, 1)
        faults, self.faults = self.faults, {}
        self._check(numbers)
        changed = self._match(numbers, new, freed)
        return {
            asker
            for asker, (_, patterns) in self._askers.items()
            if faults.get(asker) != self.faults.get(asker) or not changed.isdisjoint(patterns)
        }

    # -- the bound

    def _check(self, numbers: NodeNumbers) -> None:
        """Find the HyperNodes whose patterns are used."""
        known, self._patterns = self._patterns, {}
        spent = 0
        for asker, (_, patterns) in sorted(self._askers.items(), key=lambda item: item[1].age):
            if spent > MAX_MATCHING:
                self.faults[asker] = (
                    f"matching the patterns of older HyperNodes takes all the time that there is: {_WAY_OUT}"
                )
                continue
            try:
                cost = self._cost(patterns, known, numbers)
            except PatternError as error:
                self.faults[asker] = f"a pattern of its members is invalid: {error}"
                continue
            if cost > MAX_MATCHING_OF_ONE:
                self.faults[asker] = f"matching its patterns takes too long: {_WAY_OUT}"
            spent += min(cost, MAX_MATCHING_OF_ONE)

    def _cost(self, patterns: Iterable[str], known: dict[str, _Pattern], numbers: NodeNumbers) -> int:
        cost = 0
        for pattern in patterns:
            entry = self._patterns.get(pattern) or known.get(pattern)
            if entry is None:
                size = COST_OF_INSTRUCTION * compiled_size(pattern)
                entry = _Pattern(plain_text(pattern), program_size(pattern), size)
                entry.count(numbers.number, 1)
            self._patterns[pattern] = entry
            cost += entry.cost(self._bytes)
            if cost > MAX_MATCHING_OF_ONE:
                break
        return cost

    # -- matching

    def _match(self, numbers: NodeNumbers, new: Sequence[str], freed: int) -> set[str]:
        """Match new names with all patterns, and all names with new patterns; the patterns whose nodes changed."""
        used = {
            pattern
            for asker, (_, patterns) in self._askers.items()
            if asker not in self.faults
            for pattern in patterns
        }
        changed = set()
        for pattern, entry in self._patterns.items():
            before, entry.bits = entry.bits, None
            if pattern in used:
                names = numbers.number if before is None else new
                candidates = [name for name in names if entry.text in name]
                selected = numbers.bits(matching_texts(pattern, candidates)) if candidates else 0
                entry.bits = selected | ((before or 0) & ~freed)
            if before != entry.bits:
                changed.add(pattern)
        return changed


def plain_text(pattern: str) -> str:
    """A text that every name has in it that the pattern matches; empty if none is plain to see."""
    texts, place = [""], 0
    while place < len(pattern):
        part = _PART.match(pattern, place)
        if part is None:
            return ""
        letters, optional = part[1] or "", part[2]
        texts.append(letters[:-1] if optional else letters)
        place = part.end()
    return max(texts, key=len)
