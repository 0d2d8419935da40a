"""A CRD with one field of every sort, and objects of it, right and wrong."""

from typing import Any

from hypothesis import strategies as st

from stromboli.api.schemas.crd_schemas import from_crd

FIELDS: dict[str, Any] = {
    "i": {"type": "integer", "minimum": 0, "maximum": 10},
    "ie": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
    "i32": {"type": "integer", "format": "int32"},
    "s": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a+$"},
    "e": {"type": "string", "enum": ["A", "B"]},
    "n": {"type": "number", "multipleOf": 2},
    "b": {"type": "boolean", "default": True},
    "l": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "m": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}, "d": {"type": "integer", "default": 7}},
        },
    },
    "o": {"type": "object", "required": ["r"], "properties": {"r": {"type": "string"}}},
    "mp": {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "maxProperties": 1,
        "minProperties": 1,
    },
    "ios": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+$",
    },
    "dt": {"type": "string", "format": "date-time"},
    "nn": {"type": "string"},
    "nu": {"type": "string", "nullable": True},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "untyped": {"x-kubernetes-preserve-unknown-fields": True, "pattern": "^[0-9]+$", "minimum": 2},
    "any": {"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "^z"}]},
    "not": {"type": "string", "not": {"enum": ["bad"]}},
    "one": {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 6}]},
    "all": {"type": "integer", "allOf": [{"minimum": 5}]},
    "deep": {
        "type": "object",
        "default": {},
        "properties": {
            "a": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "c"}}}
        },
    },
}
OPENAPI: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {"spec": {"type": "object", "properties": FIELDS}},
}
SCHEMA = from_crd(OPENAPI)


def custom_object(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


NUMBERS = [1.5, 2.0, 4, 2**31, 2**70, 1e300]
TEXTS = ["", "aa", "aaaaaa", "A", "bad", "zz", "12", "2026-01-01T00:00:00Z", "2026-01-01"]
SCALARS = [None, True, -1, 0, 6, *NUMBERS, *TEXTS]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 12) | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "d", "r", "a", "b", "x"]), below, max_size=3)
    ),
    max_leaves=6,
)
specs = st.dictionaries(st.sampled_from([*FIELDS, "unknown"]), values, max_size=6)
"""Specs of which some are right and many are not."""
