"""What somebody may have meant who wrote a field that a schema does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stromboli.api.schemas.schema import Schema

MAX_LENGTH = 64
"""Of a field that is compared with others; longer ones are no slip of the pen."""
_STEP = re.compile(r"\[\d+\]|[^.\[]+")


def suggested_field(path: str, schema: Schema) -> str:
    """The field that was probably meant by one that is unknown, such as `nodeSelector`; empty if none comes to mind.

    A field of the right name in the wrong place is named with its path, since that is a mistake of indentation.
    """
    *parents, key = _STEP.findall(path) or [""]
    above = _schemas_above(parents, schema)
    if not above or len(key) > MAX_LENGTH:
        return ""
    return (
        _closest(key, above[-1].properties)
        or _field_above(key, parents, above[:-1])
        or _field_below(key, _joined(parents), above[-1])
    )


def _schemas_above(steps: list[str], schema: Schema) -> list[Schema]:
    """The schemas of all parents of a field, from the outside in; none if the path leads nowhere."""
    schemas = [schema]
    for step in steps:
        inner = schemas[-1].items if step.startswith("[") else schemas[-1].properties.get(step)
        inner = inner or schemas[-1].additional_properties
        if inner is None:
            return []
        schemas.append(inner)
    return schemas


def _field_above(key: str, parents: list[str], above: list[Schema]) -> str:
    """A field of that very name further out, the nearest first."""
    for depth in range(len(above) - 1, 0, -1):
        if key in above[depth].properties:
            return _joined([*parents[:depth], key])
    return ""


def _field_below(key: str, parent: str, schema: Schema) -> str:
    """A field of that very name one level further in."""
    for name, inner in schema.properties.items():
        element, brackets = (inner.items, "[]") if inner.items is not None else (inner, "")
        if key in element.properties:
            return f"{parent}.{name}{brackets}.{key}".lstrip(".")
    return ""


def _joined(steps: list[str]) -> str:
    return "".join(step if step.startswith("[") else f".{step}" for step in steps).lstrip(".")


def _closest(key: str, names: Iterable[str]) -> str:
    """A field of the same object that is written almost alike."""
    from difflib import get_close_matches  # only mistakes pay for it

    by_lower_case = {name.lower(): name for name in names}
    close = get_close_matches(key.lower(), by_lower_case, 1, 0.75)
    return by_lower_case[close[0]] if close else ""
