"""What is wrong is told in the words of the API server (taken from a real one, release 1.36)."""

from typing import Any

import pytest

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.schema_problems import MAX_PROBLEMS
from tests.api.schemas.manifests import SCHEMA, custom_object


def problems(spec: Any) -> list[str]:
    return [str(problem) for problem in normalize(custom_object(spec), SCHEMA).problems]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"i": -1}, "spec.i: Invalid value: -1: spec.i in body should be greater than or equal to 0"),
        ({"i": 11}, "spec.i: Invalid value: 11: spec.i in body should be less than or equal to 10"),
        ({"ie": 0}, "spec.ie: Invalid value: 0: spec.ie in body should be greater than 0"),
        ({"i": "x"}, 'spec.i: Invalid value: "string": spec.i in body must be of type integer: "string"'),
        ({"i": 1.5}, 'spec.i: Invalid value: "number": spec.i in body must be of type integer: "number"'),
        ({"s": "a"}, 'spec.s: Invalid value: "a": spec.s in body should be at least 2 chars long'),
        ({"s": "aaaaaa"}, "spec.s: Too long: may not be more than 4 bytes"),
        ({"s": "bb"}, "spec.s: Invalid value: \"bb\": spec.s in body should match '^a+$'"),
        ({"e": "C"}, 'spec.e: Unsupported value: "C": supported values: "A", "B"'),
        ({"n": 3}, "spec.n: Invalid value: 3: spec.n in body should be a multiple of 2"),
        ({"n": "x"}, 'spec.n: Invalid value: "string": spec.n in body must be of type number: "string"'),
        ({"b": "x"}, 'spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string"'),
        ({"l": []}, "spec.l: Invalid value: 0: spec.l in body should have at least 1 items"),
        ({"l": ["a", "b", "c"]}, "spec.l: Too many: 3: must have at most 2 items"),
        ({"l": "x"}, 'spec.l: Invalid value: "string": spec.l in body must be of type array: "string"'),
        (
            {"l": [1]},
            'spec.l[0]: Invalid value: "integer": spec.l[0] in body must be of type string: "integer"',
        ),
        ({"set": ["a", "a"]}, 'spec.set[1]: Duplicate value: "a"'),
        ({"m": [{"k": "a"}, {"k": "a"}]}, 'spec.m[1]: Duplicate value: {"k":"a"}'),
        ({"m": [{}]}, "spec.m[0].k: Required value"),
        ({"o": {}}, "spec.o.r: Required value"),
        ({"o": 7}, 'spec.o: Invalid value: "integer": spec.o in body must be of type object: "integer"'),
        (
            {"mp": {"a": "x"}},
            'spec.mp.a: Invalid value: "string": spec.mp.a in body must be of type integer: "string"',
        ),
        ({"mp": {"a": 1, "b": 2}}, "spec.mp: Too many: 2: must have at most 1 item"),
        ({"mp": {}}, "spec.mp: Invalid value: 0: spec.mp in body should have at least 1 properties"),
        ({"ios": "x"}, "spec.ios: Invalid value: \"x\": spec.ios in body should match '^[0-9]+$'"),
        (
            {"ios": True},
            'spec.ios: Invalid value: "boolean": spec.ios in body must be of type integer,string: "boolean"',
        ),
        (
            {"dt": "yesterday"},
            'spec.dt: Invalid value: "yesterday": spec.dt in body must be of type date-time: "yesterday"',
        ),
        ({"dt": "2026-02-30T00:00:00Z"}, "must be of type date-time"),
        ({"i32": 2**31}, "must be of type integer with format int32"),
        ({"any": "a"}, '"spec.any" must validate at least one schema (anyOf)'),
        ({"not": "bad"}, '"spec.not" must not validate the schema (not)'),
        ({"one": 5}, "must validate one and only one schema (oneOf). Found 2 valid alternatives"),
        ({"all": 1}, "spec.all in body should be greater than or equal to 5"),
    ],
)
def test_fields_of_a_crd(spec: Any, problem: str) -> None:
    (actual,) = problems(spec)
    assert problem in actual


@pytest.mark.parametrize(
    "spec",
    [
        {"i": 2.0},
        {"nn": None},
        {"nu": None},
        {"any": "zz"},
        {"one": 7},
        {"n": 4.0},
        {"ios": 7},
        {"ios": "7"},
        {"open": {"x": {"y": None}}},
        {"dt": "2026-01-01T00:00:00.123456+02:00"},
        {},
    ],
)
def test_what_is_right_is_let_through(spec: Any) -> None:
    assert problems(spec) == []


def test_a_problem_is_a_cause_of_a_status() -> None:
    (problem,) = normalize(
        {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}, SCHEMA
    ).problems
    assert problem.cause() == {"field": "spec", "reason": "FieldValueRequired", "message": "Required value"}


def test_a_thousand_problems_are_not_all_reported() -> None:
    assert len(problems({"set": list(range(1000))})) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({}, "spec.containers: Required value"),
        ({"containers": [{"image": "a"}]}, "spec.containers[0].name: Required value"),
        ({"containers": [{"name": "a"}], "restartPolicy": "x"}, 'spec.restartPolicy: Unsupported value: "x"'),
        (
            {"containers": [{"name": "a"}], "activeDeadlineSeconds": 0},
            "must be between 1 and 2147483647, inclusive",
        ),
        (
            {"containers": [{"name": "a", "ports": [{"containerPort": 70000}]}]},
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            {"containers": [{"name": "a", "resources": {"limits": {"cpu": "2x"}}}]},
            'spec.containers[0].resources.limits.cpu: Invalid value: "2x": ',
        ),
    ],
)
def test_fields_of_a_pod(spec: Any, problem: str) -> None:
    schema = builtin_schemas.schema("v1", "Pod")
    assert schema is not None
    (actual,) = normalize(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}, schema
    ).problems
    assert problem in str(actual)
