"""Reads Prometheus' text format, line by line and within bounds: what cannot be read is left out and counted."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

LARGEST_PAGE = 64 * 1024 * 1024
"""Bytes of a page: enough for the series of 50,000 jobs."""
LONGEST_LINE = 16 * 1024
"""Bytes of a line."""
MOST_LABELS = 32
"""Labels of a series."""
MOST_SERIES = 200_000
"""Series of a page that are kept."""
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(,?)', re.ASCII)
_END = re.compile(r"[ \t]*\}")
_VALUE = re.compile(r"[ \t]*([-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|Inf|NaN))(?:[ \t].*)?", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}

Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """The value of a series."""

    name: str
    labels: Labels
    value: float


class Page(NamedTuple):
    """The samples of a page that were wanted, and what could not be read."""

    samples: list[Sample]
    unreadable: int = 0
    """Lines that are neither samples nor comments, or that are too long."""
    left_out: int = 0
    """Samples beyond `MOST_SERIES`."""
    named: int = 0
    """Lines that begin with the name of a metric, wanted or not."""


def parse_page(page: bytes, is_wanted: Callable[[str], bool]) -> Page:
    """The samples of the metrics whose names are wanted."""
    samples: list[Sample] = []
    unreadable = left_out = others = 0
    for line in _lines(page):
        if line is None:
            unreadable += 1
            continue
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        named = _NAME.match(text)
        if named is not None and not is_wanted(named[0]) and _resembles_sample(text, named.end()):
            others += 1
            continue
        sample = _sample(text, named) if named is not None and is_wanted(named[0]) else None
        if sample is None:
            unreadable += 1
        elif len(samples) < MOST_SERIES:
            samples.append(sample)
        else:
            left_out += 1
    return Page(samples, unreadable, left_out, others + len(samples) + left_out)


def _lines(page: bytes) -> Iterator[str | None]:
    """Lines as text; None for one that is too long."""
    for line in io.BytesIO(page[:LARGEST_PAGE]):
        yield line.decode(errors="replace") if len(line) <= LONGEST_LINE else None


def _resembles_sample(text: str, name_end: int) -> bool:
    """Whether a line that nobody wants is worth no second look: all of them would take long."""
    return text[name_end : name_end + 1] in ("{", " ", "\t") and text[-1] in "0123456789fN"


def _sample(text: str, named: re.Match[str]) -> Sample | None:
    position = named.end()
    labels: Labels = ()
    if text.startswith("{", position):
        end = _labels_end(text, position + 1)
        if end is None:
            return None
        position, labels = end
    elif not text[position : position + 1].isspace():
        return None
    value = _VALUE.fullmatch(text, position)
    try:
        return None if value is None else Sample(named[0], labels, float(value[1]))
    except ValueError:  # as of `1.2.3`
        return None


def _labels_end(text: str, position: int) -> tuple[int, Labels] | None:
    """The labels from a position on, and where the brace behind them ends."""
    labels: list[tuple[str, str]] = []
    while (label := _LABEL.match(text, position)) is not None:
        if len(labels) == MOST_LABELS:
            return None
        labels.append((label[1], _unescaped(label[2])))
        position = label.end()
        if not label[3]:
            break
    end = _END.match(text, position)
    return None if end is None else (end.end(), tuple(sorted(labels)))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[0]), text)
