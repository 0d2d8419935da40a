"""The nodes that HyperNodes select as members: by exact name, by pattern, by labels (spec 01 7.1).

A set of nodes is the bits of a whole number, so that unions and differences of thousands of nodes take a microsecond.
The work of all patterns is bounded: HyperNodes are served by age, so that a new one never costs an old one its nodes,
and what a pattern may cost is known before it is matched. Many patterns contain plain text, such as `rack-17-`; these
are matched only with the names that contain the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api.patterns import PatternError, compiled_size, matching_texts, program_size
from stromboli.api.selectors import valid_label_requirement
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.model.node_columns import Ints

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNodeMember


# -- sets of nodes


class NodeNumbers:
    """The bit of each node; unlike its row it stays the same when other nodes are added or removed."""

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
        """Release the number of a node; another node may get it."""
        number = self.number.pop(name)
        self._free.append(number)
        self.everyone &= ~(1 << number)
        return number

    def bits(self, names: Iterable[str]) -> int:
        """The set of the existing ones of these nodes."""
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


# -- members by pattern


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

Age = tuple[float, str]
"""The creation time of a HyperNode, and its name."""


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
    """The number of names with its text."""
    candidate_bytes: int = 0
    """Their total length."""
    bits: int | None = None
    """The nodes that it selects, once it is matched."""

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
        """The patterns of the last update, of all HyperNodes within the bounds."""
        self._stale = False
        self._bytes = 0
        """The total length of the names of all nodes."""

    def ask(self, asker: str, age: Age, patterns: Sequence[str]) -> None:
        """Set the patterns of a HyperNode."""
        self._askers[asker] = _Asker(age, patterns)
        self._stale = True

    def forget(self, asker: str) -> None:
        """Remove the selectors of a HyperNode."""
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
        """Apply changes of nodes (by name; `freed` has their bits) and patterns; the HyperNodes they may affect."""
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
                    f"matching the patterns of older HyperNodes takes all the time that there is: {_REMEDY}"
                )
                continue
            try:
                cost = self._cost(patterns, known, numbers)
            except PatternError as error:
                self.faults[asker] = f"a pattern of its members is invalid: {error}"
                continue
            if cost > MAX_MATCHING_OF_ONE:
                self.faults[asker] = f"matching its patterns takes too long: {_REMEDY}"
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


# -- members by name, pattern and labels


class Members(NamedTuple):
    """The members of a HyperNode, each once."""

    names: tuple[str, ...]
    """Nodes by name."""
    patterns: tuple[str, ...]
    """Nodes by pattern."""
    selectors: tuple[LabelSelector, ...]
    """Nodes by labels."""
    children: tuple[str, ...]
    """HyperNodes by name; other selectors of HyperNodes are skipped."""

    @staticmethod
    def of(members: Iterable[HyperNodeMember]) -> Members:
        names, patterns, children = dict[str, None](), dict[str, None](), dict[str, None]()
        selectors = []
        for type, selector in ((member.type, member.selector) for member in members):
            if selector.exact_name:
                (names if type == "Node" else children)[selector.exact_name] = None
            if type == "Node" and selector.regex_match is not None and selector.regex_match.pattern:
                patterns[selector.regex_match.pattern] = None
            if type == "Node" and selector.label_match is not None:
                selectors.append(selector.label_match)
        return Members(tuple(names), tuple(patterns), tuple(selectors), tuple(children))


class MemberSelection:
    """The nodes of each HyperNode, without those of its child HyperNodes; updated with nodes and members."""

    def __init__(self) -> None:
        self.nodes = NodeNumbers()
        self.patterns = NamePatterns()
        self._labels: dict[int, Mapping[str, str]] = {}
        """The labels of nodes by their numbers."""
        self._label_index = LabelIndex()
        self._members: dict[str, Members] = {}
        self._namers: dict[str, dict[str, None]] = {}
        """HyperNodes that name a node, by the name of the node."""
        self._concerned: set[str] = set()
        self._new: dict[str, None] = {}
        """Nodes added since the last call of `concerned`."""
        self._removed: dict[str, None] = {}
        """Nodes removed since then, and possibly added again."""
        self._freed = 0
        """Their previous numbers."""

    # -- HyperNodes

    def set_members(self, hyper_node: str, age: Age, members: Members) -> None:
        """Set the members of a HyperNode."""
        self.drop_members(hyper_node)
        self._members[hyper_node] = members
        self._concerned.add(hyper_node)
        for name in members.names:
            self._namers.setdefault(name, {})[hyper_node] = None
        if members.selectors:
            self._label_index.ask(hyper_node, members.selectors, self._labels)
        if members.patterns:
            self.patterns.ask(hyper_node, age, members.patterns)

    def drop_members(self, hyper_node: str) -> None:
        """Remove a HyperNode."""
        members = self._members.pop(hyper_node, None)
        self._concerned.discard(hyper_node)
        if members is not None:
            for name in members.names:
                del self._namers[name][hyper_node]
                if not self._namers[name]:
                    del self._namers[name]
            self._label_index.forget(hyper_node)
            self.patterns.forget(hyper_node)

    # -- nodes

    def set_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node, or set its labels."""
        number = self.nodes.number.get(name)
        before = self._labels[number] if number is not None else None
        if number is None:
            number = self.nodes.add(name)
            self._new[name] = None
            self._concerned.update(self._namers.get(name, ()))
        self._labels[number] = labels
        self._label_index.change(number, before, labels)

    def drop_node(self, name: str) -> None:
        """Remove a node."""
        if name in self.nodes.number:
            number = self.nodes.remove(name)
            if name in self._new:
                del self._new[name]
            else:
                self._removed[name] = None
                self._freed |= 1 << number
            self._concerned.update(self._namers.get(name, ()))
            self._label_index.change(number, self._labels.pop(number), None)

    # -- the selection

    def concerned(self) -> set[str]:
        """HyperNodes whose nodes or problems may have changed since the last call."""
        concerned, self._concerned = self._concerned, set()
        concerned.update(self._label_index.concerned())
        concerned |= self.patterns.update(self.nodes, self._new, self._removed, self._freed)
        self._new, self._removed, self._freed = {}, {}, 0
        return concerned

    def select(self, hyper_node: str) -> int:
        """The nodes that a HyperNode names itself."""
        members = self._members[hyper_node]
        bits = self.nodes.bits(members.names) | self.patterns.select(hyper_node)
        for selector in members.selectors:
            bits |= self._label_index.select(selector, self.nodes.everyone)
        return bits

    def unknown(self, hyper_node: str) -> Iterator[str]:
        """Names of members that are not nodes of the cluster."""
        return (name for name in self._members[hyper_node].names if name not in self.nodes.number)


# -- members by labels


Question = tuple[str, str | None]
"""A label and a value that a selector tests; none: whether the label exists."""


class LabelIndex:
    """Sets of nodes by the labels that selectors of HyperNodes test, and these HyperNodes."""

    def __init__(self) -> None:
        self._with_value: dict[str, dict[str, int]] = {}
        self._with_key: dict[str, int] = {}
        self._askers: dict[Question, dict[str, None]] = {}
        self._questions: dict[str, set[Question]] = {}
        self._uses: dict[str, int] = {}
        """The number of tests of each label."""
        self._negative: dict[str, None] = {}
        """HyperNodes that select nodes by a missing label: every new node affects them."""
        self._touched: set[Question] = set()
        """Tests whose result changed for some node since the last call of `concerned`."""
        self._other_nodes = False
        """Whether nodes were added or removed since."""

    # -- selectors of HyperNodes

    def ask(
        self, asker: str, selectors: Iterable[LabelSelector], labels: Mapping[int, Mapping[str, str]]
    ) -> None:
        """Index the tests of a HyperNode; `labels` has the labels of all nodes, by number."""
        requirements = [requirement for selector in selectors for requirement in selector.match_expressions]
        questions: set[Question] = {pair for selector in selectors for pair in selector.match_labels.items()}
        questions |= {question for requirement in requirements for question in _questions(requirement)}
        if any(requirement.operator in ("NotIn", "DoesNotExist") for requirement in requirements):
            self._negative[asker] = None
        self._questions[asker] = questions
        for question in questions:
            self._askers.setdefault(question, {})[asker] = None
            self._use(question[0], labels)

    def forget(self, asker: str) -> None:
        """Remove the selectors of a HyperNode."""
        self._negative.pop(asker, None)
        for question in self._questions.pop(asker, ()):
            askers, key = self._askers[question], question[0]
            del askers[asker]
            if not askers:
                del self._askers[question]
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key], self._with_value[key], self._with_key[key]

    def _use(self, key: str, labels: Mapping[int, Mapping[str, str]]) -> None:
        self._uses[key] = self._uses.get(key, 0) + 1
        if self._uses[key] == 1:
            self._with_value[key], self._with_key[key] = {}, 0
            for number, of_node in labels.items():
                if key in of_node:
                    self._flip(number, key, of_node[key])

    # -- nodes

    def change(self, number: int, before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> None:
        """The labels of a node changed; none: the node did not or does not exist."""
        self._other_nodes |= before is None or after is None
        before, after = before or {}, after or {}
        for key in {*before, *after} & self._uses.keys() if self._uses else ():
            old, new = before.get(key), after.get(key)
            if old == new:
                continue
            for value in (old, new):
                if value is not None:
                    self._flip(number, key, value)
                    self._touched.add((key, value))
            if old is None or new is None:
                self._touched.add((key, None))

    def concerned(self) -> Iterator[str]:
        """The HyperNodes that changes of nodes since the last call may affect."""
        if self._other_nodes:
            yield from self._negative
        for question in self._touched:
            yield from self._askers.get(question, ())
        self._touched, self._other_nodes = set(), False

    def _flip(self, number: int, key: str, value: str) -> None:
        """Toggle a label of a node."""
        bit, values = 1 << number, self._with_value[key]
        values[value] = values.get(value, 0) ^ bit
        if values[value] & bit:
            self._with_key[key] |= bit
        else:
            self._with_key[key] &= ~bit
            if not values[value]:
                del values[value]

    # -- selectors

    def select(self, selector: LabelSelector, everyone: int) -> int:
        """The nodes that a selector selects; an empty one selects none (spec 01 7.1)."""
        if not selector.match_labels and not selector.match_expressions:
            return 0
        bits = everyone
        for key, value in selector.match_labels.items():
            bits &= self._with_value[key].get(value, 0)
        for requirement in selector.match_expressions:
            bits &= self._meeting(requirement, everyone)
        return bits

    def _meeting(self, requirement: Requirement, everyone: int) -> int:
        """The nodes that satisfy a requirement."""
        if not valid_label_requirement(requirement):
            return 0
        bits = 0
        if requirement.operator in ("In", "NotIn"):
            with_value = self._with_value[requirement.key]
            for value in requirement.values:
                bits |= with_value.get(value, 0)
        else:
            bits = self._with_key[requirement.key]
        return bits if requirement.operator in ("In", "Exists") else everyone & ~bits


def _questions(requirement: Requirement) -> Iterator[Question]:
    if requirement.operator in ("In", "NotIn"):
        yield from ((requirement.key, value) for value in requirement.values)
    else:
        yield requirement.key, None
