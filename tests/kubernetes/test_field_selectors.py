"""Field selectors: the same on the real API server and on the embedded one."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.test_native_kinds import MERGE, answer

Json = Any
CONTAINERS = [{"name": "main", "image": "none"}]
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": CONTAINERS}}
JOB = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "selects.selectors.example.com"},
    "spec": {
        "group": "selectors.example.com",
        "scope": "Cluster",
        "names": {"plural": "selects", "singular": "select", "kind": "Select"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "on": {"type": "boolean"},
                            "size": {"type": "integer"},
                            "source": {"type": "string"},
                            "hostNetwork": {"type": "boolean"},
                        },
                    }
                },
                "selectableFields": [{"jsonPath": ".on"}, {"jsonPath": ".size"}, {"jsonPath": ".source"}],
            }
        ],
    },
}
RESOURCES = {
    "Namespace": ("/v1", "namespaces"),
    "Node": ("/v1", "nodes"),
    "Pod": ("/v1", "namespaces/selectors/pods"),
    "ServiceAccount": ("/v1", "namespaces/selectors/serviceaccounts"),
    "Secret": ("/v1", "namespaces/selectors/secrets"),
    "ConfigMap": ("/v1", "namespaces/selectors/configmaps"),
    "Service": ("/v1", "namespaces/selectors/services"),
    "Event": ("/v1", "namespaces/selectors/events"),
    "ReplicationController": ("/v1", "namespaces/selectors/replicationcontrollers"),
    "ReplicaSet": ("apps/v1", "namespaces/selectors/replicasets"),
    "Job": ("batch/v1", "namespaces/selectors/jobs"),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses"),
    "ResourceSlice": ("resource.k8s.io/v1", "resourceslices"),
    "Select": ("selectors.example.com/v1", "selects"),
}
"""Group, version and path of the kinds."""


def path(kind: str) -> str:
    version, place = RESOURCES[kind]
    return f"/{'api' if version == '/v1' else 'apis/'}{version}/{place}"


@pytest.fixture(scope="module")
def selected(plane: ControlPlane) -> ControlPlane:
    """An API server with two or three objects of every kind that has fields to select by."""
    objects: list[tuple[str, str, Json, Json]] = [
        ("Namespace", "selectors", {}, None),
        ("ServiceAccount", "default", {}, None),
        ("ServiceAccount", "robot", {}, None),
        ("Node", "selectors-a", {}, None),
        ("Node", "selectors-b", {"spec": {"unschedulable": True}}, None),
        ("Node", "selectors-c", {"spec": {"unschedulable": False}}, None),
        ("Pod", "a", {"spec": {"containers": CONTAINERS}}, {"nominatedNodeName": "selectors-b"}),
        (
            "Pod",
            "b",
            {
                "spec": {
                    "containers": CONTAINERS,
                    "nodeName": "selectors-a",
                    "restartPolicy": "Never",
                    "schedulerName": "volcano",
                    "serviceAccountName": "robot",
                    "hostNetwork": True,
                }
            },
            {
                "phase": "Running",
                "podIP": "10.0.0.7",
                "podIPs": [{"ip": "10.0.0.7"}],
            },
        ),
        ("Secret", "a", {}, None),
        ("Secret", "b", {"type": "example.com/mine"}, None),
        ("Service", "a", {"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}, None),
        ("Service", "b", {"spec": {"type": "ExternalName", "externalName": "example.com"}}, None),
        (
            "ReplicationController",
            "a",
            {"spec": {"replicas": 0, "selector": {"app": "x"}, "template": TEMPLATE}},
            None,
        ),
        (
            "ReplicationController",
            "b",
            {"spec": {"replicas": 0, "selector": {"app": "x"}, "template": TEMPLATE}},
            {"replicas": 2},
        ),
        ("Job", "a", {"spec": {"suspend": True, "template": JOB}}, None),
        (
            "Job",
            "b",
            {"spec": {"completions": 3, "template": JOB}},
            {"startTime": "2026-01-01T00:00:00Z", "succeeded": 2},
        ),
        (
            "Event",
            "a",
            {
                "involvedObject": {"kind": "Pod", "namespace": "selectors", "name": "a", "apiVersion": "v1"},
                "reason": "Made",
                "type": "Normal",
                "source": {"component": "kubelet"},
            },
            None,
        ),
        (
            "Event",
            "b",
            {
                "involvedObject": {
                    "kind": "Node",
                    "namespace": "selectors",
                    "name": "n",
                    "uid": "u1",
                    "resourceVersion": "7",
                    "fieldPath": "spec.x",
                },
                "reason": "Lost",
                "type": "Warning",
                "action": "Watch",
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingComponent": "example.com/controller",
                "reportingInstance": "one",
            },
            None,
        ),
        (
            "ResourceSlice",
            "selectors-a",
            {"spec": {"driver": "a.example.com", "pool": POOL, "nodeName": "n1"}},
            None,
        ),
        (
            "ResourceSlice",
            "selectors-b",
            {"spec": {"driver": "b.example.com", "pool": POOL, "allNodes": True}},
            None,
        ),
        ("StorageClass", "selectors-a", {"provisioner": "a.example.com"}, None),
        ("Select", "a", {}, None),
        ("Select", "b", {"on": False, "size": 0}, None),
        ("Select", "c", {"on": True, "size": 3, "source": "mine"}, None),
    ]
    status, content = answer(
        plane, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION
    )
    assert status == 200, content
    plane.wait_established()
    for kind, name, body, subresource in objects:
        meta = {"name": name, "labels": {"selectors": "yes"}}
        version = RESOURCES[kind][0].removeprefix("/")
        status, content = answer(
            plane, "POST", path(kind), {"apiVersion": version, "kind": kind, "metadata": meta, **body}
        )
        assert status == 200 or (status == 409 and name == "default"), (kind, name, content)
        if subresource is not None:
            patch = {"status": subresource}
            status, content = answer(plane, "PATCH", f"{path(kind)}/{name}/status", patch, MERGE)
            assert status == 200, (kind, name, content["message"])
    return plane


def listing(plane: ControlPlane, kind: str, selector: str) -> tuple[int, Json]:
    query = f"?labelSelector=selectors%3Dyes&fieldSelector={quote(selector)}"
    status, content = answer(plane, "GET", path(kind) + query)
    if status != 200:
        return status, content["message"]
    return status, [item["metadata"]["name"].removeprefix("selectors-") for item in content["items"]]


@pytest.mark.parametrize(
    ("kind", "selector", "names"),
    [
        ("Node", "spec.unschedulable=false", "ac"),
        ("Node", "spec.unschedulable!=false", "b"),
        ("Node", "spec.unschedulable=true", "b"),
        ("Node", "spec.unschedulable=", ""),
        ("Node", "spec.unschedulable!=true", "ac"),
        ("Node", "spec.unschedulable=False", ""),
        ("Node", "metadata.name!=selectors-a,spec.unschedulable==false", "c"),
        ("Pod", "spec.hostNetwork=false", "a"),
        ("Pod", "spec.hostNetwork=true", "b"),
        ("Pod", "spec.nodeName=", "a"),
        ("Pod", "spec.nodeName!=", "b"),
        ("Pod", "spec.host=selectors-a", "b"),
        ("Pod", "spec.restartPolicy=Always", "a"),
        ("Pod", "spec.schedulerName=default-scheduler", "a"),
        ("Pod", "spec.schedulerName=volcano", "b"),
        ("Pod", "spec.serviceAccountName=robot", "b"),
        ("Pod", "status.phase=Pending", "a"),
        ("Pod", "status.phase!=Pending,status.phase!=Failed", "b"),
        ("Pod", "status.podIP=10.0.0.7", "b"),
        ("Pod", "status.podIP=", "a"),
        ("Pod", "status.podIPs=", "ab"),
        ("Pod", "status.podIPs=10.0.0.7", ""),
        ("Pod", "status.nominatedNodeName=selectors-b", "a"),
        ("Pod", "metadata.namespace=selectors", "ab"),
        ("Pod", "metadata.namespace=other", ""),
        ("Namespace", "status.phase=Active", ["selectors"]),
        ("Namespace", "status.phase=Terminating", ""),
        ("Secret", "type=Opaque", "a"),
        ("Secret", "type=example.com/mine", "b"),
        ("Service", "spec.clusterIP=None", "a"),
        ("Service", "spec.clusterIP=", "b"),
        ("Service", "spec.type=ClusterIP", "a"),
        ("Service", "spec.type=ExternalName", "b"),
        ("ReplicationController", "status.replicas=0", "a"),
        ("ReplicationController", "status.replicas=2", "b"),
        ("Job", "status.successful=0", "a"),
        ("Job", "status.successful=2", "b"),
        ("Event", "involvedObject.kind=Pod", "a"),
        ("Event", "involvedObject.namespace=selectors", "ab"),
        ("Event", "involvedObject.name=n", "b"),
        ("Event", "involvedObject.uid=u1", "b"),
        ("Event", "involvedObject.uid=", "a"),
        ("Event", "involvedObject.apiVersion=v1", "a"),
        ("Event", "involvedObject.resourceVersion=7", "b"),
        ("Event", "involvedObject.fieldPath=spec.x", "b"),
        ("Event", "reason=Lost", "b"),
        ("Event", "type=Normal", "a"),
        ("Event", "source=kubelet", "a"),
        ("Event", "source=example.com/controller", "b"),
        ("Event", "reportingComponent=example.com/controller", "b"),
        ("Event", "reportingComponent=", "a"),
        ("ResourceSlice", "spec.nodeName=n1", "a"),
        ("ResourceSlice", "spec.nodeName=", "b"),
        ("ResourceSlice", "spec.driver=b.example.com", "b"),
        ("Select", "on=", "a"),
        ("Select", "on=false", "b"),
        ("Select", "on=true", "c"),
        ("Select", "size=0", "b"),
        ("Select", "size!=3", "ab"),
        ("Select", "source=mine", "c"),
        ("ServiceAccount", "metadata.name=robot,metadata.namespace!=other", ["robot"]),
        ("StorageClass", "metadata.namespace=", "a"),
        ("StorageClass", "metadata.namespace=selectors", ""),
        ("Node", "metadata.name=selectors-a,", "a"),
        ("Node", "metadata.name=selectors-a ", ""),
        ("Event", r"reason!=a\,b\=c\\,type=Normal", "a"),
    ],
)
def test_a_field_selector_compares_texts(
    selected: ControlPlane, kind: str, selector: str, names: str | list[str]
) -> None:
    assert listing(selected, kind, selector) == (200, list(names))


@pytest.mark.parametrize(
    ("kind", "label", "reason"),
    [
        ("Pod", "spec.hostPID", "field label not supported: spec.hostPID"),
        ("Node", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("Node", "spec.providerID", "field label not supported: spec.providerID"),
        ("Namespace", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("Namespace", "name", "field label not supported: name"),
        ("Event", "source.component", "field label not supported: source.component"),
        ("Service", "spec.externalName", "field label not supported: spec.externalName"),
        ("ResourceSlice", "metadata.namespace", "field label not supported"),
        ("Job", "status.succeeded", "field label "),
        ("Select", "hostNetwork", "field label not supported: hostNetwork"),
        ("Select", "metadata.namespace", "field label not supported: metadata.namespace"),
        (
            "ReplicaSet",
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            "ConfigMap",
            "immutable",
            '"immutable" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_other_fields_are_refused(selected: ControlPlane, kind: str, label: str, reason: str) -> None:
    status, message = listing(selected, kind, f"{label}=1")
    assert status == 400
    assert message.startswith(reason)


@pytest.mark.parametrize(
    "selector",
    [
        "spec.unschedulable",
        "spec.unschedulable in (true)",
        "=true",
        " metadata.name=selectors-a",
        "metadata.name =selectors-a",
        "metadata.name=a=b",
        r"metadata.name=selectors\-a",
        "metadata.name=selectors-a\\",
    ],
)
def test_malformed_selectors_are_refused(selected: ControlPlane, selector: str) -> None:
    assert listing(selected, "Node", selector)[0] == 400


@pytest.mark.smoke
def test_a_watch_selects_by_absent_booleans(selected: ControlPlane) -> None:
    query = (
        "?watch=true&timeoutSeconds=1&labelSelector=selectors%3Dyes&fieldSelector=spec.unschedulable%3Dfalse"
    )
    lines = selected.request("GET", f"/api/v1/nodes{query}").splitlines()
    assert [line for line in lines if b"selectors-b" in line] == []
    assert len(lines) == 2
