"""How a YAML scalar becomes a typed argument, by the type that the field declares; types in users' words.

Volcano's rules: a whole number from a YAML integer only, a number from any finite number, true or false
also from a text that Go takes for a bool, text from text only.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from stromboli.api.errors import quoted

WRONG: Any = object()  # stands for: the value does not have the declared type

_GO_BOOLS = dict.fromkeys(["1", "t", "T", "TRUE", "true", "True"], True) | dict.fromkeys(
    ["0", "f", "F", "FALSE", "false", "False"], False
)


def to_bool(value: object) -> Any:
    """A bool, or a text in Go's bool syntax."""
    if isinstance(value, bool):
        return value
    return _GO_BOOLS.get(value, WRONG) if isinstance(value, str) else WRONG


def to_int(value: object) -> Any:
    """A YAML integer of 64 bits: neither a float nor a quoted number."""
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    return WRONG


def to_float(value: object) -> Any:
    """A finite number, whole or not."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return WRONG


def to_text(value: object) -> Any:
    """A text: a number must be quoted to be one."""
    return value if isinstance(value, str) else WRONG


SCALARS: dict[Any, tuple[Callable[[object], Any], str]] = {
    bool: (to_bool, "true or false"),
    int: (to_int, "a whole number"),
    float: (to_float, "a number"),
    str: (to_text, "a text"),
    type(None): (lambda value: None if value is None else WRONG, "nothing"),
}


def members(hint: Any) -> tuple[Any, ...]:
    """The types that a union allows; for any other type just itself."""
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


def is_mapping(hint: Any) -> bool:
    """Whether a type is a mapping from names to something."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_list(hint: Any) -> bool:
    """Whether a type is a tuple or list of any length."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Sequence)


def understood(hint: Any) -> bool:
    """Whether an argument can have this type at all."""
    if len(members(hint)) > 1:
        return all(understood(member) for member in members(hint))
    if is_mapping(hint) or is_list(hint):
        inner = typing.get_args(hint)
        return understood(inner[1] if is_mapping(hint) else inner[0])
    named = hint in SCALARS or hint in (Any, object) or typing.get_origin(hint) is Literal
    return named or (isinstance(hint, type) and dataclasses.is_dataclass(hint))


def type_name(hint: Any) -> str:
    """What a field wants, in users' words."""
    inner = typing.get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint][1]
    if len(members(hint)) > 1:
        return " or ".join(type_name(member) for member in members(hint) if member is not type(None))
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(quoted(choice) for choice in inner)
    if is_mapping(hint):
        return f"a mapping of names to {type_name(inner[1])}"
    if is_list(hint):
        return f"a list of {type_name(inner[0])}"
    return "anything" if hint in (Any, object) else "a mapping"


def kind_of(value: object) -> str:
    """What was found instead, in users' words."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    return str(value).lower() if isinstance(value, bool) else quoted(value)
