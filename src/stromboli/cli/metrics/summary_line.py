"""A line of the summary: what a metric says, whether that is fine, and where to look if it is not."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

Numbers = dict[str, Any]


class LineState(enum.StrEnum):
    FINE = "fine"
    LOOK = "look"
    """Worth looking at; the line says where."""
    NONE = "-"
    """Says nothing good or bad."""


class SummaryLine(NamedTuple):
    topic: str
    state: LineState
    text: str
    numbers: Numbers
    """The same for programs."""
    remedy: str = ""


def fine(topic: str, text: str, numbers: Numbers) -> SummaryLine:
    return SummaryLine(topic, LineState.FINE, text, numbers)


def look(topic: str, text: str, numbers: Numbers, remedy: str) -> SummaryLine:
    return SummaryLine(topic, LineState.LOOK, text, numbers, remedy)


def neutral(topic: str, text: str, numbers: Numbers) -> SummaryLine:
    return SummaryLine(topic, LineState.NONE, text, numbers)


def judged(is_fine: bool, topic: str, text: str, numbers: Numbers, remedy: str) -> SummaryLine:
    """Fine, or worth looking at."""
    return fine(topic, text, numbers) if is_fine else look(topic, text, numbers, remedy)
