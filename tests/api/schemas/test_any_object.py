"""Any object of any built-in kind: it is shaped, judged, applied and patched, and nothing falls over."""

from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.schema import Schema
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.managed_fields import FieldManager
from stromboli.embedded.patching.server_side_apply import apply, track_update
from stromboli.embedded.patching.strategic_merge import strategic_merge
from tests.built_in_kinds import problems, set_defaults, update_problems

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
            value = {
                key: draw(values(schema.properties[key], depth + 1)) for key in (*schema.required, *chosen)
            }
            if schema.additional_properties is not None:
                value |= {
                    key: draw(values(schema.additional_properties, depth + 1))
                    for key in draw(st.sampled_from(["", "a", "ab"]))
                }
            return value
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
    content = fields if isinstance(fields, dict) else {}
    if not isinstance(content.get("metadata"), dict):
        content["metadata"] = {}
    content |= {"apiVersion": version, "kind": kind}
    content["metadata"] |= {"name": "a"}
    return content


def schema_of(api_version: str, kind: str) -> Schema:
    schema = builtin_schemas.schema(api_version, kind)
    assert schema is not None
    return schema


def without_spec(api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}


@given(objects())
@example(without_spec("scheduling.k8s.io/v1alpha2", "Workload"))  # its default lacks required fields
@example(without_spec("resource.k8s.io/v1", "ResourceSlice"))
def test_any_object_is_normalized(content: dict[str, Any]) -> None:
    kind, schema = content["kind"], schema_of(content["apiVersion"], content["kind"])
    if normalize(content, schema).problems:
        return
    set_defaults(content, kind)
    problems(content, kind)
    update_problems(content, {**content, "spec": {}}, kind)
    text = msgspec.json.encode(content)
    assert normalize(content, schema) == ([], [])
    set_defaults(content, kind)
    assert msgspec.json.encode(content) == text, "what has its defaults gets no more"


@given(objects())
def test_any_object_is_patched_and_applied(content: dict[str, Any]) -> None:
    schema = schema_of(content["apiVersion"], content["kind"])
    content["metadata"].pop("managedFields", None)
    manager = FieldManager(name="a", api_version=content["apiVersion"], time="2026-01-01T00:00:00Z")
    if normalize(content, schema).problems:
        return
    try:
        applied = apply(None, content, schema, manager)
        again = apply(applied, content, schema, manager)
        if "managedFields" in applied["metadata"]:
            assert again == applied
        strategic_merge(applied, content, schema)
    except StatusError as refused:
        assert refused.code in (400, 422)
    patched = track_update(None, content, schema, manager)
    assert track_update(patched, patched, schema, manager) == patched
