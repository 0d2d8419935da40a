"""Selectors of devices: expressions over `device`, as DeviceClasses and ResourceClaims have them (spec 04 2.12).

`device.attributes` and `device.capacity` are maps by domain, and a domain that a device has nothing of is an empty map,
so that `"model" in device.attributes["example.com"]` is false and not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from stromboli.api.cel.expression import CelError, CostBudget, Environment, EvaluationError, Expression
from stromboli.api.cel.extension_functions import ordered_quantity
from stromboli.api.cel.semantic_versions import ordered_version
from stromboli.api.cel.syntax_tree import CALL, COMPREHENSION, CONSTANT, IDENTIFIER, SELECT, STRUCT, Node
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
    return Environment([DEVICE], MAX_SELECTOR, _with_empty_domains)


# -- values


def device_value(driver: str, device: Device) -> dict[str, Any]:
    """What `device` is in an expression; EvaluationError if an attribute or a capacity has no value."""
    value: dict[str, Any] = {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": {},
        "capacity": {},
    }
    for name, attribute in device.attributes.items():
        domain, id = split_name(name, driver)
        value["attributes"].setdefault(domain, {})[id] = _attribute(name, attribute)
    for name, capacity in device.capacity.items():
        domain, id = split_name(name, driver)
        try:
            value["capacity"].setdefault(domain, {})[id] = ordered_quantity(capacity.value)
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


def _version(name: str, text: str) -> str:
    try:
        return ordered_version(text)
    except ValueError as error:
        raise EvaluationError(f"attribute {name[:100]}: {error}") from None


# -- trees


def _with_empty_domains(node: Node, names: frozenset[str] = frozenset()) -> Node:
    """The tree with an empty map for domains that a device has not; `names` are bound to one of the two maps."""
    children = node.children
    if node.kind == COMPREHENSION and len(children) == 5 and _is_map(children[1], names):
        bound = names | {node.accumulator}
        rest = tuple(_with_empty_domains(child, names) for child in children[:-1])
        return replace(node, children=(*rest, _with_empty_domains(children[-1], bound)))
    node = replace(node, children=tuple(_with_empty_domains(child, names) for child in children))
    key = _domain_key(node, names)
    if key is None:
        return node
    found = Node(CALL, "_[?_]", (node.children[0], key))
    return Node(CALL, "orValue", (found, Node(STRUCT)), is_method=True)


def _is_map(node: Node, names: frozenset[str]) -> bool:
    """Whether a node is `device.attributes` or `device.capacity`, or a name that is bound to it."""
    if node.kind == IDENTIFIER:
        return node.name in names
    is_field = node.kind == SELECT and node.name in _MAPS and not node.is_test
    return is_field and node.children[0].kind == IDENTIFIER and node.children[0].name == DEVICE


def _domain_key(node: Node, names: frozenset[str]) -> Node | None:
    """The domain that a node looks up in one of the two maps, as `[domain]` or `.domain`."""
    if node.kind == CALL and node.name == "_[_]" and _is_map(node.children[0], names):
        return node.children[1]
    if node.kind == SELECT and not node.is_test and _is_map(node.children[0], names):
        return Node(CONSTANT, value=node.name)
    return None


def _reads(tree: Node, bound: Mapping[str, tuple[str, str]] | None = None) -> frozenset[Read] | None:
    """The attributes and capacities that an expression names; None if it looks at the maps in another way.

    `bound` are the names that `cel.bind` gives to the map of a domain.
    """
    bound = bound or {}
    read = _read(tree, bound)
    if read is not None:
        return frozenset({read})
    if _is_map(tree, frozenset(bound)):
        return None
    children, names = list(tree.children), bound
    if tree.kind == COMPREHENSION and (domain := _domain(children[1], bound)) is not None:
        names, children = (
            {**bound, tree.accumulator: domain},
            children[4:],
        )  # the loop of a bind has no rounds
    reads: set[Read] = set()
    for child in children:
        inner = _reads(child, names)
        if inner is None:
            return None
        reads |= inner
    return frozenset(reads)


def _read(node: Node, bound: Mapping[str, tuple[str, str]]) -> Read | None:
    """`device.attributes["domain"].name`, or a test whether there is such a name."""
    if node.kind == SELECT:
        target, name = node.children[0], Node(CONSTANT, value=node.name)
    elif node.kind == CALL and node.name == "_[_]":
        target, name = node.children
    elif node.kind == CALL and node.name == "@in":
        name, target = node.children
    else:
        return None
    domain = _domain(target, bound)
    is_constant = name.kind == CONSTANT and isinstance(name.value, str)
    return (*domain, name.value) if domain is not None and is_constant else None


def _domain(node: Node, bound: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The map of a domain that is written out, after domains have their empty maps."""
    if node.kind == IDENTIFIER:
        return bound.get(node.name)
    if node.kind != CALL or node.name != "orValue" or node.children[0].name != "_[?_]":
        return None
    target, domain = node.children[0].children
    if not _is_map(target, frozenset()) or not isinstance(domain.value, str):
        return None
    return target.name, domain.value
