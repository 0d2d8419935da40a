"""Jobs of `batch/v1`: the selector and the labels that the API server generates."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest

from tests.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.everywhere

Json = Any
UID, NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
OTHER = {"matchLabels": {"app": "x"}}
NO_MATCH = ("spec.template.metadata.labels", "`selector` does not match template `labels`")


def create(plane: ControlPlane, namespace: str, labels: Json = None, pods: Json = None, **spec: Json) -> Json:
    template = {
        "metadata": {"labels": pods or {}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    body = {"metadata": {"name": "it", "labels": labels or {}}, "spec": {"template": template, **spec}}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs?fieldManager=kubectl-create"
    return json.loads(plane.request("POST", path, body))


def generated(job: Json) -> Json:
    uid = job["metadata"]["uid"]
    return {UID: uid, NAME: "it", "controller-uid": uid, "job-name": "it"}


@pytest.mark.parametrize(
    ("labels", "pods", "own"),
    [({}, {}, {}), ({}, {"app": "x"}, {"app": "x"}), ({"team": "blue"}, {"app": "x"}, None)],
)
def test_a_job_selects_its_pods_by_its_uid(
    plane: ControlPlane, namespace: str, labels: Json, pods: Json, own: Json
) -> None:
    job = create(plane, namespace, labels, pods)
    assert job["spec"]["selector"] == {"matchLabels": {UID: job["metadata"]["uid"]}}
    assert job["spec"]["template"]["metadata"]["labels"] == {**generated(job), **pods}
    assert job["metadata"]["labels"] == (labels if own is None else {**generated(job), **own})
    (manager,) = job["metadata"]["managedFields"]
    assert "f:selector" not in manager["fieldsV1"]["f:spec"]


def test_a_manual_selector_is_left_alone(plane: ControlPlane, namespace: str) -> None:
    job = create(plane, namespace, None, {"app": "x"}, manualSelector=True, selector=OTHER)
    assert job["spec"]["selector"] == OTHER
    assert job["spec"]["template"]["metadata"]["labels"] == {"app": "x"}


@pytest.mark.parametrize(
    ("pods", "spec", "problems"),
    [
        ({"job-name": "other"}, {}, [("spec.template.metadata.labels[job-name]", "must be 'it'")]),
        ({}, {"selector": OTHER}, [("spec.selector", "`selector` not auto-generated"), NO_MATCH]),
        ({"app": "x"}, {"selector": OTHER}, [("spec.selector", "`selector` not auto-generated")]),
        ({}, {"manualSelector": True}, [("spec.selector", "Required value"), NO_MATCH]),
        ({"app": "y"}, {"manualSelector": True, "selector": OTHER}, [NO_MATCH]),
    ],
)
def test_labels_and_selectors_that_contradict_each_other_are_refused(
    plane: ControlPlane, namespace: str, pods: Json, spec: Json, problems: Json
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        create(plane, namespace, None, pods, **spec)
    status = json.loads(refused.value.read())
    causes = [(cause["field"], cause["message"].rpartition(": ")[2]) for cause in status["details"]["causes"]]
    assert (status["code"], causes) == (422, problems)


def test_the_version_is_told_with_and_without_a_slash(plane: ControlPlane) -> None:
    assert plane.request("GET", "/version/") == plane.request("GET", "/version")
