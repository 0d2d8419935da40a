"""Pod templates inside Volcano's kinds: a slip of the pen is refused, told or dropped, as in a pod, and never kept."""

from __future__ import annotations

import copy
import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.schemas.builtin_schemas import notation
from stromboli.api.schemas.schema import Schema
from tests.kubernetes.controlplane import ControlPlane

Json = Any
CRDS = Path("deploy/crds")
KUBECTL_ANNOTATION_LIMIT = 262_144

BATCH, FLOW = "batch.volcano.sh/v1alpha1", "flow.volcano.sh/v1alpha1"
KINDS = {
    "Job": (BATCH, "jobs", "spec"),
    "CronJob": (BATCH, "cronjobs", "spec.jobTemplate.spec"),
    "JobTemplate": (FLOW, "jobtemplates", "spec"),
    "JobFlow": (FLOW, "jobflows", "spec.flows[0].patch.jobSpec"),
}
"""Version and plural of each kind with pod templates, and where in it the spec of a job is."""


def made(kind: str, name: str, pod: Json) -> Json:
    """An object of the kind whose pods are these."""
    spec: Json = {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": pod}}]}
    if kind == "CronJob":
        spec = {"schedule": "0 2 * * *", "jobTemplate": {"spec": spec}}
    elif kind == "JobFlow":
        spec = {"flows": [{"name": "a", "patch": {"jobSpec": spec}}]}
    return {"apiVersion": KINDS[kind][0], "kind": kind, "metadata": {"name": name}, "spec": spec}


def pod_of(content: Json, kind: str) -> Json:
    spec = content["spec"]
    if kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    elif kind == "JobFlow":
        spec = spec["flows"][0]["patch"]["jobSpec"]
    return spec["tasks"][0]["template"]["spec"]


def container(**more: Json) -> Json:
    return {"name": "main", "image": "busybox:1", **more}


def misspelt() -> Json:
    return {
        "containers": [container(resource={"limits": {"nvidia.com/gpu": 1}})],
        "nodeSelecter": {"gpu": "yes"},
    }


def url(kind: str, namespace: str, validation: str = "") -> str:
    version, plural, _ = KINDS[kind]
    query = f"?fieldValidation={validation}" if validation else ""
    return f"/apis/{version}/namespaces/{namespace}/{plural}{query}"


def refusal(plane: ControlPlane, path: str, content: Json) -> str:
    """What the server answers to an object that it does not take."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        plane.request("POST", path, content)
    with refused.value as answer:
        message: str = json.loads(answer.read())["message"]
    return message


def test_the_definitions_are_accepted_by_a_plain_apply_and_established(fresh_plane: ControlPlane) -> None:
    fresh_plane.kubectl("apply", "-k", str(CRDS))
    fresh_plane.wait_established()
    listed = json.loads(fresh_plane.kubectl("get", "crd", "-o", "json"))["items"]
    assert len(listed) == len(list(CRDS.glob("*_*.yaml")))
    for definition in listed:
        conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}
        assert conditions.get("NonStructuralSchema", "False") == "False", definition["metadata"]["name"]
        applied = definition["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
        assert len(applied) < KUBECTL_ANNOTATION_LIMIT / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_slip_of_the_pen_in_a_template_is_refused_by_kubectl(
    kind: str, plane: ControlPlane, namespace: str
) -> None:
    content = json.dumps(made(kind, "typo", misspelt()))
    with pytest.raises(RuntimeError, match="strict decoding error") as refused:
        plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=content)
    template = f"{KINDS[kind][2]}.tasks[0].template.spec"
    for field in ("nodeSelecter", "containers[0].resource"):
        assert f'unknown field "{template}.{field}"' in str(refused.value)


@pytest.mark.parametrize("validation", ["Warn", "Ignore"])
def test_other_clients_lose_the_unknown_field(validation: str, plane: ControlPlane, namespace: str) -> None:
    for kind in KINDS:
        content = made(kind, f"lost-{validation.lower()}", misspelt())
        stored = json.loads(plane.request("POST", url(kind, namespace, validation), content))
        assert pod_of(stored, kind) == {"containers": [container()]}


def test_a_value_of_the_wrong_type_is_refused_whoever_sends_it(plane: ControlPlane, namespace: str) -> None:
    pod = {"containers": [container(command="sleep 1")], "nodeSelector": ["a"], "hostNetwork": "yes"}
    message = refusal(plane, url("Job", namespace), made("Job", "types", pod))
    path = "spec.tasks[0].template.spec"
    for field in ("containers[0].command", "nodeSelector", "hostNetwork"):
        assert f"{path}.{field} in body must be of type" in message


def test_an_unknown_field_comes_before_what_is_wrong_with_the_others(
    plane: ControlPlane, namespace: str
) -> None:
    pod = {**misspelt(), "hostNetwork": "yes"}
    message = refusal(plane, url("Job", namespace, "Strict"), made("Job", "both", pod))
    assert "strict decoding error" in message
    assert "hostNetwork" not in message


def test_what_pods_may_say_a_template_may_say(plane: ControlPlane, namespace: str) -> None:
    probe = {"httpGet": {"port": "web"}, "periodSeconds": 3}
    pod = {
        "containers": [
            container(
                resources={"requests": {"cpu": 0.5, "memory": "1Gi", "nvidia.com/gpu": 1}},
                ports=[{"containerPort": 80, "name": "web"}, {"containerPort": 80, "protocol": "UDP"}],
                livenessProbe=probe,
                volumeMounts=[{"name": "data", "mountPath": "/data"}],
            )
        ],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
        "imagePullSecrets": [{"name": "key"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    content = made("Job", "whole", pod)
    content["spec"]["tasks"][0]["template"]["metadata"] = {"creationTimestamp": None, "labels": {"a": "b"}}
    path = url("Job", namespace, "Strict")
    stored = json.loads(plane.request("POST", path, copy.deepcopy(content)))
    pod["containers"][0]["ports"][0]["protocol"] = "TCP"
    assert pod_of(stored, "Job") == pod
    assert stored["spec"]["tasks"][0]["template"]["metadata"]["labels"] == {"a": "b"}


def test_a_quantity_that_is_none_is_refused(plane: ControlPlane, namespace: str) -> None:
    pod = {"containers": [container(resources={"requests": {"cpu": "many"}})]}
    message = refusal(plane, url("Job", namespace), made("Job", "many", pod))
    assert "spec.tasks[0].template.spec.containers[0].resources.requests.cpu in body should match" in message


def test_kubectl_explains_the_fields_of_a_template(plane: ControlPlane) -> None:
    text = plane.kubectl("explain", "jobs.spec.tasks.template.spec", "--api-version", BATCH)
    assert "nodeSelector" in text
    assert "<map[string]string>" in text


@pytest.mark.real_only
def test_our_description_of_pods_is_that_of_the_real_server(plane: ControlPlane) -> None:
    schemas = json.loads(plane.request("GET", "/openapi/v3/api/v1"))["components"]["schemas"]
    name = "io.k8s.api.core.v1.PodTemplateSpec"
    assert list(differences(notation().type("PodTemplateSpec"), schemas[name], schemas, "")) == []


def differences(ours: Schema, theirs: Json, schemas: Json, path: str) -> Iterator[str]:
    """Fields that only one side has, and those of which type, required fields or kind of list differ."""
    theirs = theirs["allOf"][0] if len(theirs.get("allOf", ())) == 1 else theirs
    if "$ref" in theirs:
        theirs = schemas[theirs["$ref"].rpartition("/")[2]]
    described = theirs.get("properties", {})
    if (ours.properties.keys(), set(ours.required)) != (described.keys(), set(theirs.get("required", ()))):
        yield f"{path}: {sorted(ours.properties.keys() ^ described.keys())} or what is required of them"
    if theirs.get("type", ours.type) != (ours.type or theirs.get("type")):
        yield f"{path}: a {theirs['type']}"
    if theirs.get("x-kubernetes-list-type", ours.list_type) != ours.list_type:
        yield f"{path}: a list of type {theirs['x-kubernetes-list-type']}"
    for key in ours.properties.keys() & described.keys():
        yield from differences(ours.properties[key], described[key], schemas, f"{path}.{key}")
    if ours.items is not None:
        yield from differences(ours.items, theirs["items"], schemas, f"{path}[]")
