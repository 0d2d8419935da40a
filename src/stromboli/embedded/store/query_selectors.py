"""Label and field selectors, as written in a query: what they say, and whether an object is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from stromboli.embedded.kinds.status_errors import bad_request

LONGEST = 64 * 1024
_LABEL_PART = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:{_LABEL_PART}/)?{_LABEL_PART}")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SET = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")
_PAIR = re.compile(r"^([^!=<>\s]+)\s*(==|=|!=|>|<)\s*([^=<>]*)$")


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
    path: str
    value: str
    equal: bool

    def holds(self, read: Callable[[str], str]) -> bool:
        return (read(self.path) == self.value) == self.equal


Fields = tuple[FieldTerm, ...]


class Selector(NamedTuple):
    """Which objects are meant; all, if nothing is said."""

    labels: Labels = ()
    fields: Fields = ()

    def matches(self, labels: Mapping[str, str], read: Callable[[str], str]) -> bool:
        return all(one.holds(labels) for one in self.labels) and all(one.holds(read) for one in self.fields)


@lru_cache(512)
def parse_labels(text: str) -> Labels:
    """`a=b,c!=d,e in (f,g),h,!i`; a bad request if it is none of that."""
    if len(text) > LONGEST:
        raise bad_request(f"labelSelector: longer than {LONGEST} characters")
    return tuple(_requirement(part) for part in _parts(text))


def _parts(text: str) -> list[str]:
    """At commas that are not in parentheses."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _requirement(part: str) -> Requirement:
    if found := _SET.match(part):
        values = frozenset(value.strip() for value in found[3].split(","))
        return _checked(Requirement(found[1], found[2], values), part)
    if found := _PAIR.match(part):
        operator = {"=": "in", "==": "in", "!=": "notin"}.get(found[2], found[2])
        return _checked(Requirement(found[1], operator, frozenset({found[3].strip()})), part)
    if part.startswith("!"):
        return _checked(Requirement(part[1:].strip(), "absent"), part)
    return _checked(Requirement(part, "exists"), part)


def _checked(one: Requirement, part: str) -> Requirement:
    if not _KEY.fullmatch(one.key) or not all(_VALUE.fullmatch(value) for value in one.values):
        raise bad_request(f"unable to parse requirement: {part[:200]!r} is no condition on a label")
    return one


@lru_cache(512)
def parse_fields(text: str) -> Fields:
    """`metadata.name=a,status.phase!=Running`."""
    if len(text) > LONGEST:
        raise bad_request(f"fieldSelector: longer than {LONGEST} characters")
    terms = []
    for part in (part.strip() for part in re.split(r"(?<!\\),", text)):
        if not part:
            continue
        found = re.match(r"^([^!=]+?)(==|!=|=)(.*)$", part)
        if not found:
            raise bad_request(f"invalid selector: {part[:200]!r}; can't understand")
        terms.append(FieldTerm(found[1].strip(), _unescaped(found[3].strip()), found[2] != "!="))
    return tuple(terms)


def _unescaped(value: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", value)
