"""Which nodes label selectors select, kept up with the labels that they ask about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stromboli.api.selectors import valid_label_requirement
from stromboli.api.types.meta import LabelSelector, Requirement

Question = tuple[str, str | None]
"""A label and a value that a selector asks about; none: whether there is such a label."""


class LabelIndex:
    """Sets of nodes by label, for the labels that HyperNodes ask about, and who asks."""

    def __init__(self) -> None:
        self._with_value: dict[str, dict[str, int]] = {}
        self._with_key: dict[str, int] = {}
        self._askers: dict[Question, dict[str, None]] = {}
        self._questions: dict[str, set[Question]] = {}
        self._uses: dict[str, int] = {}
        """How many questions there are about each label."""
        self._negative: dict[str, None] = {}
        """Who selects nodes by what they lack: a new node concerns them, whatever labels it has."""
        self._touched: set[Question] = set()
        """Questions that have another answer for some node than when `concerned` was last asked."""
        self._other_nodes = False
        """Whether nodes came or went since."""

    # -- who asks

    def ask(
        self, asker: str, selectors: Iterable[LabelSelector], labels: Mapping[int, Mapping[str, str]]
    ) -> None:
        """Index what a HyperNode asks about; `labels` has those of all nodes, by number."""
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
        """A HyperNode asks no more."""
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
        """The labels of a node changed; none: there was, or is, no such node."""
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
        """The HyperNodes that changes of nodes since this was last asked may concern."""
        if self._other_nodes:
            yield from self._negative
        for question in self._touched:
            yield from self._askers.get(question, ())
        self._touched, self._other_nodes = set(), False

    def _flip(self, number: int, key: str, value: str) -> None:
        """Let a node that had a label lose it, and the other way round."""
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
        """The nodes that meet a requirement."""
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
