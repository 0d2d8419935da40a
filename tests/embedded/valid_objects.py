"""Valid objects, for tests to break."""

from __future__ import annotations

from typing import Any

CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".s"}},
    "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
    "selectableFields": [{"jsonPath": ".spec.a"}],
}
SCOPE = {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
RULE = {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["none"]}

CLAIM = {"name": "c", "resourceClaimName": "c"}
CONSTRAINTS = {"topology": [{"key": "example.com/rack"}]}
CONDITION = {
    "type": "PodGroupScheduled",
    "status": "True",
    "reason": "Scheduled",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}
DEVICE = {"request": "a", "driver": "d.example.com", "pool": "p", "device": "d"}
CONSUMER = {"resource": "pods", "name": "p", "uid": "u"}

VALID_OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["example.com/x"]},
        "spec": {
            "containers": [CONTAINER],
            "initContainers": [{"name": "i", "image": "i", "ports": [{"containerPort": 1}]}],
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "priorityClassName": "system-node-critical",
            "overhead": {"cpu": "1"},
        },
    },
    {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": CONSTRAINTS,
            "resourceClaims": [CLAIM],
        },
        "status": {"conditions": [CONDITION], "resourceClaimStatuses": [{"name": "c"}]},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
            "podGroupTemplates": [
                {
                    "name": "t",
                    "schedulingPolicy": {"basic": {}},
                    "schedulingConstraints": CONSTRAINTS,
                    "resourceClaims": [CLAIM],
                    "priority": 1,
                }
            ],
        },
    },
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "toys", "kind": "Toy", "shortNames": ["t"], "categories": ["all"]},
            "versions": [VERSION],
        },
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {
            "hard": {"pods": "9", "requests.cpu": "9"},
            "scopeSelector": {"matchExpressions": [SCOPE]},
        },
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [
            {
                "name": "a.b.c",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [RULE],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "b"}],
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "pc"}, "value": 1},
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {"a": "b"},
        "type": "Opaque",
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "c"},
            "csi": {"driver": "d.example.com", "volumeHandle": "h"},
        },
    },
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "sc"},
        "provisioner": "stromboli.sh/folder",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}],
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": 2}}]}},
        "status": {"allocation": {"devices": {"results": [DEVICE]}}, "reservedFor": [CONSUMER]},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}],
        },
    },
]
