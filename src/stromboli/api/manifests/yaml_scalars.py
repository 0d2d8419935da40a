"""What an unquoted word means in YAML 1.1, as Volcano's YAML library reads it."""

import re

Scalar = bool | int | float | str | None

_WORDS: dict[str, Scalar] = (
    dict.fromkeys(["", "~", "null", "Null", "NULL"])
    | dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True)
    | dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False)
    | dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], float("inf"))
    | dict.fromkeys(["-.inf", "-.Inf", "-.INF"], float("-inf"))
    | dict.fromkeys([".nan", ".NaN", ".NAN"], float("nan"))
)
_INT = re.compile(r"([-+]?)(?:0b([01]+)|0x([0-9a-fA-F]+)|0o?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def bare_scalar(text: str) -> Scalar:
    """`on` is true, `010` is eight, `1e3` is a number, `12:30` is text."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "") if len(text) < 80 else text
    if (match := _INT.fullmatch(digits)) and len(digits) < 80:
        sign, binary, hexadecimal, octal, decimal = match.groups()
        base, number = next(
            (b, n) for b, n in ((2, binary), (16, hexadecimal), (8, octal), (10, decimal)) if n
        )
        value = int(sign + number, base)
        return value if -(2**63) <= value < 2**64 else float(value)
    if _FLOAT.fullmatch(digits):
        return float(digits)
    return text
