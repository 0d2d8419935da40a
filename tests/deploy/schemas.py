"""The part of the CRD schema language that our CRDs use: are they structural, and what do they accept?

`tests/kubernetes/test_manifests.py` has a real API server judge them; this one needs none and catches most mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

Schema = dict[str, Any]

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
}
OPEN = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_KEYS = "x-kubernetes-list-map-keys"
ANYWHERE = {"description", "type", "default", "enum", OPEN, "x-kubernetes-validations"}
KEYS = {
    "object": {"properties", "required", "additionalProperties", "x-kubernetes-map-type"},
    "array": {"items", "minItems", "x-kubernetes-list-type", LIST_KEYS},
    "string": {"format", "pattern", "minLength", "maxLength", "nullable"},
    "integer": {"format", "minimum", "maximum"},
    "boolean": set[str](),
}
EITHER = [{"type": "integer"}, {"type": "string"}]
RANGES = {"int32": 2**31, "int64": 2**63}


def structural_problems(root: Schema) -> Iterator[str]:
    """What an API server would refuse in a schema."""
    if root.get("type") != "object" or OPEN in root:
        yield "the root must be an object with known fields"
    if root["properties"].get("metadata") != {"type": "object"}:
        yield "metadata is the API server's: it may only have a type"
    for path, schema in nodes(root):
        yield from (f"{path}: {problem}" for problem in _node_problems(schema))


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every node of a schema with its path: `.spec.tasks[].name`, `.spec.plugins{}`."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def _node_problems(schema: Schema) -> Iterator[str]:
    if schema.get(INT_OR_STRING):
        if schema.get("anyOf") != EITHER or schema.keys() - {"anyOf", "pattern", INT_OR_STRING}:
            yield "an int-or-string is exactly that, with a pattern"
        return
    if is_amount(schema):
        return
    if schema.get("type") not in TYPES:
        yield f"needs a type, has {schema.get('type')}"
        return
    if unknown := schema.keys() - ANYWHERE - KEYS[schema["type"]]:
        yield f"does not go with a {schema['type']}: {', '.join(sorted(unknown))}"
    if schema["type"] == "array" and "items" not in schema:
        yield "an array needs items"
    for key in schema.get(LIST_KEYS, ()):
        if (
            key not in schema["items"].get("required", ())
            and "default" not in schema["items"]["properties"][key]
        ):
            yield f"the key {key} of a list must be required or have a default"
    if schema["type"] == "object":
        yield from _object_problems(schema)
    if "pattern" in schema:
        re.compile(schema["pattern"])
    if "default" in schema:
        yield from (f"default: {problem}" for problem in problems(schema, schema["default"]))


def is_amount(schema: Schema) -> bool:
    """Whether this is a quantity of a pod template: a text with a pattern, or a number."""
    return schema.keys() == {"pattern", OPEN}


def _object_problems(schema: Schema) -> Iterator[str]:
    if "properties" in schema and "additionalProperties" in schema:
        yield "has fields of its own and of the user's choice"
    if not schema.keys() & {"properties", "additionalProperties", OPEN} and schema != {"type": "object"}:
        yield "an object needs fields, or to be open"
    if strangers := set(schema.get("required", ())) - schema.get("properties", {}).keys():
        yield f"requires what it does not describe: {', '.join(sorted(strangers))}"


def problems(schema: Schema, value: Any, path: str = "") -> Iterator[str]:
    """What an API server would refuse in an object; rules in CEL are left to a real one."""
    if schema.get(INT_OR_STRING) or is_amount(schema):
        types = int | str if schema.get(INT_OR_STRING) else int | float | str
        if not isinstance(value, types) or not re.search(schema.get("pattern", ""), str(value)):
            yield f"{path}: no quantity: {value!r}"
        return
    if value is None and schema.get("nullable"):
        return
    wanted = TYPES[schema["type"]]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        yield f"{path}: must be a {schema['type']}, not {value!r}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: must be one of {schema['enum']}, not {value!r}"
    if isinstance(value, str):
        yield from _string_problems(schema, value, path)
    elif isinstance(value, int):
        yield from _number_problems(schema, value, path)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{path}: needs {schema['minItems']} items"
        for index, part in enumerate(value):
            yield from problems(schema["items"], part, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _map_problems(schema, value, path)


def _string_problems(schema: Schema, value: str, path: str) -> Iterator[str]:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield f"{path}: too short or too long"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if schema.get("format") == "date-time":
        try:
            datetime.fromisoformat(value)
        except ValueError:
            yield f"{path}: {value!r} is no time"


def _number_problems(schema: Schema, value: int, path: str) -> Iterator[str]:
    most = RANGES.get(schema.get("format", ""), 2**63)
    if not max(schema.get("minimum", -most), -most) <= value <= min(schema.get("maximum", most), most - 1):
        yield f"{path}: {value} is out of range"


def _map_problems(schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: is missing"
    for name, part in value.items():
        if name in known:
            yield from problems(known[name], part, f"{path}.{name}")
        elif "additionalProperties" in schema:
            yield from problems(schema["additionalProperties"], part, f"{path}.{name}")
        elif not schema.get(OPEN) and schema != {"type": "object"}:
            yield f"{path}.{name}: unknown, would be dropped"


def with_defaults(schema: Schema, value: Any) -> Any:
    """The object as an API server would store it."""
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(schema["items"], part) for part in value]
    if not isinstance(value, dict):
        return value
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
    filled = {name: part["default"] for name, part in known.items() if "default" in part} | value
    return {name: with_defaults(known.get(name, rest), part) for name, part in filled.items()}
