"""The real API server as the oracle of our defaults: the same objects get the same fields."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.services.service_fields import complete_families
from tests.built_in_kinds import problems, set_defaults
from tests.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.real_only

Json = Any


def container(**more: Json) -> Json:
    return {"name": "a", "image": "busybox", **more}


def template(**spec: Json) -> Json:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()], **spec}}


PROBED = container(
    image="r:5000/x:1",
    ports=[{"containerPort": 80}],
    env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    livenessProbe={"httpGet": {"port": 80}},
    readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 3},
    startupProbe={"tcpSocket": {"port": "http"}},
    resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
    volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in ("s", "c", "e", "p", "h")],
)
VOLUMES = [
    {"name": "s", "secret": {"secretName": "x"}},
    {"name": "c", "configMap": {"name": "x"}},
    {"name": "e", "emptyDir": {}},
    {"name": "h", "hostPath": {"path": "/x"}},
    {
        "name": "p",
        "projected": {
            "sources": [
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]
        },
    },
]
SELECTOR = {"matchLabels": {"a": "b"}}
JOB = {"template": template(restartPolicy="Never")}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1"},
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    "matchConditions": [{"name": "never", "expression": "false"}],
}

OBJECTS: list[tuple[str, str, str, Json]] = [
    ("v1", "pods", "Pod", {"spec": template()["spec"]}),
    (
        "v1",
        "pods",
        "Pod",
        {"spec": {"containers": [PROBED], "initContainers": [container(name="i")], "volumes": VOLUMES}},
    ),
    (
        "v1",
        "pods",
        "Pod",
        {"spec": {"containers": [container(ports=[{"containerPort": 80}])], "hostNetwork": True}},
    ),
    (
        "v1",
        "pods",
        "Pod",
        {
            "spec": template(
                serviceAccount="x",
                topologySpreadConstraints=[
                    {
                        "maxSkew": 1,
                        "topologyKey": "z",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": SELECTOR,
                    }
                ],
            )["spec"]
        },
    ),
    ("v1", "services", "Service", {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    (
        "v1",
        "services",
        "Service",
        {"spec": {"ports": [{"port": 80, "targetPort": "web"}], "clusterIP": "None"}},
    ),
    ("v1", "configmaps", "ConfigMap", {"data": {"a": "b"}}),
    ("v1", "secrets", "Secret", {"data": {"a": "Yg=="}}),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim", {"spec": CLAIM}),
    ("v1", "resourcequotas", "ResourceQuota", {"spec": {"hard": {"cpu": "10"}}}),
    ("v1", "limitranges", "LimitRange", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]}}),
    (
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        {"spec": {"selector": {"a": "b"}, "template": template()}},
    ),
    ("apps/v1", "deployments", "Deployment", {"spec": {"selector": SELECTOR, "template": template()}}),
    (
        "apps/v1",
        "deployments",
        "Deployment",
        {"spec": {"selector": SELECTOR, "template": template(), "strategy": {"type": "Recreate"}}},
    ),
    ("apps/v1", "replicasets", "ReplicaSet", {"spec": {"selector": SELECTOR, "template": template()}}),
    ("apps/v1", "daemonsets", "DaemonSet", {"spec": {"selector": SELECTOR, "template": template()}}),
    (
        "apps/v1",
        "statefulsets",
        "StatefulSet",
        {"spec": {"selector": SELECTOR, "serviceName": "s", "template": template()}},
    ),
    ("batch/v1", "jobs", "Job", {"spec": JOB}),
    ("batch/v1", "jobs", "Job", {"spec": {**JOB, "parallelism": 3, "completionMode": "NonIndexed"}}),
    ("batch/v1", "jobs", "Job", {"spec": {**JOB, "completions": 3, "completionMode": "Indexed"}}),
    ("batch/v1", "cronjobs", "CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}}),
    (
        "policy/v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    ),
    ("coordination.k8s.io/v1", "leases", "Lease", {"spec": {"holderIdentity": "x"}}),
    (
        "networking.k8s.io/v1",
        "networkpolicies",
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}},
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "roles",
        "Role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        "RoleBinding",
        {
            "roleRef": {"kind": "Role", "name": "x", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
    ),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", {"value": 7}),
    ("storage.k8s.io/v1", "storageclasses", "StorageClass", {"provisioner": "x.example.com"}),
    (
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/x"},
            }
        },
    ),
    ("v1", "nodes", "Node", {}),
    (
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        {"webhooks": [HOOK]},
    ),
    (
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        {"webhooks": [HOOK]},
    ),
]
ASSIGNED = {
    "Service": ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"),
    "Job": ("selector",),
    "Pod": ("preemptionPolicy", "priority", "tolerations"),
}
"""Fields of the spec that others than the schema set."""
ONE_PER_CLUSTER = ("PriorityClass", "StorageClass", "PersistentVolume", "Node")


def _compared(content: Json, kind: str) -> Json:
    rest = {
        key: value
        for key, value in content.items()
        if key not in ("metadata", "status", "apiVersion", "kind")
    }
    spec = rest.get("spec")
    if isinstance(spec, dict):
        spec = rest["spec"] = {key: value for key, value in spec.items() if key not in ASSIGNED.get(kind, ())}
    if kind == "Job":
        spec["template"] = spec["template"]["spec"]
    elif kind == "CronJob":
        spec["jobTemplate"].pop("metadata", None)
    return rest


@pytest.mark.parametrize("number", range(len(OBJECTS)), ids=lambda number: f"{OBJECTS[number][2]}-{number}")
def test_objects_get_the_defaults_of_the_real_server(
    number: int, plane: ControlPlane, namespace: str
) -> None:
    api_version, plural, kind, rest = OBJECTS[number]
    content = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": f"x-{namespace}"},
        **copy.deepcopy(rest),
    }
    root = f"/apis/{api_version}" if "/" in api_version else "/api/v1"
    alone = kind in ONE_PER_CLUSTER or kind.endswith("WebhookConfiguration")
    path = f"{root}/{plural}" if alone else f"{root}/namespaces/{namespace}/{plural}"
    theirs = json.loads(plane.request("POST", path, content))
    if alone:
        plane.request("DELETE", f"{path}/{content['metadata']['name']}")
    schema = builtin_schemas.schema(api_version, kind)
    assert schema is not None
    assert normalize(content, schema) == ([], [])
    set_defaults(content, kind)
    if kind == "Service":
        complete_families(content)
    assert problems(content, kind) == []
    assert _compared(content, kind) == _compared(theirs, kind)
