"""Exact Kubernetes quantities: text to integers, without floats in between, and back again."""

import math
import re
from fractions import Fraction
from functools import lru_cache

from stromboli.api.types.meta import Quantity

MAX_LENGTH = 64
MAX_EXPONENT = 64
INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

_EXPECTED = (
    "expected a number with an optional suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or exponent (e3)"
)
_PATTERN = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FACTORS = {suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate(_DECIMAL, start=-3)} | {
    suffix: Fraction(1024**power) for power, suffix in enumerate(_BINARY)
}


class QuantityError(ValueError):
    """A value that is no Kubernetes quantity, or one too large to count with."""

    def __init__(self, value: object, problem: str = _EXPECTED) -> None:
        super().__init__(f'bad quantity "{_cut_short(value)}": {problem}')


def _cut_short(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = str(value)
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + "..."


def exact(quantity: Quantity) -> Fraction:
    """The value as a fraction, exactly as written."""
    if isinstance(quantity, str):
        return _parse(quantity)
    if isinstance(quantity, bool) or not isinstance(quantity, int | float):
        raise QuantityError(quantity)
    if isinstance(quantity, int):
        return Fraction(quantity)
    if not math.isfinite(quantity):
        raise QuantityError(quantity, "expected a finite number")
    return _parse(repr(quantity))


def milli(quantity: Quantity) -> int:
    """Thousandths, rounded up."""
    return _milli(quantity) if isinstance(quantity, str) else _scaled(quantity, 1000)


def whole(quantity: Quantity) -> int:
    """Whole units, rounded up."""
    return _whole(quantity) if isinstance(quantity, str) else _scaled(quantity, 1)


@lru_cache(maxsize=65536)
def _milli(text: str) -> int:
    return _scaled(text, 1000)


@lru_cache(maxsize=65536)
def _whole(text: str) -> int:
    return _scaled(text, 1)


def _scaled(quantity: Quantity, scale: int) -> int:
    amount = math.ceil(exact(quantity) * scale)
    if not INT64_MIN <= amount <= INT64_MAX:
        raise QuantityError(quantity, "too large, expected a value that fits 64 bits")
    return amount


@lru_cache(maxsize=65536)
def _parse(text: str) -> Fraction:
    if len(text) > MAX_LENGTH:
        raise QuantityError(text, f"longer than {MAX_LENGTH} characters")
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(text)
    sign, digits, suffix = match.groups("")
    factor = _FACTORS.get(suffix)
    if factor is None:
        factor = _power_of_ten(text, int(suffix[1:]))
    value = _decimal(digits) * factor
    return -value if sign == "-" else value


def _decimal(digits: str) -> Fraction:
    integer, _, fraction = digits.partition(".")
    return Fraction(int(integer + fraction), 10 ** len(fraction))


def _power_of_ten(text: str, exponent: int) -> Fraction:
    if abs(exponent) > MAX_EXPONENT:
        raise QuantityError(text, f"exponent out of bounds, expected at most {MAX_EXPONENT}")
    return Fraction(10) ** exponent


def format_milli(amount: int) -> str:
    """Thousandths as a decimal quantity: 1500 is "1500m", 2000 is "2"."""
    return _shortest(amount, 1000, _DECIMAL[2:])


def format_count(amount: int) -> str:
    """Whole units as a decimal quantity: 110 is "110", 5000 is "5k"."""
    return _shortest(amount, 1000, _DECIMAL[3:])


def format_bytes(amount: int) -> str:
    """Bytes with a binary suffix where that is exact; below 1024 decimal, as Kubernetes writes it."""
    return format_count(amount) if abs(amount) < 1024 else _shortest(amount, 1024, _BINARY)


def _shortest(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    if amount == 0:
        return "0"
    power = 0
    while amount % base == 0 and power + 1 < len(suffixes):
        amount //= base
        power += 1
    return f"{amount}{suffixes[power]}"
