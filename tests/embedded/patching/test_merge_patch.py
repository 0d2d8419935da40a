"""Merge patches: the examples of RFC 7386, and the laws behind them."""

from typing import Any

import pytest
from hypothesis import given

from stromboli.api.patches import merge_patch_between
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.patching.document_bounds import MAX_DEPTH
from stromboli.embedded.patching.patch_request import merge_patch
from tests.embedded.patching.workload import documents


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_standard(document: Any, patch: Any, result: Any) -> None:
    assert merge_patch(document, patch) == result


@given(documents, documents)
def test_merging_again_changes_nothing_and_the_document_stays_as_it_was(document: Any, patch: Any) -> None:
    document, patch = {"it": document}, {"it": patch}
    before = repr(document)
    once = merge_patch(document, patch)
    twice = merge_patch(once, patch)
    assert merge_patch(twice, patch) == twice
    if not isinstance(document["it"], dict):  # a list that replaces a map keeps its nulls the first time
        assert twice == once
    assert repr(document) == before


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null(child) for key, child in value.items() if child is not None}
    return [without_null(child) for child in value if child is not None] if isinstance(value, list) else value


@given(documents, documents)
def test_the_difference_leads_to_the_target(old: Any, new: Any) -> None:
    old, new = without_null({"it": old}), without_null({"it": new})
    assert merge_patch(old, merge_patch_between(old, new)) == new


def test_a_patch_that_is_no_object_or_too_deep_is_refused() -> None:
    with pytest.raises(StatusError, match="is an object") as refused:
        merge_patch({}, [1])
    assert refused.value.code == 400
    deep: Any = {}
    for _ in range(MAX_DEPTH + 1):
        deep = {"a": deep}
    with pytest.raises(StatusError, match="deeper than"):
        merge_patch({}, deep)
