"""Any object of any built-in kind: it is shaped, judged, applied and patched, and nothing falls over."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.patching.managed_fields import FieldManager
from stromboli.embedded.patching.patch_errors import PatchError
from stromboli.embedded.patching.server_side_apply import apply, track_update
from stromboli.embedded.patching.strategic_merge import strategic_merge
from stromboli.embedded.schemas import builtin_schemas
from stromboli.embedded.schemas.kind_semantics import problems, set_defaults, update_problems
from stromboli.embedded.schemas.normalization import normalize
from stromboli.embedded.schemas.schema import Schema

KINDS = sorted(builtin_schemas.notation().kinds)
MAX_DEPTH = 7
_TEXTS = st.sampled_from(["", "a", "b", "1", "500m", "1Gi", "2026-01-01T00:00:00Z", "A_"])
_NUMBERS = st.sampled_from([0, 1, 2, 80, -1, 2**40])


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """A value of about the right type: mostly so, for otherwise there would be nothing to judge."""
    if draw(st.integers(0, 60)) == 0:
        return draw(st.sampled_from([None, 7, "x", [], {}, True]))
    if schema.enum:
        return draw(st.sampled_from(schema.enum))
    if schema.int_or_string:
        return draw(_NUMBERS | _TEXTS)
    match schema.type:
        case "object" if depth < MAX_DEPTH:
            optional = [key for key in schema.properties if key not in schema.required]
            chosen = draw(st.lists(st.sampled_from(optional), max_size=3, unique=True)) if optional else []
            thing = {
                key: draw(values(schema.properties[key], depth + 1)) for key in (*schema.required, *chosen)
            }
            if schema.additional_properties is not None:
                thing |= {
                    key: draw(values(schema.additional_properties, depth + 1))
                    for key in draw(st.sampled_from(["", "a", "ab"]))
                }
            return thing
        case "array" if depth < MAX_DEPTH:
            return [draw(values(schema.element, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
        case "object":
            return {}
        case "array":
            return []
        case "integer" | "number":
            return draw(_NUMBERS)
        case "boolean":
            return draw(st.booleans())
    return "MQ==" if schema.format == "byte" else draw(_TEXTS)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    version, kind = draw(st.sampled_from(KINDS))
    fields = draw(values(schema_of(version, kind)))
    thing = fields if isinstance(fields, dict) else {}
    if not isinstance(thing.get("metadata"), dict):
        thing["metadata"] = {}
    thing |= {"apiVersion": version, "kind": kind}
    thing["metadata"] |= {"name": "a"}
    return thing


def schema_of(api_version: str, kind: str) -> Schema:
    schema = builtin_schemas.schema(api_version, kind)
    assert schema is not None
    return schema


@given(objects())
def test_any_object_is_shaped_and_judged(thing: dict[str, Any]) -> None:
    kind, schema = thing["kind"], schema_of(thing["apiVersion"], thing["kind"])
    if normalize(thing, schema).problems:
        return
    set_defaults(thing, kind)
    problems(thing, kind)
    update_problems(thing, {**thing, "spec": {}}, kind)
    text = msgspec.json.encode(thing)
    assert normalize(thing, schema) == ([], [])
    set_defaults(thing, kind)
    assert msgspec.json.encode(thing) == text, "what has its defaults gets no more"


@given(objects())
def test_any_object_is_patched_and_applied(thing: dict[str, Any]) -> None:
    schema = schema_of(thing["apiVersion"], thing["kind"])
    thing["metadata"].pop("managedFields", None)
    manager = FieldManager(name="a", api_version=thing["apiVersion"], time="2026-01-01T00:00:00Z")
    if normalize(thing, schema).problems:
        return
    try:
        applied = apply(None, thing, schema, manager)
        again = apply(applied, thing, schema, manager)
        if "managedFields" in applied["metadata"]:
            assert again == applied
        strategic_merge(applied, thing, schema)
    except PatchError as refused:
        assert refused.code in (400, 422)
    made = track_update(None, thing, schema, manager)
    assert track_update(made, made, schema, manager) == made
