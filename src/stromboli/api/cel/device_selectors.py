"""Selectors of devices: expressions over `device`, as DeviceClasses and ResourceClaims have them (spec 04 2.12).

`device.attributes` and `device.capacity` are maps by domain. A domain of which a device has nothing reads as an empty
map, so that `"model" in device.attributes["example.com"]` is false and not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from stromboli.api.cel.expression import CelError, CostBudget, Environment, EvaluationError, Expression
from stromboli.api.cel.functions import quantity
from stromboli.api.cel.syntax import BIND, CALL, CONSTANT, IDENTIFIER, SELECT, Node
from stromboli.api.cel.values import Version, version
from stromboli.api.types.devices import Device, DeviceAttribute

DEVICE = "device"
MAX_SELECTOR = 10 * 1024
"""Bytes of the expression of a selector."""
_MAPS = ("attributes", "capacity")
_FIELDS = frozenset({"driver", "allowMultipleAllocations", *_MAPS})

Read = tuple[str, str, str]
"""`attributes` or `capacity`, domain and name."""


class DeviceSelection(NamedTuple):
    """A compiled selector."""

    expression: Expression
    reads: frozenset[Read] | None
    """What it reads of attributes and capacity; None if that depends on the device."""

    def matches(self, device: Mapping[str, Any], costs: CostBudget | None = None) -> bool:
        """Whether the selector is true for a device (see `device_value`); EvaluationError if it has no value."""
        result: bool = self.expression.evaluate({DEVICE: device}, costs)
        return result


def compiled_selector(text: str) -> DeviceSelection:
    """The selector; CelError if it is none."""
    expression = _environment().compile(text)
    fields = expression.paths.get(DEVICE, {})
    for field in fields or ():
        if field not in _FIELDS:
            raise CelError(f"undefined field '{field}': a device has {', '.join(sorted(_FIELDS))}")
    return DeviceSelection(expression, None if fields is None else _reads(expression.tree))


@cache
def _environment() -> Environment:
    return Environment([DEVICE], MAX_SELECTOR)


# -- values


class _Domains(dict[str, dict[str, Any]]):
    """Attributes or capacities by domain."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


def device_value(driver: str, device: Device) -> dict[str, Any]:
    """What `device` is in an expression; EvaluationError if an attribute or a capacity has no value."""
    value: dict[str, Any] = {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": _Domains(),
        "capacity": _Domains(),
    }
    for name, attribute in device.attributes.items():
        domain, id = split_name(name, driver)
        value["attributes"].setdefault(domain, {})[id] = _attribute(name, attribute)
    for name, capacity in device.capacity.items():
        domain, id = split_name(name, driver)
        try:
            value["capacity"].setdefault(domain, {})[id] = quantity(capacity.value)
        except ValueError as error:
            raise EvaluationError(f"capacity {name[:100]}: {error}") from None
    return value


def split_name(name: str, driver: str) -> tuple[str, str]:
    """The domain and the name of an attribute or a capacity; a bare name is of the driver's domain."""
    domain, slash, id = name.partition("/")
    return (domain, id) if slash else (driver, name)


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    if attribute.version_values is not None:
        return [_version(name, text) for text in attribute.version_values]
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
        if values is not None:
            return list(values)
    if attribute.version_value is not None:
        return _version(name, attribute.version_value)
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    raise EvaluationError(f"attribute {name[:100]}: unsupported attribute value")


def _version(name: str, text: str) -> Version:
    try:
        return version(text)
    except ValueError as error:
        raise EvaluationError(f"attribute {name[:100]}: {error}") from None


# -- what an expression reads


def _is_map(node: Node, names: frozenset[str] = frozenset()) -> bool:
    """Whether a node is `device.attributes` or `device.capacity`, or a name that is bound to it."""
    if node.kind == IDENTIFIER:
        return node.name in names
    is_field = node.kind == SELECT and node.name in _MAPS and not node.is_test
    return is_field and node.children[0].kind == IDENTIFIER and node.children[0].name == DEVICE


def _reads(tree: Node, bound: Mapping[str, tuple[str, str]] | None = None) -> frozenset[Read] | None:
    """The attributes and capacities that an expression names; None if it looks at the maps in another way.

    `bound` are the names that `cel.bind` gives to the map of a domain.
    """
    bound = bound or {}
    read = _read(tree, bound)
    if read is not None:
        return frozenset({read})
    if _is_map(tree, frozenset(bound)) or (tree.name == "_?._" and tree.children[0].name == DEVICE):
        return None
    children, names = tree.children, bound
    if tree.kind == BIND and (domain := _domain(children[0], bound)) is not None:
        names, children = {**bound, tree.name: domain}, children[1:]
    reads: set[Read] = set()
    for child in children:
        inner = _reads(child, names)
        if inner is None:
            return None
        reads |= inner
    return frozenset(reads)


def _read(node: Node, bound: Mapping[str, tuple[str, str]]) -> Read | None:
    """`device.attributes["domain"].name`, or a test whether there is such a name."""
    if node.kind == CALL and node.name == "@in":
        name, target = node.children
    else:
        item = _item(node)
        if item is None:
            return None
        target, name = item
    domain = _domain(target, bound)
    is_constant = name.kind == CONSTANT and isinstance(name.value, str)
    return (*domain, name.value) if domain is not None and is_constant else None


def _domain(node: Node, bound: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The map of a domain that is written out."""
    if node.kind == IDENTIFIER:
        return bound.get(node.name)
    item = _item(node)
    if item is None or node.is_test or not _is_map(item[0]) or not isinstance(item[1].value, str):
        return None
    return item[0].name, item[1].value


def _item(node: Node) -> tuple[Node, Node] | None:
    """The target and the key of `target.key`, `has(target.key)` and `target[key]`."""
    if node.kind == SELECT:
        return node.children[0], Node(CONSTANT, value=node.name)
    if node.kind == CALL and node.name == "_[_]":
        return node.children[0], node.children[1]
    return None
