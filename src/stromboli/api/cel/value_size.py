"""Sizes of values: what the cost of an evaluation is computed from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

MAX_DEPTH = 100
"""Levels of lists and maps in the value of a variable."""
_NAMED_LEVELS = 3
_MAX_NAMED = 100
"""Levels, and fields of each, that are measured apart; all others count as large as the largest."""


class UnsupportedValue(ValueError):
    """A value that the library would read wrongly."""


@dataclass(frozen=True, slots=True)
class Size:
    """At most how large a value is."""

    bytes: int
    """Of all texts and scalars in it."""
    nodes: int = 1
    """Values in it, itself included."""
    items: int = 0
    """Elements of a list or a map."""
    element: Size | None = None
    """At most how large each element is."""
    fields: Mapping[str, Size] | None = None

    def field(self, name: str) -> Size:
        """The size of a field; a missing one has none."""
        return self.fields.get(name, SCALAR) if self.fields is not None else self.child

    @property
    def child(self) -> Size:
        """The size of any element; of what is no list or map, its own: the type is not known."""
        return self.element or self


SCALAR = Size(8)


def largest(sizes: Iterable[Size]) -> Size:
    """At least as large as each of these."""
    return reduce(_larger, sizes, SCALAR)


def _larger(left: Size, right: Size) -> Size:
    if left.element is None or right.element is None:
        element = left.element or right.element
    else:
        element = _larger(left.element, right.element)
    return Size(
        max(left.bytes, right.bytes), max(left.nodes, right.nodes), max(left.items, right.items), element
    )


def joined(sizes: list[Size], items: int, element: Size | None = None) -> Size:
    """The size of a list of some items, made of these values or of their elements."""
    return Size(
        sum(size.bytes for size in sizes),
        sum(size.nodes for size in sizes) + 1,
        items,
        element or largest(sizes),
    )


def measured(value: Any, depth: int = 0) -> Size:
    """The size of a value. The library cuts a text at a NUL and fails on broken Unicode, so both are refused."""
    if isinstance(value, str):
        return Size(_text_bytes(value))
    if isinstance(value, bytearray):
        return Size(len(value))
    if not isinstance(value, dict | list):
        return SCALAR
    if depth >= MAX_DEPTH:
        raise UnsupportedValue(f"a value with more than {MAX_DEPTH} levels cannot be evaluated")
    if isinstance(value, list):
        return _container(value, 0, depth)
    key_bytes = sum(map(_text_bytes, value))
    if depth >= _NAMED_LEVELS or len(value) > _MAX_NAMED:
        return _container(value.values(), key_bytes, depth)
    fields = {key: measured(item, depth + 1) for key, item in value.items()}
    sizes = [Size(key_bytes), *fields.values()]
    return replace(joined(sizes, len(value)), fields=fields)


def _container(values: Collection[Any], key_bytes: int, depth: int) -> Size:
    """Scalars, which are most of all values, are counted without an object each."""
    total, nodes, longest = key_bytes, 1 + len(values), max(8, key_bytes)
    element = None
    for value in values:
        if isinstance(value, str):
            length = _text_bytes(value)
            total += length
            longest = max(longest, length)
        elif isinstance(value, dict | list):
            size = measured(value, depth + 1)
            total += size.bytes
            nodes += size.nodes
            element = size if element is None else _larger(element, size)
        elif isinstance(value, bytearray):
            total += len(value)
            longest = max(longest, len(value))
        else:
            total += 8
    scalar = Size(longest)
    return Size(total, nodes, len(values), scalar if element is None else _larger(element, scalar))


def _text_bytes(text: str) -> int:
    if "\0" in text:
        raise UnsupportedValue("a text with a NUL character cannot be evaluated")
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise UnsupportedValue("a text with broken Unicode cannot be evaluated") from None
