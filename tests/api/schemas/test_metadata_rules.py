"""Names, labels, annotations, owners and finalizers, in the words of a real API server (release 1.36)."""

from typing import Any

import pytest

from stromboli.api.schemas.metadata_rules import metadata_problems

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "A_b"}, f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}'),
        ({"name": "."}, f'metadata.name: Invalid value: ".": {SUBDOMAIN}'),
        ({"name": "a" * 254}, "must be no more than 253 bytes"),
        ({"name": "a", "generateName": "X"}, f'metadata.generateName: Invalid value: "X": {SUBDOMAIN}'),
        (
            {"name": "a", "labels": {"a b": "x"}},
            "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            {"name": "a", "labels": {"a": "x y"}},
            'metadata.labels: Invalid value: "x y": a valid label must be an empty string or consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            {"name": "a", "labels": {"a/b/c": "x"}},
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/My",
        ),
        ({"name": "a", "labels": {"A_.com/x": "v"}}, f"prefix part {SUBDOMAIN}"),
        ({"name": "a", "labels": {"k" * 64: "v"}}, "name part must be no more than 63 bytes"),
        ({"name": "a", "labels": {"a": "x" * 64}}, "must be no more than 63 bytes"),
        (
            {"name": "a", "annotations": {"a b": "x"}},
            'metadata.annotations: Invalid value: "a b": name part must',
        ),
        (
            {"name": "a", "annotations": {"a": "x" * 300_000}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"name": "a", "annotations": {"a": "ü" * 150_000}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"name": "a", "finalizers": ["x"]},
            'metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully '
            "qualified",
        ),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ),
    ],
)
def test_what_is_wrong_with_metadata(metadata: Any, problem: str) -> None:
    (actual,) = metadata_problems(metadata, "ConfigMap")
    assert problem in str(actual)


def test_two_owners_cannot_both_be_in_charge() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "1", "controller": True}
    (problems,) = metadata_problems({"name": "a", "ownerReferences": [owner, {**owner, "name": "y"}]}, "Pod")
    assert "Only one reference can have Controller set to true" in str(problems)


@pytest.mark.parametrize(
    ("kind", "name", "fits"),
    [
        ("ConfigMap", "a.b", True),
        ("Namespace", "a.b", False),
        ("ClusterRole", "system:node", True),
        ("ClusterRole", "a/b", False),
        ("Role", "..", False),
        ("Pod", "system:node", False),
    ],
)
def test_kinds_have_rules_for_their_names(kind: str, name: str, fits: bool) -> None:
    assert (list(metadata_problems({"name": name}, kind)) == []) is fits
