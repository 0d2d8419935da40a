"""Schemas of CRDs: ours are read, others are refused with the place that has to be mended, none does harm."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.schemas.compiled_schema import compiled
from stromboli.api.schemas.crd_schemas import MAX_DEPTH, SchemaError, from_crd
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.volcano_definitions import volcano_definitions

DEFINITIONS = list(volcano_definitions())


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition["metadata"]["name"])
def test_volcanos_crds_are_read(definition: dict[str, Any]) -> None:
    for version in definition["spec"]["versions"]:
        schema = from_crd(version["schema"]["openAPIV3Schema"])
        assert (
            compiled(schema)({"apiVersion": "x", "kind": "y", "metadata": {"name": "z"}, "spec": 7}) is False
        )


def test_metadata_are_known_whatever_the_schema_says_of_them() -> None:
    schema = from_crd({"type": "object", "properties": {"metadata": {"type": "object"}}})
    it = {
        "apiVersion": "v1",
        "kind": "T",
        "metadata": {"name": "a", "labels": {"x": "y"}, "odd": 1},
        "odd": 1,
    }
    assert normalize(it, schema).unknown == ["metadata.odd", "odd"]
    assert it["metadata"] == {"name": "a", "labels": {"x": "y"}}


def test_without_a_schema_everything_is_kept() -> None:
    it = {"apiVersion": "v1", "kind": "T", "metadata": {"name": "a"}, "odd": {"x": None}}
    assert normalize(it, from_crd(None)) == ([], [])
    assert it["odd"] == {"x": None}


def test_an_object_within_an_object_keeps_its_head() -> None:
    inner = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    schema = from_crd({"type": "object", "properties": {"pod": inner}})
    it = {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}, "y": 1}}
    assert normalize(it, schema).unknown == ["pod.spec.x", "pod.y"]
    assert it == {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}}


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({}, "s.properties[f].type: Required value: must not be empty for specified object fields"),
        ({"type": "text"}, 's.properties[f].type: Unsupported value: "text": supported values: "array"'),
        ({"type": "array"}, "s.properties[f].items: Required value: must be specified"),
        ({"type": "string", "pattern": "("}, "must be a valid regular expression"),
        ({"type": "string", "$ref": "#/x"}, "s.properties[f].$ref: Forbidden"),
        (
            {"type": "string", "minLength": -1},
            "s.properties[f].minLength: Invalid value: -1: must be a number",
        ),
        ({"type": "string", "nullable": "yes"}, "must be true or false"),
        ({"type": "string", "enum": 7}, "s.properties[f].enum: Invalid value: 7: must be a list"),
        (7, "s.properties[f]: Invalid value: 7: must be an object"),
        (
            {"type": "object", "properties": []},
            "s.properties[f].properties: Invalid value: []: must be an object",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
            "additionalProperties and properties are mutual exclusive",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"},
            "x-kubernetes-list-map-keys: Required value",
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["b"],
            },
            'x-kubernetes-list-map-keys[0]: Invalid value: "b": must be the name of a field of the items',
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            "s.properties[f].items.properties[a].default: Required value: this property is in"
            " x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "uniqueItems cannot be set to true",
        ),
    ],
)
def test_a_schema_that_leaves_something_open_is_refused(field: Any, problem: str) -> None:
    with pytest.raises(SchemaError) as refused:
        from_crd({"type": "object", "properties": {"f": field}}, "s")
    assert any(problem in str(actual) for actual in refused.value.problems)


def test_the_root_is_an_object() -> None:
    with pytest.raises(SchemaError, match="must be object at the root"):
        from_crd({"type": "string"})


def test_a_schema_made_to_hurt_is_refused() -> None:
    deep: Any = {"type": "object"}
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(SchemaError, match="too large"):
        from_crd(deep)
    wide = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(30_000)}}
    with pytest.raises(SchemaError, match="too large"):
        from_crd(wide)


_keywords = st.sampled_from(
    [
        *(
            "type",
            "properties",
            "items",
            "additionalProperties",
            "required",
            "enum",
            "default",
            "pattern",
            "format",
        ),
        *("minimum", "maxLength", "minItems", "allOf", "anyOf", "not", "nullable", "multipleOf"),
        *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
        *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-validations"),
    ]
)
_values = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.just(0.0)
    | st.sampled_from(["object", "array", "string", "integer", "set", "map", "^a", "date-time"])
)
_schemas = st.recursive(
    _values,
    lambda below: (
        st.dictionaries(_keywords | st.sampled_from(["a", "b"]), below, max_size=5)
        | st.lists(below, max_size=3)
    ),
    max_leaves=20,
)


@given(_schemas, _schemas)
def test_any_schema_is_read_or_refused_and_then_judges_any_object(raw: Any, value: Any) -> None:
    outer = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": raw}}
    for candidate in (raw, outer):
        try:
            schema = from_crd(candidate)
        except SchemaError as refused:
            assert refused.problems
            continue
        normalize({"a": value, "metadata": {"name": "x"}}, schema)
