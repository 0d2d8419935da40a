"""The bootstrap policy: roles and bindings that every cluster starts with, as far as a batch cluster uses them."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.rbac.authorizer import MASTERS
from stromboli.embedded.rbac.policy_rules import GROUP

Content = dict[str, Any]

READ = ["get", "list", "watch"]
WRITE = ["create", "delete", "deletecollection", "patch", "update"]
ALL = ["*"]
_VERSION = f"{GROUP}/v1"
_LABEL = "rbac.authorization.k8s.io/aggregate-to-"

_CORE = [
    "bindings",
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "namespaces",
    "namespaces/status",
    "persistentvolumeclaims",
    "persistentvolumeclaims/status",
    "pods",
    "pods/log",
    "pods/status",
    "replicationcontrollers",
    "replicationcontrollers/scale",
    "replicationcontrollers/status",
    "resourcequotas",
    "resourcequotas/status",
    "serviceaccounts",
    "services",
    "services/status",
]
_APPS = ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]
_APPS += [f"{name}/status" for name in _APPS[1:]] + [
    "deployments/scale",
    "replicasets/scale",
    "statefulsets/scale",
]
_BATCH = ["cronjobs", "cronjobs/status", "jobs", "jobs/status"]
_VOLCANO = ["batch.volcano.sh", "bus.volcano.sh", "flow.volcano.sh", "scheduling.volcano.sh"]
_VOLCANO_READ = ["jobs", "cronjobs", "commands", "jobflows", "jobtemplates", "podgroups"]
_EDITABLE = ["configmaps", "endpoints", "persistentvolumeclaims", "pods", "pods/binding", "pods/eviction"]
_EDITABLE += [
    "replicationcontrollers",
    "replicationcontrollers/scale",
    "secrets",
    "serviceaccounts",
    "services",
]


def rule(verbs: list[str], groups: list[str], resources: list[str]) -> Content:
    return {"verbs": verbs, "apiGroups": groups, "resources": resources}


def paths(verbs: list[str], urls: list[str]) -> Content:
    return {"verbs": verbs, "nonResourceURLs": urls}


_VIEW = [
    rule(READ, [""], _CORE),
    rule(READ, ["apps"], _APPS),
    rule(READ, ["batch"], _BATCH),
    rule(READ, ["policy"], ["poddisruptionbudgets", "poddisruptionbudgets/status"]),
    rule(READ, ["events.k8s.io"], ["events"]),
    rule(READ, ["scheduling.k8s.io"], ["podgroups", "podgroups/status", "workloads"]),
    rule(READ, ["resource.k8s.io"], ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"]),
    rule(READ, _VOLCANO, _VOLCANO_READ),
]
_EDIT = [
    rule(READ, [""], ["secrets", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy"]),
    rule(["impersonate"], [""], ["serviceaccounts"]),
    rule(["create"], [""], ["serviceaccounts/token", "pods/exec", "pods/attach", "pods/portforward"]),
    rule(WRITE, [""], _EDITABLE),
    rule(["create", "patch", "update"], [""], ["events"]),
    rule(WRITE, ["apps"], [name for name in _APPS if not name.endswith("status")]),
    rule(WRITE, ["batch"], ["cronjobs", "jobs"]),
    rule(WRITE, ["policy"], ["poddisruptionbudgets"]),
    rule(WRITE, ["scheduling.k8s.io"], ["podgroups", "workloads"]),
    rule(WRITE, ["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"]),
    rule([*READ, *WRITE], ["coordination.k8s.io"], ["leases"]),
    rule(WRITE, _VOLCANO, _VOLCANO_READ),
]
_ADMIN = [
    rule(["create"], ["authorization.k8s.io"], ["localsubjectaccessreviews"]),
    rule([*READ, *WRITE], [GROUP], ["roles", "rolebindings"]),
]
_METRICS = [rule(READ, ["metrics.k8s.io"], ["nodes", "pods"])]
"""As the metrics server of Kubernetes brings along."""
_HEALTH = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = [*_HEALTH, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
_MONITORING = [*_HEALTH[:3], *(f"{path}/*" for path in _HEALTH[:3]), "/metrics", "/metrics/*"]
_NODE = [
    rule([*READ, "create", "patch", "update", "delete"], [""], ["nodes", "nodes/status"]),
    rule([*READ, "create", "delete"], [""], ["pods"]),
    rule(["patch", "update"], [""], ["pods/status"]),
    rule(["create"], [""], ["pods/eviction"]),
    rule(READ, [""], ["configmaps", "secrets", "services", "persistentvolumeclaims", "persistentvolumes"]),
    rule(["get"], ["storage.k8s.io"], ["volumeattachments"]),
    rule([*READ, "create", "patch", "update", "delete"], ["storage.k8s.io"], ["csinodes"]),
    rule(READ, ["storage.k8s.io"], ["csidrivers"]),
    rule(READ, ["resource.k8s.io"], ["resourceclaims"]),
    rule([*READ, *WRITE], ["resource.k8s.io"], ["resourceslices"]),
    rule(["create", "patch", "update"], ["", "events.k8s.io"], ["events"]),
    rule([*READ, "create", "patch", "update", "delete"], ["coordination.k8s.io"], ["leases"]),
]


def bootstrap_policy() -> list[tuple[str, Content]]:
    """Resource and object of everything, in an order in which it may be created."""
    return [
        _role("cluster-admin", [rule(ALL, ALL, ALL), paths(ALL, ALL)]),
        _aggregated_role("admin"),
        _aggregated_role("edit", "admin"),
        _aggregated_role("view", "edit"),
        _role("system:aggregate-to-admin", _ADMIN, "admin"),
        _role("system:aggregate-to-edit", _EDIT, "edit"),
        _role("system:aggregate-to-view", _VIEW, "view"),
        _role("system:aggregated-metrics-reader", _METRICS, "admin", "edit", "view"),
        _role(
            "system:basic-user",
            [
                rule(
                    ["create"],
                    ["authorization.k8s.io"],
                    ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                ),
                rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
            ],
        ),
        _role("system:discovery", [paths(["get"], _DISCOVERY)]),
        _role("system:public-info-viewer", [paths(["get"], _HEALTH)]),
        _role("system:monitoring", [paths(["get"], _MONITORING)]),
        _role("system:node", _NODE),
        _bind("cluster-admin", MASTERS),
        _bind("system:basic-user", "system:authenticated"),
        _bind("system:discovery", "system:authenticated"),
        _bind("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
        _bind("system:monitoring", "system:monitoring"),
        _bind("system:node", "system:nodes"),
    ]


def _meta(name: str, **labels: str) -> Content:
    return {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}}


def _role(name: str, rules: list[Content], *aggregate_to: str) -> tuple[str, Content]:
    labels = {f"{_LABEL}{role}": "true" for role in aggregate_to}
    return "clusterroles", {
        "apiVersion": _VERSION,
        "kind": "ClusterRole",
        "metadata": _meta(name, **labels),
        "rules": rules,
    }


def _aggregated_role(name: str, *aggregate_to: str) -> tuple[str, Content]:
    """A role that aggregates the roles labelled for it, and may be aggregated itself."""
    resource, role = _role(name, [], *aggregate_to)
    role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_LABEL}{name}": "true"}}]}
    return resource, role


def _bind(role: str, *groups: str) -> tuple[str, Content]:
    return "clusterrolebindings", {
        "apiVersion": _VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": _meta(role),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": name} for name in groups],
    }
