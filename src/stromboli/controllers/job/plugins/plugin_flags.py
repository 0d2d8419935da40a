"""Arguments of job plugins, written the way Go programs take flags: `--port=2222`, `-port 2222`, `--wait`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stromboli.api.go_scalars import boolean
from stromboli.policy.arguments import Argument, declared
from stromboli.policy.policy_problems import suggestion


def parse_flags(cls: type, flags: Sequence[str]) -> tuple[Any, str]:
    """The arguments, and what is wrong with them.

    Parsing stops at the first flag that cannot be parsed; those before it count, as in Volcano.
    """
    known = {argument.key: argument for argument in declared(cls)}
    values: dict[str, Any] = {}
    left = list(flags)
    while left:
        flag = left.pop(0)
        if flag == "--":
            break
        key, equals, text = flag.lstrip("-").partition("=")
        argument = known.get(key)
        if not flag.startswith("-") or argument is None:
            problem = f"unknown argument {flag!r}{suggestion(key, known)}; it and what follows is ignored"
            return cls(**values), problem
        if not equals and argument.type is not bool:
            if not left:
                return cls(**values), f"{flag!r} needs a value; it is ignored"
            text = left.pop(0)
        value = _value(argument, text if equals or argument.type is not bool else "true")
        if value is None:
            return cls(**values), f"{flag!r} is not {argument.type_name}; it and what follows is ignored"
        values[argument.field] = value
    return cls(**values), ""


def _value(argument: Argument, text: str) -> Any:
    if argument.type is bool:
        return boolean(text)
    if argument.type is int:
        digits = text[1:] if text[:1] in ("-", "+") else text
        return int(text) if digits.isdecimal() and digits.isascii() and len(digits) < 19 else None
    return text
