"""Label and field selectors as query parameters: parsing them, and matching objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from stromboli.embedded.kinds.status_errors import bad_request

LONGEST = 64 * 1024
MOST_TERMS = 50
"""Conditions of a selector; all of them are looked at for every object and every change."""
_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:{_NAME}/)?{_NAME}")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")
_PAIR = re.compile(r"^([^!=<>\s]+)\s*(==|=|!=|>|<)\s*([^=<>]*)$")
_TERMS = re.compile(r"(?:[^\\,]|\\.|\\$)+", re.DOTALL)
_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_ESCAPED = re.compile(r"(?:[^\\,=]|\\[\\,=])*")
"""Of a field selector: its terms, which commas divide; a term; the value of a term."""


class Requirement(NamedTuple):
    """One condition on a label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        try:
            number, bound = int(value or ""), int(next(iter(self.values)))
        except ValueError:
            return False
        return number > bound if self.operator == ">" else number < bound


Labels = tuple[Requirement, ...]


class FieldTerm(NamedTuple):
    """One condition on a field; an object that lacks it is judged by `substitute`, and without both by `absent`."""

    path: str
    value: str
    equal: bool
    absent: str = ""
    substitute: str = ""

    def holds(self, read: Callable[[str], str]) -> bool:
        value = read(self.path) or (self.substitute and read(self.substitute)) or self.absent
        return (value == self.value) == self.equal


Fields = tuple[FieldTerm, ...]


class Selector(NamedTuple):
    """Requirements that an object must fulfil, all of them; none selects every object."""

    labels: Labels = ()
    fields: Fields = ()

    @property
    def empty(self) -> bool:
        return not self.labels and not self.fields

    def matches(self, labels: Mapping[str, str], read: Callable[[str], str]) -> bool:
        return all(requirement.holds(labels) for requirement in self.labels) and all(
            term.holds(read) for term in self.fields
        )


@lru_cache(512)
def parse_labels(text: str) -> Labels:
    """`a=b,c!=d,e in (f,g),h,!i`."""
    if len(text) > LONGEST:
        raise bad_request(f"labelSelector: longer than {LONGEST} characters")
    return tuple(_requirement(term) for term in _checked(_split_terms(text), "labelSelector"))


def _checked(terms: list[str], parameter: str) -> list[str]:
    if len(terms) > MOST_TERMS:
        raise bad_request(
            f"{parameter}: has {len(terms)} conditions, and {MOST_TERMS} are allowed: use sets of labels, a in (b,c)"
        )
    return terms


def _split_terms(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    terms, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            terms.append(text[start:index].strip())
            start = index + 1
    terms.append(text[start:].strip())
    return [term for term in terms if term]


def _requirement(term: str) -> Requirement:
    if match := _SET.match(term):
        values = frozenset(value.strip() for value in match[3].split(","))
        requirement = Requirement(match[1], match[2], values)
    elif match := _PAIR.match(term):
        operator = {"=": "in", "==": "in", "!=": "notin"}.get(match[2], match[2])
        requirement = Requirement(match[1], operator, frozenset({match[3].strip()}))
    elif term.startswith("!"):
        requirement = Requirement(term[1:].strip(), "absent")
    else:
        requirement = Requirement(term, "exists")
    if not _KEY.fullmatch(requirement.key) or not all(map(_VALUE.fullmatch, requirement.values)):
        raise bad_request(f"unable to parse requirement: {term[:200]!r} is no condition on a label")
    return requirement


@lru_cache(512)
def parse_fields(text: str) -> Fields:
    """`metadata.name=a,status.phase!=Running`."""
    if len(text) > LONGEST:
        raise bad_request(f"fieldSelector: longer than {LONGEST} characters")
    terms = []
    for term in _checked(_TERMS.findall(text), "fieldSelector"):
        match = _TERM.fullmatch(term)
        if not match:
            raise bad_request(f"invalid selector: '{text[:200]}'; can't understand '{term[:200]}'")
        path, operator, value = match.groups()
        if not _ESCAPED.fullmatch(value):
            raise bad_request(
                f"invalid field selector: {value[:200]!r} has a backslash or = that is not escaped by a backslash"
            )
        terms.append(FieldTerm(path, re.sub(r"\\(.)", r"\1", value), operator != "!="))
    return tuple(terms)
