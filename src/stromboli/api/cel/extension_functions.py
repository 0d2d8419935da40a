"""Functions of Kubernetes that the library lacks: quantities, versions, addresses, texts that patterns match.

They take texts and return values of CEL. A quantity and a semantic version are texts that order as their values do, so
that they compare as texts; an address is its canonical text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface, ip_network
from typing import Any, NamedTuple

from stromboli.api.cel.semantic_versions import is_version, ordered_version, version_number
from stromboli.api.patterns import first_match, steps_to_match
from stromboli.api.resources.quantity import QuantityError, exact

_DIGITS = 150
_NANO = 10**9


class Function(NamedTuple):
    """A function or, with `is_method`, a method whose target is the first parameter."""

    name: str
    implementation: Callable[..., Any]
    result: str = "dyn"
    """bool, int, string or dyn"""
    parameters: tuple[str, ...] = ("string",)
    is_method: bool = False
    reads_any_text: bool = False
    """Whether it may be asked about any text of an object."""
    steps: Callable[..., int] = lambda *texts: 5000 + 50 * sum(map(len, texts))
    """What a call costs, for the same parameters."""


# -- quantities


def ordered_quantity(text: str | int | float) -> str:
    """The quantity as a text that orders as its value: in billionths, rounded up."""
    return _ordered(math.ceil(exact(text) * _NANO))


def _ordered(billionths: int) -> str:
    limit = 10**_DIGITS
    if abs(billionths) >= limit:
        raise ValueError("a quantity beyond all bounds")
    return f"1{billionths:0{_DIGITS}}" if billionths >= 0 else f"0{limit + billionths:0{_DIGITS}}"


def _billionths(quantity: str) -> int:
    if len(quantity) != _DIGITS + 1:
        raise ValueError("no such overload: the target is no quantity")
    number = int(quantity[1:])
    return number if quantity[0] == "1" else number - 10**_DIGITS


def _operand(text: str) -> int:
    return _billionths(text) if len(text) == _DIGITS + 1 else int(text) * _NANO


def _is_quantity(text: str) -> bool:
    try:
        exact(text)
    except QuantityError:
        return False
    return True


def _as_integer(quantity: str) -> int:
    whole, rest = divmod(_billionths(quantity), _NANO)
    if rest or not -(2**63) <= whole < 2**63:
        raise ValueError("cannot convert value to integer")
    return whole


def _is_integer(quantity: str) -> bool:
    return _billionths(quantity) % _NANO == 0 and abs(_billionths(quantity)) < 2**63 * _NANO


def _sign(quantity: str) -> int:
    amount = _billionths(quantity)
    return (amount > 0) - (amount < 0)


# -- addresses


def _ip(text: str) -> str:
    return str(_address(text))


def _address(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise ValueError(f"IP Address {text[:50]!r} with zone value is not allowed")
    address = ip_address(text)
    if address.version == 6 and getattr(address, "ipv4_mapped", None) is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text[:50]!r} is not allowed")
    return address


def _is_ip(text: str) -> bool:
    return _holds(_address, text)


def _cidr(text: str) -> str:
    return str(_interface(text))


def _interface(text: str) -> Any:
    address, _, length = text.partition("/")
    _address(address)
    if not length.isdecimal() or length != str(int(length[:9])):
        raise ValueError(f"network address parse error during conversion from string: {text[:50]!r}")
    return ip_interface(text)


def _is_cidr(text: str) -> bool:
    return _holds(_interface, text)


def _holds(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _network(cidr: str) -> IPv4Network | IPv6Network:
    return ip_network(cidr, strict=False)


def _contains_cidr(cidr: str, other: str) -> bool:
    outer, inner = _network(cidr), _network(_cidr(other))
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _is_global_unicast(text: str) -> bool:
    address = _address(text)
    is_broadcast = str(address) == "255.255.255.255"
    local = address.is_unspecified or address.is_loopback or address.is_link_local
    return not (is_broadcast or local or address.is_multicast)


def _is_link_local_multicast(text: str) -> bool:
    address = _address(text)
    return address in ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def _version(text: str, normalize: str) -> str:
    return ordered_version(text, normalize == "true")


def _is_version(text: str, normalize: str) -> bool:
    return is_version(text, normalize == "true")


def _steps_to_match(text: str, pattern: str) -> int:
    return 5000 + steps_to_match(len(text.encode()), pattern)


FUNCTIONS = (
    Function("quantity", ordered_quantity, reads_any_text=True),
    Function("isQuantity", _is_quantity, "bool", reads_any_text=True),
    Function("isInteger", _is_integer, "bool", ("dyn",), True),
    Function("asInteger", _as_integer, "int", ("dyn",), True),
    Function(
        "asApproximateFloat", lambda text: float(Fraction(_billionths(text), _NANO)), "dyn", ("dyn",), True
    ),
    Function("sign", _sign, "int", ("dyn",), True),
    Function("add", lambda one, two: _ordered(_billionths(one) + _operand(two)), "dyn", ("dyn", "dyn"), True),
    Function("sub", lambda one, two: _ordered(_billionths(one) - _operand(two)), "dyn", ("dyn", "dyn"), True),
    Function("semver", ordered_version, reads_any_text=True),
    Function("semver", _version, parameters=("string", "bool")),
    Function("isSemver", is_version, "bool", reads_any_text=True),
    Function("isSemver", _is_version, "bool", ("string", "bool")),
    Function("major", lambda version: version_number(version, 0), "int", ("dyn",), True),
    Function("minor", lambda version: version_number(version, 1), "int", ("dyn",), True),
    Function("patch", lambda version: version_number(version, 2), "int", ("dyn",), True),
    Function("ip", _ip, reads_any_text=True),
    Function("isIP", _is_ip, "bool", reads_any_text=True),
    Function("ip.isCanonical", lambda text: _ip(text) == text, "bool"),
    Function("family", lambda text: _address(text).version, "int", ("dyn",), True),
    Function("isUnspecified", lambda text: _address(text).is_unspecified, "bool", ("dyn",), True),
    Function("isLoopback", lambda text: _address(text).is_loopback, "bool", ("dyn",), True),
    Function("isLinkLocalMulticast", _is_link_local_multicast, "bool", ("dyn",), True),
    Function("isLinkLocalUnicast", lambda text: _address(text).is_link_local, "bool", ("dyn",), True),
    Function("isGlobalUnicast", _is_global_unicast, "bool", ("dyn",), True),
    Function("cidr", _cidr, reads_any_text=True),
    Function("isCIDR", _is_cidr, "bool", reads_any_text=True),
    Function("containsIP", lambda cidr, ip: _address(ip) in _network(cidr), "bool", ("dyn", "dyn"), True),
    Function("containsCIDR", _contains_cidr, "bool", ("dyn", "dyn"), True),
    Function("ip", lambda cidr: _ip(cidr.partition("/")[0]), "dyn", ("dyn",), True),
    Function("masked", lambda cidr: str(_network(cidr)), "dyn", ("dyn",), True),
    Function("prefixLength", lambda cidr: _network(cidr).prefixlen, "int", ("dyn",), True),
    Function("find", first_match, "string", ("string", "string"), True, steps=_steps_to_match),
)
"""What is looked up. Functions that can be said in CEL itself are in `tree_rewriting`."""
