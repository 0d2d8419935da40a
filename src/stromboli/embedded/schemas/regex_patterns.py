"""Regular expressions from CRDs: strangers write them, and a bad one could keep the server busy for ever.

Go matches in linear time, Python does not. So a pattern that repeats what may repeat itself, such as `(a+)+`, is
refused, and long texts match no pattern.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from importlib import import_module
from typing import Any

MAX_PATTERN = 2_000
MAX_TEXT = 2_000
_MANY = 16
"""Repetitions from which a repetition of repetitions hurts."""


def pattern_error(text: str) -> str:
    """What keeps a text from being a pattern; nothing if it is one."""
    if len(text) > MAX_PATTERN:
        return f"must be no longer than {MAX_PATTERN} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(text)
            hurts = _hurts(import_module("re._parser").parse(text))
    except Warning:
        return "must not have sets in sets, such as [[:alpha:]], which Python reads otherwise than Go"
    except (re.error, OverflowError, RecursionError):
        return "must be a valid regular expression"
    return (
        "must not repeat what may repeat itself, such as (a+)+: matching it could take for ever"
        if hurts
        else ""
    )


@lru_cache(maxsize=512)
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in a text."""
    return len(text) <= MAX_TEXT and _compiled(pattern).search(text) is not None


def _hurts(tree: Any) -> bool:
    """Whether some repetition has a body that one repetition inside can make up alone."""
    for operator, argument in tree:
        repeat = _repeat(operator, argument)
        if repeat is not None and repeat[1] > _MANY and _stretches(repeat[2]):
            return True
        if any(_hurts(part) for part in _inside(operator, argument)):
            return True
    return False


def _stretches(tree: Any) -> bool:
    """Whether a repetition inside can match whatever this matches, all else being empty."""
    items = list(tree)
    for place, (operator, argument) in enumerate(items):
        others = items[:place] + items[place + 1 :]
        if any(_width(part) > 0 for part in others):
            continue
        repeat = _repeat(operator, argument)
        if repeat is not None and repeat[1] > _MANY:
            return True
        if any(_stretches(part) for part in _inside(operator, argument)):
            return True
    return False


def _repeat(operator: Any, argument: Any) -> tuple[int, int, Any] | None:
    if str(operator) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        low, high, body = argument
        return int(low), int(high), body
    return None


def _inside(operator: Any, argument: Any) -> list[Any]:
    """The patterns that an element is made of."""
    match str(operator):
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "SUBPATTERN":
            return [argument[3]]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
    return []


def _width(item: Any) -> int:
    """How much an element matches at least."""
    operator, argument = item
    match str(operator):
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "RANGE" | "CATEGORY":
            return 1
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return int(argument[0]) and sum(map(_width, argument[2]))
        case "BRANCH":
            return min(sum(map(_width, branch)) for branch in argument[1])
        case "SUBPATTERN":
            return sum(map(_width, argument[3]))
    return 0
