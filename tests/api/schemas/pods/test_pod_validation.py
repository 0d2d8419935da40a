"""What Kubernetes would refuse in a pod is refused, in a pod and in a template; `tests/kubernetes` has its words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.pods.pod_validation import template_problems
from stromboli.api.schemas.schema_problems import MAX_PROBLEMS
from tests.api.schemas.bad_pods import BAD_PODS, container, pod
from tests.built_in_kinds import problems, set_defaults


def refused(kind: str, api_version: str, spec: dict[str, Any]) -> list[str]:
    """What is wrong with an object of a built-in kind, as the embedded server judges it."""
    schema = builtin_schemas.schema(api_version, kind)
    assert schema is not None
    content = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": copy.deepcopy(spec),
    }
    findings = normalize(content, schema).problems
    if not findings:
        set_defaults(content, kind)
        findings = problems(content, kind)
    return [str(problem) for problem in findings]


@pytest.mark.parametrize("what", BAD_PODS)
def test_a_pod_and_a_template_are_refused_for_the_same_reasons(what: str) -> None:
    spec = BAD_PODS[what]
    in_a_template = [str(problem) for problem in template_problems({"spec": spec}, "t")]
    assert in_a_template
    of_a_pod = refused("Pod", "v1", spec)
    assert of_a_pod
    assert {f"t.{text}" for text in of_a_pod} <= set(in_a_template)


def test_a_good_pod_is_taken_and_stays_as_it_is() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"x/y": "z"}},
        "spec": {
            **container(
                ports=[{"containerPort": 80, "hostPort": 80}],
                env=[{"name": "A"}],
                resources={"claims": [{"name": "g", "request": "a"}, {"name": "g", "request": "b"}]},
            ),
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
            "volumes": [{"name": "v"}],
            "hostNetwork": True,
            "tolerations": [{"operator": "Exists"}],
        },
    }
    before = copy.deepcopy(template)
    assert template_problems(template, "t") == []
    assert template == before


def test_labels_and_annotations_of_a_template_are_checked() -> None:
    template = {"metadata": {"labels": {"a b": "c"}, "annotations": {"a b": "c"}}, "spec": pod()}
    fields = [problem.field for problem in template_problems(template, "t")]
    assert fields == ["t.metadata.labels", "t.metadata.annotations"]


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{}] * 60 + ["main"]},
        {**container(), "nodeSelector": {f"a {index}": "b" for index in range(60)}},
        {**container(), "containers": [{"name": f"A{index}", "image": "i"} for index in range(60)]},
    ],
)
def test_many_problems_are_not_all_told(spec: dict[str, Any]) -> None:
    assert len(template_problems({"spec": spec}, "t")) == MAX_PROBLEMS
    assert len(refused("Pod", "v1", spec)) == MAX_PROBLEMS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("skew", [[], "", {}, None])
def test_a_number_that_is_none_is_a_problem_of_its_own(skew: object) -> None:
    constraint = {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    problems = template_problems({"spec": pod(topologySpreadConstraints=[constraint])}, "t")
    assert problems[0].field == "t.spec.topologySpreadConstraints[0].maxSkew"


def test_a_type_that_is_wrong_among_too_many_problems_stops_no_judgement() -> None:
    constraints: list[Any] = [{"topologyKey": "zone"}] * 40 + [{"maxSkew": "many"}]
    assert len(template_problems({"spec": pod(topologySpreadConstraints=constraints)}, "t")) == 50


@given(what=st.sampled_from(sorted(BAD_PODS)), data=st.data())
def test_no_template_is_too_strange_to_be_judged(what: str, data: st.DataObject) -> None:
    spec = copy.deepcopy(BAD_PODS[what])
    node: Any = spec
    while data.draw(st.booleans()) and isinstance(node, dict | list) and node:
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        if data.draw(st.booleans()):
            node[key] = data.draw(JSON)
            break
        if data.draw(st.booleans()):
            del node[key]
            break
        node = node[key]
    template_problems({"spec": spec}, "")
    template_problems(data.draw(JSON), "")
