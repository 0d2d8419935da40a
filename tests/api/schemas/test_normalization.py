"""Pruning, defaults and checks; and the quick way does what the slow one does."""

import copy
from typing import Any

import pytest
from hypothesis import given

from stromboli.api.schemas import builtin_schemas, normalization
from stromboli.api.schemas.compiled_schema import compiled
from stromboli.api.schemas.normalization import default, normalize, prune
from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.schema_problems import problems
from tests.api.schemas.manifests import FIELDS, SCALARS, SCHEMA, custom_object, specs


def pod(**spec: Any) -> dict[str, Any]:
    spec.setdefault("containers", [{"name": "a", "image": "x"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def pod_schema() -> Schema:
    schema = builtin_schemas.schema("v1", "Pod")
    assert schema is not None
    return schema


def test_unknown_fields_go_and_are_named() -> None:
    it = pod(containers=[{"name": "a", "image": "x", "foo": 1}], bar={"x": 1})
    it["metadata"]["labels"] = {"any": "key"}
    assert normalize(it, pod_schema()).unknown == ["spec.containers[0].foo", "spec.bar"]
    assert "foo" not in it["spec"]["containers"][0]
    assert "bar" not in it["spec"]


def test_an_object_with_nulls_is_checked_the_quick_way_once_they_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(normalization, "problems", None)
    it = pod()
    it["status"] = {"conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]}
    assert normalize(it, pod_schema()) == ([], [])
    assert it["status"]["conditions"] == [{"type": "Ready", "status": "True"}]


def test_what_is_open_keeps_everything_but_only_there() -> None:
    it = custom_object({"open": {"x": [{"y": None}]}, "o": {"r": "a", "zz": 1}})
    assert prune(it, SCHEMA) == ["spec.o.zz"]
    assert it["spec"]["open"] == {"x": [{"y": None}]}


def test_a_null_is_as_good_as_nothing_where_there_can_be_none() -> None:
    it = pod(nodeSelector=None, restartPolicy=None)
    assert normalize(it, pod_schema()).problems == []
    assert "nodeSelector" not in it["spec"]
    assert it["spec"]["restartPolicy"] == "Always"
    kept = custom_object({"nu": None})
    normalize(kept, SCHEMA)
    assert kept["spec"]["nu"] is None


def test_an_empty_word_is_as_good_as_nothing_in_a_built_in_kind() -> None:
    it = pod(restartPolicy="", tolerations=[{"operator": "Exists", "effect": ""}])
    assert normalize(it, pod_schema()).problems == []
    assert it["spec"]["restartPolicy"] == "Always"
    assert it["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert normalize(custom_object({"e": ""}), SCHEMA).problems != []


def test_defaults_reach_into_lists_and_into_other_defaults() -> None:
    it = custom_object({"m": [{"k": "a"}]})
    normalize(it, SCHEMA)
    assert it["spec"]["m"] == [{"k": "a", "d": 7}]
    assert it["spec"]["deep"] == {"a": {"b": "c"}}
    other = custom_object({})
    normalize(other, SCHEMA)
    assert other["spec"]["deep"] is not it["spec"]["deep"]


def test_a_pod_gets_what_kubernetes_would_give_it() -> None:
    it = pod(containers=[{"name": "a", "image": "x", "ports": [{"containerPort": 80}], "livenessProbe": {}}])
    normalize(it, pod_schema())
    spec = it["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["securityContext"] == {}
    assert spec["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert spec["containers"][0]["livenessProbe"]["failureThreshold"] == 3


def test_numbers_that_are_quantities_become_texts() -> None:
    it = pod(containers=[{"name": "a", "image": "x", "resources": {"limits": {"cpu": 2, "memory": 0.5}}}])
    assert normalize(it, pod_schema()).problems == []
    assert it["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "0.5"}


def slowly(it: Any) -> tuple[list[str], list[Any]]:
    unknown = prune(it, SCHEMA)
    default(it, SCHEMA)
    return unknown, problems(it, SCHEMA)


@pytest.mark.parametrize("field", FIELDS)
def test_both_ways_agree_about_every_field_by_itself(field: str) -> None:
    for value in SCALARS:
        quick, slow = custom_object({field: value}), custom_object({field: value})
        assert normalize(quick, SCHEMA) == slowly(slow), value
        assert quick == slow


@given(specs)
def test_the_quick_way_and_the_slow_one_agree(spec: Any) -> None:
    quick, slow = custom_object(spec), custom_object(copy.deepcopy(spec))
    findings = normalize(quick, SCHEMA)
    assert (findings.unknown, findings.problems) == slowly(slow)
    assert quick == slow


@given(specs)
def test_shaping_twice_is_shaping_once(spec: Any) -> None:
    it = custom_object(spec)
    first = normalize(it, SCHEMA)
    once = copy.deepcopy(it)
    again = normalize(it, SCHEMA)
    assert it == once
    assert again.unknown == []
    assert again.problems == first.problems


@given(specs)
def test_what_the_quick_way_lets_through_has_no_problems(spec: Any) -> None:
    it = custom_object(spec)
    if compiled(SCHEMA)(it):
        assert slowly(it) == ([], [])
