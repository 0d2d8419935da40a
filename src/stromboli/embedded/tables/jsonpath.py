"""The part of JSONPath that CustomResourceDefinitions use for their printer columns.

Fields (`.a.b`, `['a.b']`, `.a\\.b`), indexes (`[0]`, `[-1]`), `[*]`, and the filter `[?(@.type=="Ready")]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

MAX_LENGTH = 1024
_FIELD = re.compile(r"\.((?:\\.|[^.\[\]\\])+)")
_QUOTED = re.compile(r"\[(?:'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\")\]")
_INDEX = re.compile(r"\[(-?[0-9]{1,9}|\*)\]")
_FILTER = re.compile(
    r"\[\?\(\s*@((?:\.(?:\\.|[^.\[\]\\=!<>\s)])+)*)\s*"
    r"(?:(==|!=)\s*(?:'([^']*)'|\"([^\"]*)\"|(-?[0-9.]+|true|false)))?\s*\)\]"
)
_ESCAPED = re.compile(r"\\(.)")

Step = Callable[[Any], Iterator[Any]]


class BadPath(ValueError):
    """A path that cannot be read."""


@lru_cache(maxsize=1024)
def parse(path: str) -> tuple[Step, ...]:
    """The steps of a path; `BadPath` says from where on it cannot be read."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = text.removeprefix("$")
    if len(text) > MAX_LENGTH:
        raise BadPath(f"JSON path longer than {MAX_LENGTH} characters")
    steps, position = [], 0
    while position < len(text):
        step, position = _parse_step(path, text, position)
        steps.append(step)
    return tuple(steps)


def _parse_step(path: str, text: str, position: int) -> tuple[Step, int]:
    """A step and where the next begins."""
    for pattern, make in _KINDS:
        if (match := pattern.match(text, position)) is not None:
            return make(match), match.end()
    raise BadPath(f"JSON path {path!r}: not understood from {text[position : position + 30]!r} on")


def find(path: str, value: Any) -> list[Any]:
    """All values at a path."""
    values = [value]
    for step in parse(path):
        values = [inner for node in values for inner in step(node)]
    return values


def _field(match: re.Match[str]) -> Step:
    name = _ESCAPED.sub(r"\1", match[match.lastindex or 0])

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name == "*":
            yield from value.values()
        elif isinstance(value, dict) and value.get(name) is not None:
            yield value[name]

    return step


def _index(match: re.Match[str]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if match[1] == "*":
            yield from value if isinstance(value, list) else ()
            yield from value.values() if isinstance(value, dict) else ()
        elif isinstance(value, list) and -len(value) <= int(match[1]) < len(value):
            yield value[int(match[1])]

    return step


def _filter(match: re.Match[str]) -> Step:
    literal = next((text for text in match.groups()[2:] if text is not None), None)

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            inner = find(match[1], item)
            if match[2] is None:
                if inner:
                    yield item
            elif (bool(inner) and _text(inner[0]) == literal) == (match[2] == "=="):
                yield item

    return step


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_KINDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_FIELD, _field),
    (_QUOTED, _field),
    (_INDEX, _index),
    (_FILTER, _filter),
)
