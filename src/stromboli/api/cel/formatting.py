"""The method `format` of texts: `'%s has %d'.format([name, count])`."""

from __future__ import annotations

import math
import re
from typing import Any

from stromboli.api.cel.values import EvaluationError, Spend, kind, text_of

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]{1,3}))?([a-zA-Z])?)")
_MAX_PRECISION = 300
_PER_CHARACTER = 16


def formatted(spend: Spend, template: str, arguments: list[Any]) -> str:
    """The template with its clauses in the place of arguments."""
    spend(_PER_CHARACTER * len(template))
    parts: list[str] = []
    position = used = 0
    for clause in _CLAUSE.finditer(template):
        parts.append(template[position : clause.start()])
        position = clause.end()
        if clause[1]:
            parts.append("%")
            continue
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        text = _clause(spend, clause[3] or "", clause[2], arguments[used])
        spend(_PER_CHARACTER * len(text))
        parts.append(text)
        used += 1
    parts.append(template[position:])
    return "".join(parts)


def _clause(spend: Spend, letter: str, precision: str | None, value: Any) -> str:
    of = kind(value)
    digits = 6 if precision is None else int(precision)
    if digits > _MAX_PRECISION:
        raise EvaluationError("precision out of range")
    match letter:
        case "s":
            return _shown(spend, value)
        case "d" if of in ("int", "uint"):
            return str(int(value))
        case "f" | "e" if of in ("int", "uint", "double"):
            return _fraction(letter, digits, float(value))
        case "b" if of in ("int", "uint", "bool"):
            return f"{int(value):b}"
        case "o" if of in ("int", "uint"):
            return f"{int(value):o}"
        case "x" | "X" if of in ("int", "uint", "string", "bytes"):
            data = value.encode() if of == "string" else value
            text = f"{int(value):x}" if of in ("int", "uint") else data.hex()
            return text if letter == "x" else text.upper()
    if letter in ("d", "f", "e", "b", "o", "x", "X"):
        raise EvaluationError(f"error during formatting: no such overload for %{letter}: {of}")
    raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')


def _fraction(letter: str, digits: int, number: float) -> str:
    if not math.isfinite(number):
        return _special(number)
    return f"{number:.{digits}{letter}}"


def _special(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _shown(spend: Spend, value: Any) -> str:
    """Any value; texts in lists and maps are as they are."""
    match kind(value):
        case "list":
            spend(100 * len(value))
            return f"[{', '.join(_shown(spend, item) for item in value)}]"
        case "map":
            spend(200 * len(value))
            items = sorted((_shown(spend, key), _shown(spend, item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
        case "null_type":
            return "null"
        case "type":
            return str(value.name)
        case "double" if not math.isfinite(value):
            return _special(value)
    if isinstance(value, str | bytes):
        spend(_PER_CHARACTER * len(value))
    return text_of(value)
