"""The functions that expressions may call: those of CEL and of Kubernetes, with their types and costs.

A function that is not here is refused when an expression is compiled. What a call costs beyond the cost of any call is
counted before it is evaluated, so a text or a list that is made is never larger than the budget allows.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from functools import cmp_to_key
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface, ip_network
from itertools import pairwise
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from stromboli.api.cel.formatting import formatted
from stromboli.api.cel.syntax import Unsigned
from stromboli.api.cel.values import (
    ABSENT,
    CIDR,
    DOUBLE,
    DURATION,
    INT,
    IP,
    NO_OVERLOAD,
    OPTIONAL,
    QUANTITY,
    SEMVER,
    TIMESTAMP,
    UINT,
    Duration,
    EvaluationError,
    Optional,
    Quantity,
    Spend,
    Timestamp,
    Type,
    Version,
    at_most,
    compare,
    contains,
    equal,
    kind,
    less,
    text_of,
    version,
)
from stromboli.api.go_scalars import boolean
from stromboli.api.go_scalars import duration as go_duration
from stromboli.api.patterns import first_match, steps_to_match
from stromboli.api.resources.quantity import exact

DYN = "dyn"
_PER_CHARACTER = 16
"""Steps for each character of a text that is made, and for each byte."""
_PER_ELEMENT = 100
"""The same for an element of a list."""
_NANO = 10**9
_MAX_TEXT = 1000
"""Characters of a number, a quantity, an address or a version in a text."""


class Overload(NamedTuple):
    """One way to call a function."""

    parameters: tuple[str, ...]
    result: str
    run: Callable[..., Any]
    steps: Callable[..., int] | None = None
    """What a call costs, for the same arguments."""
    spends: bool = False
    """Whether the first argument of `run` counts steps while it runs."""


MISSING = {
    "authorization": "authorizer",
    "URL": "url isURL",
    "regex": "findAll",
    "format": "format.named",
}
"""Functions that Kubernetes has and this evaluator has not, by the library that they are of."""


# -- arithmetic


def _int(value: int) -> int:
    if -(2**63) <= value < 2**63:
        return value
    raise EvaluationError("integer overflow")


def _uint(value: int) -> Unsigned:
    if 0 <= value < 2**64:
        return Unsigned(value)
    raise EvaluationError("unsigned integer overflow")


def _quotient(left: int, right: int) -> int:
    """Towards zero."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return left - right * _quotient(left, right)


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _joined_length(left: Any, right: Any) -> int:
    return _PER_CHARACTER * (len(left) + len(right))


# -- conversions


def _to_int(value: float) -> int:
    if not math.isfinite(value) or not -(2**63) < value < 2**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _to_uint(value: float) -> Unsigned:
    if not math.isfinite(value) or not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return _uint(int(value))


def _parsed(text: str, parse: Callable[[str], Any]) -> Any:
    if len(text) > _MAX_TEXT or text != text.strip() or "_" in text or not text.isascii():
        raise EvaluationError(f"cannot parse {text[:50]!r}")
    try:
        return parse(text)
    except ValueError:
        raise EvaluationError(f"cannot parse {text[:50]!r}") from None


def _digits(text: str) -> int:
    if not text.isdecimal():
        raise ValueError
    return int(text)


def _bool(text: str) -> bool:
    value = boolean(text)
    if value is None:
        raise EvaluationError(f"cannot parse {text[:50]!r} as bool")
    return value


def _duration(text: str) -> Duration:
    seconds = go_duration(text)
    if seconds is None or abs(seconds) * _NANO >= 2**63:
        raise EvaluationError(f"invalid duration {text[:50]!r}")
    return Duration(round(seconds * _NANO))


_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


def timestamp(text: str) -> Timestamp:
    """A time as RFC 3339 writes it."""
    if len(text) > 64 or not _TIMESTAMP.fullmatch(text):
        raise EvaluationError(f"invalid timestamp {text[:50]!r}")
    head, dot, tail = text.upper().partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    try:
        moment = datetime.fromisoformat(head + tail[len(digits) :] if dot else head)
        return Timestamp.at(moment.astimezone(UTC), int(digits[:9].ljust(9, "0")) if digits else 0)
    except (ValueError, OverflowError):
        raise EvaluationError(f"invalid timestamp {text[:50]!r}") from None


def _made_of(value: Any, *_: Any) -> int:
    return _PER_CHARACTER * len(value)


# -- times


def _zone(name: str) -> tzinfo:
    if name[:1] in ("+", "-") or ":" in name:
        hours, _, minutes = name.partition(":")
        if not (hours.lstrip("+-").isdecimal() and minutes.isdecimal() and len(name) < 7):
            raise EvaluationError(f"invalid timezone {name[:50]!r}")
        offset = timedelta(hours=abs(int(hours)), minutes=int(minutes))
        if offset >= timedelta(days=1):
            raise EvaluationError(f"invalid timezone {name[:50]!r}")
        return timezone(-offset if name.startswith("-") else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name[:50]}") from None


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(time: Timestamp, zone: str = "UTC") -> int:
        try:
            return read(time.moment.astimezone(UTC if zone == "UTC" else _zone(zone)))
        except OverflowError:
            raise EvaluationError("timestamp out of range") from None

    return part


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda time: time.year,
    "getMonth": lambda time: time.month - 1,
    "getDate": lambda time: time.day,
    "getDayOfMonth": lambda time: time.day - 1,
    "getDayOfWeek": lambda time: (time.weekday() + 1) % 7,
    "getDayOfYear": lambda time: time.timetuple().tm_yday - 1,
    "getHours": lambda time: time.hour,
    "getMinutes": lambda time: time.minute,
    "getSeconds": lambda time: time.second,
}
_STEPS_TO_FIND_ZONE = 100_000


# -- texts


def _place(text: str, index: int) -> int:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return index


def _last_index(text: str, part: str, end: int) -> int:
    return text.rfind(part, 0, _place(text, end) + len(part))


def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[_place(text, start) : _place(text, end)]


def _ascii(text: str, convert: Callable[[str], str]) -> str:
    if text.isascii():
        return convert(text)
    return "".join(convert(letter) if letter.isascii() else letter for letter in text)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, max(limit, -1))


def _searched(text: str, part: str, *_: Any) -> int:
    return 2 * len(text) + len(part)


def _searched_backwards(text: str, part: str, *_: Any) -> int:
    """Going backwards, Python compares the whole part at each place."""
    return 2 * len(text) + len(part) * max(len(text) - len(part) + 1, 1)


def _compared(left: Any, right: Any) -> int:
    return min(_length(left), _length(right))


def _length(value: Any) -> int:
    """Steps to compare a value with one that begins with the same."""
    if isinstance(value, str | bytes):
        return len(value) // 2
    return 50 * len(value.prerelease) if isinstance(value, Version) else 0


def _find(spend: Spend, text: str, pattern: str) -> str:
    try:
        steps = steps_to_match(len(text.encode()), pattern)
    except ValueError:  # found out by compiling it, as far as that goes
        spend(_STEPS_TO_REFUSE + 25_000 * len(pattern))
        raise
    spend(steps)
    return first_match(text, pattern)


_STEPS_TO_REFUSE = 2_000_000


def _steps_to_replace(text: str, old: str, new: str, limit: int = -1) -> int:
    return _PER_CHARACTER * (len(text) + text.count(old) * len(new))


def _steps_to_split(text: str, separator: str, limit: int = -1) -> int:
    parts = text.count(separator) + 1 if separator else len(text)
    return 2 * _PER_CHARACTER * len(text) + _PER_ELEMENT * parts


def _join(values: list[Any], separator: str = "") -> str:
    if not all(isinstance(value, str) for value in values):
        raise EvaluationError(NO_OVERLOAD)
    return separator.join(values)


def _steps_to_join(values: list[Any], separator: str = "") -> int:
    length = sum(len(value) for value in values if isinstance(value, str))
    return _PER_CHARACTER * (length + len(separator) * len(values)) + _PER_ELEMENT * len(values)


# -- lists


def _sorted(values: list[Any], keys: list[Any] | None = None) -> list[Any]:
    """By keys that are of one type."""
    keys = values if keys is None else keys
    if len({kind(key) for key in keys}) > 1:
        raise EvaluationError(NO_OVERLOAD)
    if len(keys) == 1:
        less(keys[0], keys[0])
    order = cmp_to_key(compare)
    pairs = sorted(zip(keys, values, strict=True), key=lambda pair: order(pair[0]))
    return [value for _, value in pairs]


def sorted_by(values: list[Any], keys: list[Any], spend: Spend) -> list[Any]:
    """Values in the order of their keys."""
    spend(_steps_to_sort(keys))
    return _sorted(values, keys)


def _steps_to_sort(values: list[Any]) -> int:
    longest = max(map(_length, values), default=0)
    return (500 + 2 * longest) * len(values) * max(len(values).bit_length(), 1)


def _steps_to_compare(values: list[Any]) -> int:
    return (_PER_ELEMENT + max(map(_length, values), default=0)) * len(values)


def _is_sorted(values: list[Any]) -> bool:
    return not any(less(after, before) for before, after in pairwise(values))


def _extreme(values: list[Any], sign: int, name: str) -> Any:
    if not values:
        raise EvaluationError(f"{name} called on empty list")
    best = values[0]
    for value in values[1:]:
        if compare(value, best) == sign:
            best = value
    return best


def _sum(values: list[Any]) -> Any:
    total: Any = values[0] if values else 0
    if kind(total) not in (INT, UINT, DOUBLE, DURATION):
        raise EvaluationError(NO_OVERLOAD)
    for value in values[1:]:
        if kind(value) != kind(total):
            raise EvaluationError(NO_OVERLOAD)
        match kind(total):
            case "int":
                total = _int(total + value)
            case "uint":
                total = _uint(int(total) + int(value))
            case "double":
                total += value
            case _:
                total = Duration(total.nanos + value.nanos)
    return total


def _distinct(spend: Spend, values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        spend(_PER_ELEMENT * len(found))
        if not any(equal(value, other, spend) for other in found):
            found.append(value)
    return found


def _flatten(spend: Spend, values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for value in values:
        spend(_PER_ELEMENT)
        if isinstance(value, list) and depth:
            found += _flatten(spend, value, depth - 1)
        else:
            found.append(value)
    return found


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _includes(spend: Spend, target: Any, item: Any) -> bool:
    """Whether a list has an item; what is no list is its own only item."""
    return contains(item, target if isinstance(target, list) else [target], spend)


def _first_place(spend: Spend, values: list[Any], item: Any) -> int:
    spend(_per_element(values))
    return next((place for place, value in enumerate(values) if equal(value, item, spend)), -1)


def _last_place(spend: Spend, values: list[Any], item: Any) -> int:
    place = _first_place(spend, values[::-1], item)
    return place if place < 0 else len(values) - 1 - place


def _all_in(spend: Spend, values: list[Any], others: list[Any]) -> bool:
    return all(contains(other, values, spend) for other in others)


def _are_equivalent(spend: Spend, values: list[Any], others: list[Any]) -> bool:
    return _all_in(spend, values, others) and _all_in(spend, others, values)


def _per_element(values: list[Any], *_: Any) -> int:
    return _PER_ELEMENT * len(values)


# -- optional values


def _value(optional: Optional) -> Any:
    if not optional.is_present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


_EMPTY: tuple[Any, ...] = (None, False, 0, 0.0, "", b"", [], {})


# -- quantities and versions


def quantity(value: str | int | float) -> Quantity:
    """The quantity of a text; ValueError if it is none."""
    billionths = math.ceil(exact(value) * _NANO)
    if abs(billionths) >= 10**150:
        raise EvaluationError("the quantity is too large")
    return Quantity(billionths)


def _holds(parse: Callable[..., object], *arguments: Any) -> bool:
    try:
        parse(*arguments)
    except ValueError:
        return False
    return True


def _number_of(version: Version, place: int) -> int:
    number = version.numbers[place]
    return number if number < 2**63 else number - 2**64


_PARSING = 5000


def _parsing(text: Any, *_: Any) -> int:
    return _PARSING + (_PER_CHARACTER * len(text) if isinstance(text, str) else 0)


# -- addresses


def _address(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise EvaluationError(f"IP Address {text[:50]!r} with zone value is not allowed")
    address = ip_address(text)
    if address.version == 6 and getattr(address, "ipv4_mapped", None) is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {text[:50]!r} is not allowed")
    return address


def _interface(text: str) -> Any:
    address, _, length = text.partition("/")
    _address(address)
    if not length.isdecimal() or length != str(int(length[:9])):
        raise EvaluationError(f"network address parse error during conversion from string: {text[:50]!r}")
    return ip_interface(text)


def _contains_cidr(outer: Any, inner: Any) -> bool:
    one: IPv4Network | IPv6Network = outer.network
    return one.version == inner.version and bool(inner.network.subnet_of(one))


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    is_broadcast = str(address) == "255.255.255.255"
    local = address.is_unspecified or address.is_loopback or address.is_link_local
    return not (is_broadcast or local or address.is_multicast)


def _is_link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    return address in ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


# -- the table

_TYPES = {
    "time": TIMESTAMP,
    "span": DURATION,
    "optional": OPTIONAL,
    "quantity": QUANTITY,
    "semver": SEMVER,
    "ip": IP,
    "cidr": CIDR,
}
"""What the signatures below call types that have longer names."""
_SIGNATURE = re.compile(r"(\.?)(\S+)\(([a-z ]*)\) ([a-z]+)")
_PLAIN: tuple[tuple[Any, ...], ...] = (
    ("_+_(int int) int", lambda left, right: _int(left + right)),
    ("_-_(int int) int", lambda left, right: _int(left - right)),
    ("_*_(int int) int", lambda left, right: _int(left * right)),
    ("_/_(int int) int", lambda left, right: _int(_quotient(left, right))),
    ("_%_(int int) int", lambda left, right: _int(_remainder(left, right))),
    ("-_(int) int", lambda value: _int(-value)),
    ("_+_(uint uint) uint", lambda left, right: _uint(int(left) + int(right))),
    ("_-_(uint uint) uint", lambda left, right: _uint(int(left) - int(right))),
    ("_*_(uint uint) uint", lambda left, right: _uint(int(left) * int(right))),
    ("_/_(uint uint) uint", lambda left, right: _uint(_quotient(int(left), int(right)))),
    ("_%_(uint uint) uint", lambda left, right: _uint(_remainder(int(left), int(right)))),
    ("_+_(double double) double", operator.add),
    ("_-_(double double) double", operator.sub),
    ("_*_(double double) double", operator.mul),
    ("_/_(double double) double", _divide),
    ("-_(double) double", operator.neg),
    ("_+_(string string) string", operator.add, _joined_length),
    ("_+_(bytes bytes) bytes", operator.add, _joined_length),
    ("_+_(list list) list", operator.add, lambda left, right: _PER_ELEMENT * (len(left) + len(right))),
    ("_+_(time span) time", lambda left, right: Timestamp(left.nanos + right.nanos)),
    ("_+_(span time) time", lambda left, right: Timestamp(left.nanos + right.nanos)),
    ("_+_(span span) span", lambda left, right: Duration(left.nanos + right.nanos)),
    ("_-_(span span) span", lambda left, right: Duration(left.nanos - right.nanos)),
    ("_-_(time time) span", lambda left, right: Duration(left.nanos - right.nanos)),
    ("_-_(time span) time", lambda left, right: Timestamp(left.nanos - right.nanos)),
    ("!_(bool) bool", operator.not_),
    ("_<_(dyn dyn) bool", less, _compared),
    ("_>_(dyn dyn) bool", lambda left, right: less(right, left), _compared),
    ("_<=_(dyn dyn) bool", at_most, _compared),
    ("_>=_(dyn dyn) bool", lambda left, right: at_most(right, left), _compared),
    # conversions
    ("dyn(dyn) dyn", lambda value: value),
    ("type(dyn) type", lambda value: Type(kind(value))),
    ("int(int) int", lambda value: value),
    ("int(uint) int", lambda value: _int(int(value))),
    ("int(double) int", _to_int),
    ("int(string) int", lambda text: _int(_parsed(text, int))),
    ("int(time) int", lambda time: time.nanos // _NANO),
    ("int(span) int", lambda span: span.nanos),
    ("uint(int) uint", _uint),
    ("uint(uint) uint", lambda value: value),
    ("uint(double) uint", _to_uint),
    ("uint(string) uint", lambda text: _uint(_parsed(text, _digits))),
    ("double(int) double", float),
    ("double(uint) double", float),
    ("double(double) double", float),
    ("double(string) double", lambda text: _parsed(text, float)),
    ("bool(bool) bool", lambda value: value),
    ("bool(string) bool", _bool),
    *(
        (f"string({type}) string", text_of)
        for type in ("bool", "int", "uint", "double", "time", "span", "ip", "cidr")
    ),
    ("string(string) string", text_of, _made_of),
    ("string(bytes) string", text_of, _made_of),
    ("bytes(bytes) bytes", lambda value: value),
    ("bytes(string) bytes", str.encode, _made_of),
    ("duration(span) span", lambda value: value),
    ("duration(string) span", _duration),
    ("timestamp(time) time", lambda value: value),
    ("timestamp(string) time", timestamp),
    ("timestamp(int) time", lambda seconds: Timestamp(seconds * _NANO)),
    *((f"{form}size({type}) int", len) for form in ("", ".") for type in ("string", "bytes", "list", "map")),
    # times
    *((f".{name}(time) int", _part(read)) for name, read in _PARTS.items()),
    *(
        (f".{name}(time string) int", _part(read), lambda *_: _STEPS_TO_FIND_ZONE)
        for name, read in _PARTS.items()
    ),
    (".getMilliseconds(time) int", lambda time: time.nanos % _NANO // 1_000_000),
    (".getMilliseconds(time string) int", lambda time, zone: time.nanos % _NANO // 1_000_000),
    (".getHours(span) int", lambda span: _quotient(span.nanos, 3600 * _NANO)),
    (".getMinutes(span) int", lambda span: _quotient(span.nanos, 60 * _NANO)),
    (".getSeconds(span) int", lambda span: _quotient(span.nanos, _NANO)),
    (".getMilliseconds(span) int", lambda span: _quotient(span.nanos, 1_000_000)),
    # texts
    (".contains(string string) bool", operator.contains, _searched),
    (".startsWith(string string) bool", str.startswith, _compared),
    (".endsWith(string string) bool", str.endswith, _compared),
    (".indexOf(string string) int", str.find, _searched),
    (
        ".indexOf(string string int) int",
        lambda text, part, start: text.find(part, _place(text, start)),
        _searched,
    ),
    (".lastIndexOf(string string) int", str.rfind, _searched_backwards),
    (".lastIndexOf(string string int) int", _last_index, _searched_backwards),
    (".charAt(string int) string", lambda text, index: text[_place(text, index) :][:1], _made_of),
    (".substring(string int) string", lambda text, start: text[_place(text, start) :], _made_of),
    (".substring(string int int) string", _substring, _made_of),
    (".lowerAscii(string) string", lambda text: _ascii(text, str.lower), _made_of),
    (".upperAscii(string) string", lambda text: _ascii(text, str.upper), _made_of),
    (".trim(string) string", str.strip, _made_of),
    (".reverse(string) string", lambda text: text[::-1], _made_of),
    (".replace(string string string) string", str.replace, _steps_to_replace),
    (".replace(string string string int) string", _replace, _steps_to_replace),
    (".split(string string) list", _split, _steps_to_split),
    (".split(string string int) list", _split, _steps_to_split),
    (".join(list) string", _join, _steps_to_join),
    (".join(list string) string", _join, _steps_to_join),
    # lists
    (".sort(list) list", _sorted, _steps_to_sort),
    (".isSorted(list) bool", _is_sorted, _steps_to_compare),
    (".sum(list) dyn", _sum, _per_element),
    (".min(list) dyn", lambda values: _extreme(values, -1, "min"), _steps_to_compare),
    (".max(list) dyn", lambda values: _extreme(values, 1, "max"), _steps_to_compare),
    (".slice(list int int) list", _slice, _per_element),
    (".reverse(list) list", lambda values: values[::-1], _per_element),
    (".first(list) optional", lambda values: Optional(True, values[0]) if values else ABSENT),
    (".last(list) optional", lambda values: Optional(True, values[-1]) if values else ABSENT),
    ("lists.range(int) list", lambda end: list(range(end)), lambda end: _PER_ELEMENT * max(end, 0)),
    # optional values
    ("optional.of(dyn) optional", lambda value: Optional(True, value)),
    ("optional.none() optional", lambda: ABSENT),
    (
        "optional.ofNonZeroValue(dyn) optional",
        lambda value: ABSENT if value in _EMPTY else Optional(True, value),
    ),
    (".hasValue(optional) bool", lambda optional: optional.is_present),
    (".value(optional) dyn", _value),
    (".or(optional optional) optional", lambda one, other: one if one.is_present else other),
    (".orValue(optional dyn) dyn", lambda one, other: one.value if one.is_present else other),
    # quantities and versions
    ("quantity(string) quantity", quantity, _parsing),
    ("isQuantity(string) bool", lambda text: _holds(exact, text), _parsing),
    (".isInteger(quantity) bool", lambda amount: _holds(Quantity.as_integer, amount)),
    (".asInteger(quantity) int", Quantity.as_integer),
    (".asApproximateFloat(quantity) double", lambda amount: float(Fraction(amount.billionths, _NANO))),
    (".sign(quantity) int", lambda amount: (amount.billionths > 0) - (amount.billionths < 0)),
    (".add(quantity quantity) quantity", lambda one, other: Quantity(one.billionths + other.billionths)),
    (".add(quantity int) quantity", lambda one, other: Quantity(one.billionths + other * _NANO)),
    (".sub(quantity quantity) quantity", lambda one, other: Quantity(one.billionths - other.billionths)),
    (".sub(quantity int) quantity", lambda one, other: Quantity(one.billionths - other * _NANO)),
    ("semver(string) semver", version, _parsing),
    ("semver(string bool) semver", version, _parsing),
    ("isSemver(string) bool", lambda text: _holds(version, text), _parsing),
    ("isSemver(string bool) bool", lambda text, normalize: _holds(version, text, normalize), _parsing),
    (".major(semver) int", lambda version: _number_of(version, 0)),
    (".minor(semver) int", lambda version: _number_of(version, 1)),
    (".patch(semver) int", lambda version: _number_of(version, 2)),
    *(
        row
        for type in ("quantity", "semver")
        for row in (
            (f".isGreaterThan({type} {type}) bool", operator.gt, _compared),
            (f".isLessThan({type} {type}) bool", operator.lt, _compared),
            (f".compareTo({type} {type}) int", compare, _compared),
        )
    ),
    # addresses
    ("ip(string) ip", _address, _parsing),
    ("isIP(string) bool", lambda text: _holds(_address, text), _parsing),
    ("ip.isCanonical(string) bool", lambda text: str(_address(text)) == text, _parsing),
    (".family(ip) int", lambda address: address.version),
    (".isUnspecified(ip) bool", lambda address: address.is_unspecified),
    (".isLoopback(ip) bool", lambda address: address.is_loopback),
    (".isLinkLocalMulticast(ip) bool", _is_link_local_multicast),
    (".isLinkLocalUnicast(ip) bool", lambda address: address.is_link_local),
    (".isGlobalUnicast(ip) bool", _is_global_unicast),
    ("cidr(string) cidr", _interface, _parsing),
    ("isCIDR(string) bool", lambda text: _holds(_interface, text), _parsing),
    (".containsIP(cidr ip) bool", lambda cidr, address: address in cidr.network),
    (".containsIP(cidr string) bool", lambda cidr, text: _address(text) in cidr.network),
    (".containsCIDR(cidr cidr) bool", _contains_cidr),
    (".containsCIDR(cidr string) bool", lambda cidr, text: _contains_cidr(cidr, _interface(text))),
    (".ip(cidr) ip", lambda cidr: cidr.ip),
    (".masked(cidr) cidr", lambda cidr: ip_interface(cidr.network)),
    (".prefixLength(cidr) int", lambda cidr: cidr.network.prefixlen),
)
"""Signatures, with a dot before methods; what runs, and what it costs for the same arguments."""
_COUNTING: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("_==_(dyn dyn) bool", lambda spend, left, right: equal(left, right, spend)),
    ("_!=_(dyn dyn) bool", lambda spend, left, right: not equal(left, right, spend)),
    ("@in(dyn list) bool", lambda spend, item, values: contains(item, values, spend)),
    ("@in(dyn map) bool", lambda spend, item, values: contains(item, values, spend)),
    (".find(string string) string", _find),
    (".format(string list) string", formatted),
    (".distinct(list) list", _distinct),
    (".flatten(list) list", _flatten),
    (".flatten(list int) list", _flatten),
    (".includes(dyn dyn) bool", _includes),
    (".indexOf(list dyn) int", _first_place),
    (".lastIndexOf(list dyn) int", _last_place),
    ("sets.contains(list list) bool", _all_in),
    (
        "sets.equivalent(list list) bool",
        lambda spend, one, other: _all_in(spend, one, other) and _all_in(spend, other, one),
    ),
    (
        "sets.intersects(list list) bool",
        lambda spend, one, other: any(contains(item, other, spend) for item in one),
    ),
)
"""The same, of what counts its steps while it runs."""


def _overloads() -> dict[tuple[str, bool], list[Overload]]:
    found: dict[tuple[str, bool], list[Overload]] = {}
    rows = [(*row, None)[:3] for row in _PLAIN] + [(signature, run, None) for signature, run in _COUNTING]
    for number, (signature, run, steps) in enumerate(rows):
        match = _SIGNATURE.fullmatch(signature)
        assert match is not None, signature
        method, name, parameters, result = match.groups()
        types = tuple(_TYPES.get(type, type) for type in parameters.split())
        overload = Overload(types, _TYPES.get(result, result), run, steps, number >= len(_PLAIN))
        found.setdefault((name, bool(method)), []).append(overload)
    return found


FUNCTIONS = _overloads()
"""The ways to call each function, by its name and whether it is a method."""
