"""Values of CEL: those of Python, and types of their own for what Python has not; how they compare and read as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Any, NamedTuple

from stromboli.api.cel.syntax import Unsigned

Spend = Callable[[int], None]
"""Counts steps before they are taken; raises CostExceeded."""

NO_SUCH_KEY = "no such key: "
NO_OVERLOAD = "no such overload"
_NANO = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class EvaluationError(ValueError):
    """An expression without a value: a missing key, a wrong type, or a cost that is too high."""


class CostExceeded(EvaluationError):
    """An evaluation that takes too many steps."""


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """Nanoseconds."""

    nanos: int

    def __post_init__(self) -> None:
        if not -(2**63) <= self.nanos < 2**63:
            raise EvaluationError("duration out of range")

    def __str__(self) -> str:
        return f"{Decimal(self.nanos).scaleb(-9).normalize():f}s"


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """Nanoseconds since 1970."""

    nanos: int

    def __post_init__(self) -> None:
        if not _MIN_TIME <= self.nanos < _MAX_TIME:
            raise EvaluationError("timestamp out of range")

    @classmethod
    def at(cls, moment: datetime, nanos: int = 0) -> Timestamp:
        """A moment to the second, and what goes beyond."""
        return cls(_seconds(moment) * _NANO + nanos)

    @property
    def moment(self) -> datetime:
        """To the second."""
        return _EPOCH + timedelta(seconds=self.nanos // _NANO)

    def __str__(self) -> str:
        fraction = f"{self.nanos % _NANO:09}".rstrip("0")
        text = self.moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
        return f"{text}{'.' if fraction else ''}{fraction}Z"


def _seconds(moment: datetime) -> int:
    elapsed = moment - _EPOCH
    return elapsed.days * 86400 + elapsed.seconds


_MIN_TIME, _MAX_TIME = _seconds(_FIRST) * _NANO, (_seconds(_LAST) + 1) * _NANO


@dataclass(frozen=True, order=True, slots=True)
class Quantity:
    """In billionths, rounded up."""

    billionths: int

    def as_integer(self) -> int:
        whole, rest = divmod(self.billionths, _NANO)
        if rest or not -(2**63) <= whole < 2**63:
            raise EvaluationError("cannot convert value to integer")
        return whole


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A semantic version (semver.org), without build metadata, in which equal versions may differ."""

    numbers: tuple[int, int, int]
    is_release: bool
    prerelease: tuple[tuple[bool, int, str], ...]
    """Identifiers; numbers order by value and before all others, and a shorter list comes first."""


_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_NUMBER = r"(0|[1-9][0-9]{0,19})"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def version(text: str, normalize: bool = False) -> Version:
    """The version that a text is; ValueError if it is none."""
    match = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        raise ValueError(f"invalid semantic version {text[:64]!r}")
    *numbers, prerelease = match.groups()
    major, minor, patch = (int(number) for number in numbers)
    if max(major, minor, patch) >= 2**64:
        raise ValueError(f"{text[:64]!r} has a number that does not fit 64 bits")
    parts = () if prerelease is None else prerelease.split(".")
    identifiers = tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)
    return Version((major, minor, patch), prerelease is None, identifiers)


def _normalized(text: str) -> str:
    """Without a leading `v` and leading zeros, with the minor and patch numbers that are missing."""
    parts = text.removeprefix("v").split(".", 2)
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise ValueError(f"{text[:64]!r} is too short for a pre-release or build metadata")
    stripped = [re.sub(r"^0+(?=[0-9])", "", part) for part in parts]
    return ".".join([*stripped, "0", "0"][:3])


class Optional(NamedTuple):
    """A value that may be absent."""

    is_present: bool
    value: Any = None


ABSENT = Optional(False)


class Type(NamedTuple):
    """The type of a value."""

    name: str


BOOL, INT, UINT, DOUBLE, STRING, BYTES, LIST, MAP, TYPE = (
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "type",
)
NULL, TIMESTAMP, DURATION = "null_type", "google.protobuf.Timestamp", "google.protobuf.Duration"
OPTIONAL, QUANTITY, SEMVER, IP, CIDR = (
    "optional_type",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "net.IP",
    "net.CIDR",
)
NAMED_TYPES = (BOOL, INT, UINT, DOUBLE, STRING, BYTES, LIST, MAP, TYPE, NULL, TIMESTAMP, DURATION)
"""Types that expressions may name."""


class _Kinds(dict[type, str]):
    """The type of values by their class in Python."""

    def __missing__(self, value_class: type) -> str:
        for known in (dict, list):
            if issubclass(value_class, known):
                return self[known]
        raise EvaluationError(f"a value of the type {value_class.__name__} cannot be evaluated")


KINDS = _Kinds(
    {
        bool: BOOL,
        int: INT,
        Unsigned: UINT,
        float: DOUBLE,
        str: STRING,
        bytes: BYTES,
        type(None): NULL,
        list: LIST,
        dict: MAP,
        Type: TYPE,
        Timestamp: TIMESTAMP,
        Duration: DURATION,
        Optional: OPTIONAL,
        Quantity: QUANTITY,
        Version: SEMVER,
        IPv4Address: IP,
        IPv6Address: IP,
        IPv4Interface: CIDR,
        IPv6Interface: CIDR,
    }
)
NUMBERS = frozenset({INT, UINT, DOUBLE})
_ORDERED = frozenset({BOOL, STRING, BYTES, TIMESTAMP, DURATION, QUANTITY, SEMVER})


def kind(value: Any) -> str:
    return KINDS[type(value)]


# -- comparison


def equal(left: Any, right: Any, spend: Spend) -> bool:
    """Whether two values are equal; values of different types are not, but for numbers."""
    one, other = kind(left), kind(right)
    if one != other:
        return one in NUMBERS and other in NUMBERS and bool(left == right)
    if one == LIST:
        if len(left) != len(right):
            return False
        spend(500 + 50 * len(left))
        return all(equal(a, b, spend) for a, b in zip(left, right, strict=True))
    if one == MAP:
        if len(left) != len(right):
            return False
        spend(500 + 200 * len(left))
        found = ((value, find_key(key, right, spend)) for key, value in left.items())
        return all(other is not None and equal(value, other[0], spend) for value, other in found)
    if one == OPTIONAL:
        return left.is_present == right.is_present and equal(left.value, right.value, spend)
    if one in (STRING, BYTES):
        spend(len(left) // 4)
    elif one == SEMVER:
        spend(50 * len(left.prerelease))
    return bool(left == right)


def less(left: Any, right: Any) -> bool:
    _check_order(left, right)
    return bool(left < right)


def at_most(left: Any, right: Any) -> bool:
    _check_order(left, right)
    return bool(left <= right)


def _check_order(left: Any, right: Any) -> None:
    one, other = kind(left), kind(right)
    if not ((one in NUMBERS and other in NUMBERS) or (one == other and one in _ORDERED)):
        raise EvaluationError(NO_OVERLOAD)


def compare(left: Any, right: Any) -> int:
    return -1 if less(left, right) else int(less(right, left))


def contains(item: Any, container: Any, spend: Spend) -> bool:
    """Whether a list has an element, or a map a key."""
    match kind(container):
        case "list":
            spend(50 * len(container))
            return any(equal(item, element, spend) for element in container)
        case "map":
            return find_key(item, container, spend) is not None
    raise EvaluationError(NO_OVERLOAD)


def find_key(key: Any, values: dict[Any, Any], spend: Spend) -> tuple[Any] | None:
    """The value of a key; Python takes `True` and 1 for the same key."""
    if isinstance(key, str):
        return (values[key],) if key in values else None
    if kind(key) not in (BOOL, INT, UINT, DOUBLE):
        raise EvaluationError(NO_OVERLOAD)
    spend(50 * len(values))
    return next(((value,) for known, value in values.items() if equal(known, key, spend)), None)


# -- texts


def text_of(value: Any) -> str:
    """A value as `string()` converts it."""
    match kind(value):
        case "string":
            return str(value)
        case "bool":
            return "true" if value else "false"
        case "int" | "uint":
            return str(int(value))
        case "double":
            return go_float(value)
        case "bytes":
            try:
                return str(value, "utf-8")
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case "google.protobuf.Timestamp" | "google.protobuf.Duration" | "net.IP":
            return str(value)
        case "net.CIDR":
            return str(value)
    raise EvaluationError(NO_OVERLOAD)


def go_float(number: float) -> str:
    """The shortest text of a number, as Go's `strconv` formats it."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) + exponent - 1
    if number and not -4 <= power < 6:
        mantissa = "".join(map(str, digits))
        point = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
        return f"{'-' if sign else ''}{mantissa[0]}{point}e{power:+03}"
    return f"{Decimal(repr(number)).normalize():f}"
