"""JSON patches: each operation, paths with odd names, all or nothing, and patches made to hurt."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.json_patch import MAX_OPERATIONS, json_patch
from tests.embedded.patching.workload import documents


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("document", "operation", "result"),
    [
        ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
        ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
        ({"a": [1]}, op("add", "/a/-", value=2), {"a": [1, 2]}),
        ({"a": 1}, op("replace", "", value={"b": 2}), {"b": 2}),
        ({"a": 1}, op("add", "/b"), {"a": 1, "b": None}),
        ({"a": 1}, op("add", "x/b", value=2), {"a": 1, "b": 2}),
        ({"a": [1, 2]}, op("add", "/a/-1", value=3), {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, op("add", "/a/+1", value=3), {"a": [1, 3, 2]}),
        ({"a": [1, 2]}, op("remove", "/a/-2"), {"a": [2]}),
        ({"a": [1, 2]}, op("replace", "/a/01", value=3), {"a": [1, 3]}),
        ({"a": 1}, op("replace", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": 1}, {"op": "copy", "from": "/b", "path": "/c"}, {"a": 1, "c": None}),
        ({"a": 1, "b": 2}, op("remove", "/a"), {"b": 2}),
        ({"a": [1, 2, 3]}, op("remove", "/a/1"), {"a": [1, 3]}),
        ({"a": {"b": 1}}, op("replace", "/a/b", value=None), {"a": {"b": None}}),
        ({"a": {"b": 1}, "c": {}}, {"op": "move", "from": "/a/b", "path": "/c/d"}, {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}),
        ({"a": 1}, op("test", "/a", value=1), {"a": 1}),
        ({"a": 1}, op("test", "/b", value=None), {"a": 1}),
        ({"a/b": 1, "c~d": 2}, op("remove", "/a~1b"), {"c~d": 2}),
        ({"~1": 1}, op("remove", "/~01"), {}),
    ],
)
def test_operations(document: Any, operation: Any, result: Any) -> None:
    assert json_patch(document, [operation]) == result


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        (op("test", "/a", value=2), 422, "testing value /a failed"),
        (op("test", "/a", value=True), 422, "testing value /a failed"),
        (op("test", "/a", value=1.0), 422, "testing value /a failed"),
        (op("test", "/l/7"), 422, "nothing at /l/7"),
        (op("test", "/b/c"), 422, "nothing at /b/c"),
        (op("remove", "/b"), 422, "nothing at /b"),
        (op("replace", "/a/b", value=1), 422, "nothing at /a/b"),
        (op("add", "/b/c", value=1), 422, "nothing at /b/c"),
        (op("add", "/a/c", value=1), 422, "nothing at /a/c"),
        (op("add", "/l/3", value=1), 422, "no place /l/3 in a list of 2"),
        (op("add", "/l/x", value=1), 422, "no place"),
        (op("add", "/l/-4", value=1), 422, "no place"),
        (op("remove", "/l/-"), 422, "nothing at"),
        (op("remove", ""), 422, "must begin with a slash"),
        (op("add", "", value={}), 422, "must begin with a slash"),
        ({"op": "move", "from": "/m", "path": "/m/n"}, 422, "nothing at /m/n"),
        ({"op": "copy", "from": "/no/no", "path": "/m"}, 422, "nothing at /no/no"),
        ({"op": "copy", "from": "", "path": "/m"}, 422, "must begin with a slash"),
        (op("add", "a", value=1), 422, "must begin with a slash"),
        ({"op": "add", "value": 1}, 422, "must begin with a slash"),
        (op("frobnicate", "/a"), 422, "unknown operation 'frobnicate'"),
        (None, 422, "unknown operation None"),
        ({"op": "add", "path": 3}, 400, "'path' of a JSON patch is a text"),
        (7, 400, "is an object"),
    ],
)
def test_what_cannot_be_done_is_refused(operation: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError, match=message) as refused:
        json_patch({"a": 1, "l": [1, 2], "m": {"n": 1}}, [operation])
    assert refused.value.code == code


def test_a_failed_operation_leaves_nothing_of_those_before_it() -> None:
    document = {"a": {"b": [1, 2]}}
    with pytest.raises(StatusError):
        json_patch(document, [op("add", "/a/b/-", value=3), op("remove", "/none")])
    assert document == {"a": {"b": [1, 2]}}


def test_patches_made_to_hurt_are_refused() -> None:
    with pytest.raises(StatusError, match="maximum operations") as refused:
        json_patch({}, [op("test", "", value={})] * (MAX_OPERATIONS + 1))
    assert refused.value.code == 413
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    with pytest.raises(StatusError, match="may copy at most"):
        json_patch({"a": [["x" * 100]]}, doubling)
    deepening = [{"op": "copy", "from": "/a", "path": "/a/a"}] * 300
    with pytest.raises(StatusError, match="deeper than"):
        json_patch({"a": {}}, deepening)


def test_many_changes_of_a_long_list_copy_it_once() -> None:
    document = {"a": list(range(20_000))}
    changed = json_patch(document, [op("replace", f"/a/{n}", value=-1) for n in range(MAX_OPERATIONS)])
    assert changed["a"][:MAX_OPERATIONS] == [-1] * MAX_OPERATIONS
    assert document["a"][0] == 0


_paths = st.sampled_from(
    ["", "/a", "/b", "/a/b", "/a/0", "/a/-", "/c~1d", "/~0", "/a/a/a", "/it", "/it/0", "/it/a"]
)
_operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": _paths},
    optional={"from": _paths, "value": documents},
)


@given(documents, st.lists(_operations, max_size=6))
def test_any_patch_is_carried_out_or_refused_and_the_document_stays_as_it_was(
    document: Any, operations: list[Any]
) -> None:
    document = {"it": document}
    before = copy.deepcopy(document), copy.deepcopy(operations)
    try:
        json_patch(document, operations)
    except StatusError as refused:
        assert refused.code in (400, 413, 422)
    assert (document, operations) == before
