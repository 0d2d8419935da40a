"""Patterns of CRDs: users write them, and Python's backtracking could keep the server busy for ever.

Go matches in linear time, Python does not. So nested repetitions, such as `(a+)+`, are refused, and long strings match
no pattern.
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
"""Repetitions from which on a nested repetition is refused."""


@lru_cache(maxsize=512)
def pattern_error(text: str) -> str:
    """Why this is not a pattern that may be used; empty if it is."""
    if len(text) > MAX_PATTERN:
        return f"must be no longer than {MAX_PATTERN} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(text)
            backtracks = _backtracks(import_module("re._parser").parse(text))
    except Warning:
        return "must not have sets in sets, such as [[:alpha:]], which Python reads otherwise than Go"
    except (re.error, OverflowError, RecursionError):
        return "must be a valid regular expression"
    return (
        "must not repeat what may repeat itself, such as (a+)+: matching it could take for ever"
        if backtracks
        else ""
    )


@lru_cache(maxsize=512)
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in a string."""
    return len(text) <= MAX_TEXT and _compiled(pattern).search(text) is not None


def _backtracks(tree: Any) -> bool:
    """Whether some repetition has a body that an inner repetition can match alone."""
    for operator, argument in tree:
        if _is_repeat(operator, argument) and _repeats_alone(argument[2]):
            return True
        if any(_backtracks(part) for part in _inside(operator, argument)):
            return True
    return False


def _repeats_alone(tree: Any) -> bool:
    """Whether an inner repetition can match whatever this matches, all else being empty."""
    items = list(tree)
    for index, (operator, argument) in enumerate(items):
        others = items[:index] + items[index + 1 :]
        if any(_width(part) > 0 for part in others):
            continue
        if _is_repeat(operator, argument):
            return True
        if any(_repeats_alone(part) for part in _inside(operator, argument)):
            return True
    return False


def _is_repeat(operator: Any, argument: Any) -> bool:
    repeats = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
    return str(operator) in repeats and int(argument[1]) > _MANY


def _inside(operator: Any, argument: Any) -> list[Any]:
    """The patterns inside an element."""
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
    """The least number of characters that an element matches."""
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
