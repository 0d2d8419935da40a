"""Built-in kinds beyond their schemas."""

import copy
from typing import Any

import pytest

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.normalization import normalize
from tests.built_in_kinds import problems, set_defaults, update_problems


def made(kind: str, api_version: str, **rest: Any) -> dict[str, Any]:
    """An object as the server would store it, and it must be right by its schema."""
    content = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **rest}
    schema = builtin_schemas.schema(api_version, kind)
    assert schema is not None
    assert normalize(content, schema) == ([], [])
    set_defaults(content, kind)
    return content


def container(**more: Any) -> dict[str, Any]:
    return {"name": "a", "image": "busybox", **more}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return made("Pod", "v1", spec={"containers": list(containers) or [container()], **spec})


TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}


# -- defaults


def workload(**spec: Any) -> Any:
    base = {"selector": {"matchLabels": TEMPLATE["metadata"]["labels"]}, "template": copy.deepcopy(TEMPLATE)}
    return made("Deployment", "apps/v1", spec={**base, **spec})


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/busybox", "Always"),
        ("busybox@sha256:0", "IfNotPresent"),
    ],
)
def test_an_image_is_pulled_again_unless_it_has_a_tag(image: str, policy: str) -> None:
    assert pod(container(image=image))["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_what_is_limited_and_not_requested_is_requested() -> None:
    resources = pod(
        container(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})
    )
    assert resources["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_a_job_runs_one_pod_by_default_and_a_port_targets_itself() -> None:
    template = {"spec": {"containers": [container()], "restartPolicy": "Never"}}
    job = made("Job", "batch/v1", spec={"template": template})
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)
    service = made("Service", "v1", spec={"ports": [{"port": 80}]})
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


def test_a_deployment_rolls_a_quarter_at_a_time() -> None:
    made_up = made(
        "Deployment", "apps/v1", spec={"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    )
    assert made_up["spec"]["replicas"] == 1
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert made_up["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert made_up["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert problems(made_up, "Deployment") == []


# -- problems


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            lambda: pod(container(name="A_")),
            'spec.containers[0].name: Invalid value: "A_": a lowercase RFC 1123 label',
        ),
        (lambda: pod(container(), container()), 'spec.containers[1].name: Duplicate value: "a"'),
        (lambda: pod({"name": "a"}), "spec.containers[0].image: Required value"),
        (
            lambda: pod(container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            lambda: pod(container(resources={"requests": {"nvidia.com/gpu": "1"}})),
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable",
        ),
        (
            lambda: pod(
                container(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}})
            ),
            'spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
        ),
        (
            lambda: pod(container(resources={"requests": {"cpu": "-2"}})),
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-2": must be greater than or equal to 0',
        ),
        (
            lambda: pod(container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (lambda: pod(volumes=[{"name": "v"}, {"name": "v"}]), 'spec.volumes[1].name: Duplicate value: "v"'),
        (lambda: pod(nodeName="X_"), 'spec.nodeName: Invalid value: "X_"'),
        (lambda: pod(nodeSelector={"a b": "c"}), 'spec.nodeSelector: Invalid value: "a b"'),
        (
            lambda: made("Job", "batch/v1", spec={"template": {"spec": {"containers": [container()]}}}),
            "spec.template.spec.restartPolicy: Required value: valid values",
        ),
        (
            lambda: made(
                "Deployment",
                "apps/v1",
                spec={"selector": {"matchLabels": {"a": "c"}}, "template": copy.deepcopy(TEMPLATE)},
            ),
            "`selector` does not match template `labels`",
        ),
        (
            lambda: workload(replicas=100_001),
            "spec.replicas: Invalid value: 100001: must be no more than 100000",
        ),
        (
            lambda: workload(selector={}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
    ],
)
def test_what_is_wrong_beyond_the_schema(content: Any, problem: str) -> None:
    it = content()
    (actual,) = problems(it, it["kind"])
    assert problem in str(actual)


@pytest.mark.parametrize(
    ("claims", "mounted", "expected"),
    [
        (["data"], "data", []),
        (["data", "data"], "shared", []),
        (["data", "shared"], "shared", []),
        (["data"], "other", ['containers[0].volumeMounts[0].name: Not found: "other"']),
        ([""], "shared", ["volumes[0].name: Required value"]),
    ],
)
def test_pods_of_a_stateful_set_may_mount_its_claims(
    claims: list[str], mounted: str, expected: list[str]
) -> None:
    """`expected` is what the real API server says of it."""
    template = copy.deepcopy(TEMPLATE)
    template["spec"] = {
        "containers": [container(volumeMounts=[{"name": mounted, "mountPath": "/d"}])],
        "volumes": [{"name": "shared", "emptyDir": {}}],
    }
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "serviceName": "s",
        "selector": {"matchLabels": {"a": "b"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": name}, "spec": storage} for name in claims],
    }
    found = problems(made("StatefulSet", "apps/v1", spec=spec), "StatefulSet")
    assert [str(problem) for problem in found] == [f"spec.template.spec.{text}" for text in expected]


# -- updates


def test_a_pod_may_change_its_image_but_not_its_command() -> None:
    old = pod()
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["image"] = "other"
    new["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert update_problems(old, new, "Pod") == []
    new["spec"]["containers"][0]["command"] = ["x"]
    (problems,) = update_problems(old, new, "Pod")
    assert str(problems).startswith("spec: Forbidden: pod updates may not change fields other than")
    assert str(problems).endswith("this one changes spec.containers")


def test_a_gated_pod_may_be_let_go_and_steered() -> None:
    old = pod(schedulingGates=[{"name": "wait"}])
    new = pod(nodeSelector={"a": "b"})
    assert update_problems(old, new, "Pod") == []
    (problems,) = update_problems(
        new, pod(schedulingGates=[{"name": "wait"}], nodeSelector={"a": "b"}), "Pod"
    )[:1]
    assert "only deletion is allowed" in str(problems)


@pytest.mark.parametrize(
    ("kind", "field"), [("Deployment", "selector"), ("ReplicaSet", "selector"), ("DaemonSet", "selector")]
)
def test_selectors_stay(kind: str, field: str) -> None:
    old, new = {"spec": {field: {"a": 1}}}, {"spec": {field: {"a": 2}}}
    (problems,) = update_problems(old, new, kind)
    assert str(problems) == f'spec.{field}: Invalid value: {{"a":2}}: field is immutable'
    assert update_problems(old, old, kind) == []
