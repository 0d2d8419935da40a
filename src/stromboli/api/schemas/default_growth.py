"""How much defaults would add to an object: a default of a list's items is multiplied by their number."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from stromboli.api.schemas.normalization import default
from stromboli.api.schemas.schema import Schema

MAX_GROWTH = 4 * 1024 * 1024
"""Bytes that defaults may add to an object."""
NEGLIGIBLE = 64
"""Bytes that may be added to each value of the largest object without coming near the bound."""


def exceeds_growth(content: Any, schema: Schema) -> bool:
    """Whether defaults would add more than `MAX_GROWTH` bytes. Nothing is changed."""
    if _largest(schema) <= NEGLIGIBLE:
        return False
    growth, pending = 0, [(content, schema)]
    while pending and growth <= MAX_GROWTH:
        value, schema = pending.pop()
        if isinstance(value, dict):
            growth += sum(size for key, size in _sizes(schema) if key not in value)
            children = ((child, schema.child(key)) for key, child in value.items())
        else:
            children = ((child, schema.element) for child in value)
        pending.extend(pair for pair in children if isinstance(pair[0], dict | list))
    return growth > MAX_GROWTH


@lru_cache(maxsize=16384)
def _largest(schema: Schema) -> int:
    """The most bytes that are added to one map anywhere in a value."""
    inner = [*schema.properties.values(), schema.additional_properties, schema.items]
    nested = (_largest(part) for part in inner if part is not None)
    return max(sum(size for _, size in _sizes(schema)), *nested, 0)


@lru_cache(maxsize=16384)
def _sizes(schema: Schema) -> tuple[tuple[str, int], ...]:
    """The keys of a map that have defaults, and the encoded size of each with its own defaults."""
    sizes = []
    for key, part in schema.properties.items():
        if part.default is not msgspec.UNSET:
            value = msgspec.json.decode(msgspec.json.encode(part.default))
            default(value, part)
            sizes.append((key, len(key) + len(msgspec.json.encode(value)) + 4))
    return tuple(sizes)
