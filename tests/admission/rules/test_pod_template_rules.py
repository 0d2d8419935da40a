"""Pod templates: what Kubernetes would refuse, said when the job is submitted."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.admission.reviewing import fields, job, task, texts

AT = "spec.task[0].template.spec"


def pod(**spec: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "busybox"}], **spec}


def container(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "busybox", **more}]}


def expressions(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", **requirement}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod(affinity={"nodeAffinity": required})


TERM = f"{AT}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
ROWS: list[tuple[dict[str, Any], list[str]]] = [
    (pod(), []),
    ({"containers": []}, [f"{AT}.containers: Required value"]),
    (
        {"containers": [{}]},
        [f"{AT}.containers[0].name: Required value", f"{AT}.containers[0].image: Required value"],
    ),
    (
        {"containers": [{"name": "a", "image": "i"}], "initContainers": [{"name": "a", "image": "i"}]},
        [f'{AT}.initContainers[0].name: Duplicate value: "a"'],
    ),
    (
        pod(restartPolicy="Sometimes"),
        [
            f'{AT}.restartPolicy: Unsupported value: "Sometimes":'
            ' supported values: "Always", "OnFailure", "Never"'
        ],
    ),
    (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        [
            f'{AT}.containers[0].resources.requests: Invalid value: "2":'
            " must be less than or equal to cpu limit of 1"
        ],
    ),
    (
        container(resources={"requests": {"memory": "-1"}}),
        [
            f'{AT}.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0'
        ],
    ),
    (
        container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        [
            f'{AT}.containers[0].resources.{part}[nvidia.com/gpu]: Invalid value: "500m": must be an integer'
            for part in ("limits", "requests")
        ],
    ),
    (
        container(resources={"requests": {"nvidia.com/gpu": 1}}),
        [
            f"{AT}.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"
        ],
    ),
    (
        container(resources={"requests": {"gpu": 1}}),
        [
            f'{AT}.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource {detail}'
            for detail in ("type or fully qualified", "for containers")
        ],
    ),
    (
        container(volumeMounts=[{"name": "data", "mountPath": "/d"}]),
        [f'{AT}.containers[0].volumeMounts[0].name: Not found: "data"'],
    ),
    (
        pod(volumes=[{"name": "d"}, {"name": "d", "emptyDir": {}, "configMap": {}}]),
        [
            f'{AT}.volumes[1].name: Duplicate value: "d"',
            f"{AT}.volumes[1].configMap: Forbidden: may not specify more than 1 volume type",
        ],
    ),
    (
        container(ports=[{"containerPort": 70000}]),
        [
            f"{AT}.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
        ],
    ),
    (
        container(env=[{"name": "A=B"}]),
        [
            f'{AT}.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name must consist'
            " only of printable ASCII characters other than '='"
        ],
    ),
    (
        pod(tolerations=[{"key": "k", "operator": "Maybe"}]),
        [
            f'{AT}.tolerations[0].operator: Unsupported value: "Maybe": supported values: "Equal", "Exists", "Gt", "Lt"'
        ],
    ),
    (
        expressions(operator="In"),
        [
            f"{TERM}.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        ],
    ),
    (
        expressions(operator="Near"),
        [
            f'{TERM}.matchExpressions[0].operator: Unsupported value: "Near": supported values:'
            ' "DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"'
        ],
    ),
    (
        pod(
            topologySpreadConstraints=[
                {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
            ]
        ),
        [f"{AT}.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
    ),
    (
        {"containers": "many"},
        [
            f'{AT}.containers: Invalid value: "string": {AT}.containers in body must be of type array: "string"'
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), ROWS)
def test_what_kubernetes_would_refuse_is_said_when_the_job_is_submitted(
    spec: dict[str, Any], expected: list[str]
) -> None:
    bad = job({"name": "worker", "replicas": 1, "template": {"spec": spec}})
    assert texts("/jobs/validate", bad) == expected


@pytest.mark.parametrize("template", [None, {}, {"spec": None}, {"metadata": {"labels": {"a": "b"}}}])
def test_a_template_without_a_pod_is_refused(template: Any) -> None:
    bad = job({"name": "worker", "replicas": 1, "template": template})
    assert texts("/jobs/validate", bad) == [f"{AT}.containers: Required value"]


def test_labels_of_a_template_are_checked() -> None:
    bad = task()
    bad["template"]["metadata"] = {"labels": {"a/b/c": "x", "good": "bad value"}}
    messages = texts("/jobs/validate", job(bad))
    assert len(messages) == 2
    assert all(text.startswith("spec.task[0].template.metadata.labels: Invalid value:") for text in messages)


def test_a_problem_is_known_by_the_field_that_has_it() -> None:
    """The text shows the path of Volcano's messages."""
    assert fields("/jobs/validate", job(task(), task("b", containers=[{"name": "a"}]))) == [
        "spec.tasks[1].template.spec.containers[0].image"
    ]


def test_a_template_is_not_changed_by_being_judged() -> None:
    good = job(task())
    before = copy.deepcopy(good)
    assert texts("/jobs/validate", good) == []
    assert good == before
