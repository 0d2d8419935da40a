"""Strategic merge patches: directives, merge keys, order; the difference of two objects leads to the second."""

import copy
from typing import Any

import pytest
from hypothesis import given

from stromboli.api.schemas.schema import Schema
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.strategic_merge import strategic_merge
from tests.embedded.patching.workload import WORKLOAD, container, documents, workload, workloads

A, B, C = container("a", image="1"), container("b", image="2"), container("c", image="3")


def merged(spec: dict[str, Any], patch: dict[str, Any]) -> Any:
    return strategic_merge(workload(spec), {"spec": patch}, WORKLOAD)["spec"]


@pytest.mark.parametrize(
    ("spec", "patch", "result"),
    [
        ({"replicas": 1}, {"replicas": 2}, {"replicas": 2}),
        ({"replicas": 1, "command": ["x"]}, {"command": None}, {"replicas": 1}),
        ({"command": ["x", "y"]}, {"command": ["z"]}, {"command": ["z"]}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"a": "1", "b": "2"}}),
        ({"selector": {"a": "1"}}, {"selector": {"$patch": "replace", "b": "2"}}, {"selector": {"b": "2"}}),
        ({"selector": {"a": "1"}}, {"selector": {"$patch": "delete"}}, {}),
        ({}, {"selector": {"$patch": "replace", "b": "2"}}, {}),
        ({"command": ["x"]}, {"command": []}, {}),
        (
            {"strategy": {"type": "Rolling", "rolling": {"a": "1"}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
        ),
        (
            {"containers": [A, B]},
            {"containers": [{"name": "b", "image": "9"}]},
            {"containers": [A, container("b", image="9")]},
        ),
        ({"containers": [A, B]}, {"containers": [{"$patch": "delete", "name": "a"}]}, {"containers": [B]}),
        ({"containers": [A, B]}, {"containers": [C, {"$patch": "replace"}]}, {"containers": [C]}),
        (
            {"containers": [A, B]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [B, A]},
        ),
        (
            {"containers": [A, B]},
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}], "containers": [C]},
            {"containers": [C, A, B]},
        ),
        (
            {},
            {"containers": [{**A, "env": {"x": None, "y": "1"}}]},
            {"containers": [{**A, "env": {"y": "1"}}]},
        ),
        ({}, {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}, {"strategy": {"type": "Recreate"}}),
    ],
)
def test_directives_and_merge_keys(spec: Any, patch: Any, result: Any) -> None:
    assert merged(spec, patch) == result


def test_lists_of_plain_values_merge_as_sets() -> None:
    content = workload(finalizers=["a", "b"])
    patch = {"metadata": {"finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]}}
    assert set(strategic_merge(content, patch, WORKLOAD)["metadata"]["finalizers"]) == {"a", "c"}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"containers": [{"image": "1"}]}, 422, "does not contain the declared merge key: name"),
        ({"containers": [{"name": ["a"]}]}, 422, "no plain value as its merge key"),
        ({"selector": {"$patch": "frobnicate"}}, 400, "unknown patch type 'frobnicate'"),
        ({"containers": [{"$patch": "merge", "name": "a"}]}, 400, "unknown patch type 'merge' of an entry"),
        ({"strategy": {"$retainKeys": ["rolling"], "type": "x"}}, 400, "'type' is missing"),
        ({"$setElementOrder/containers": "a"}, 400, "is followed by a list"),
        ({"selector": {"$patch": "merge"}}, 400, "unknown patch type 'merge' of a map"),
        (
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [A, B]},
            400,
            "does not match",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused(patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError, match=message) as refused:
        merged({"containers": [A, B], "selector": {"a": "1"}, "strategy": {"type": "y"}}, patch)
    assert refused.value.code == code


def diff(old: dict[str, Any], new: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """What `kubectl apply` would send to get from one to the other."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key in old and old[key] != value:
            _diff_field(patch, key, old[key], value, schema.child(key))
        elif key not in old:
            patch[key] = value
    return patch


def _diff_field(patch: dict[str, Any], key: str, old: Any, new: Any, schema: Schema) -> None:
    if isinstance(old, dict):
        patch[key] = diff(old, new, schema)
    elif "merge" not in schema.patch_strategies:
        patch[key] = new
    elif not schema.merge_key:
        patch[key] = [entry for entry in new if entry not in old]
        patch[f"$deleteFromPrimitiveList/{key}"] = [entry for entry in old if entry not in new]
        patch[f"$setElementOrder/{key}"] = new
    else:
        name = schema.merge_key
        old_entries, new_entries = ({entry[name]: entry for entry in some} for some in (old, new))
        patch[key] = [{"$patch": "delete", name: id} for id in old_entries if id not in new_entries] + [
            {name: id, **diff(old_entries.get(id, {name: id}), entry, schema.element)}
            for id, entry in new_entries.items()
        ]
        patch[f"$setElementOrder/{key}"] = [{name: id} for id in new_entries]


def without_empty(node: Any) -> Any:
    """As objects are stored: an empty map or list is none."""
    if isinstance(node, list):
        return [without_empty(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: without_empty(value) for key, value in node.items()}
    return {key: value for key, value in kept.items() if value not in ({}, [])}


@given(workloads, workloads)
def test_the_difference_leads_to_the_target(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    merged = strategic_merge(old, diff(old, new, WORKLOAD), WORKLOAD)
    assert without_empty(merged) == without_empty(new)
    assert old == before


@given(workloads, documents, documents)
def test_any_patch_is_merged_or_refused(content: Any, inside: Any, around: Any) -> None:
    for patch in (
        inside,
        {"spec": inside, "$retainKeys": around},
        {"spec": {"containers": [inside, around]}},
    ):
        try:
            strategic_merge(content, patch, WORKLOAD)
        except StatusError as refused:
            assert refused.code in (400, 422)
