"""Which layout the built-in kinds have; everything else has a name and an age."""

from __future__ import annotations

from stromboli.embedded.tables import cluster, nodes, pods, storage, workloads
from stromboli.embedded.tables.layout import Layout

_RBAC, _APPS, _BATCH = "rbac.authorization.k8s.io", "apps", "batch"
_ADMISSION = "admissionregistration.k8s.io"

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "pods"): pods.PODS,
    ("", "nodes"): nodes.NODES,
    ("", "namespaces"): cluster.NAMESPACES,
    ("", "events"): cluster.EVENTS,
    ("events.k8s.io", "events"): cluster.EVENTS,
    ("coordination.k8s.io", "leases"): cluster.LEASES,
    ("", "services"): cluster.SERVICES,
    ("", "endpoints"): cluster.ENDPOINTS,
    ("", "secrets"): cluster.SECRETS,
    ("", "configmaps"): cluster.CONFIG_MAPS,
    ("", "serviceaccounts"): cluster.SERVICE_ACCOUNTS,
    ("", "resourcequotas"): cluster.QUOTAS,
    ("", "limitranges"): cluster.dated,
    ("", "persistentvolumes"): storage.VOLUMES,
    ("", "persistentvolumeclaims"): storage.CLAIMS,
    ("", "replicationcontrollers"): workloads.REPLICA_SETS,
    ("storage.k8s.io", "storageclasses"): storage.STORAGE_CLASSES,
    ("storage.k8s.io", "csinodes"): cluster.CSI_NODES,
    (_APPS, "deployments"): workloads.DEPLOYMENTS,
    (_APPS, "replicasets"): workloads.REPLICA_SETS,
    (_APPS, "statefulsets"): workloads.STATEFUL_SETS,
    (_APPS, "daemonsets"): workloads.DAEMON_SETS,
    (_BATCH, "jobs"): workloads.JOBS,
    (_BATCH, "cronjobs"): workloads.CRON_JOBS,
    ("scheduling.k8s.io", "priorityclasses"): cluster.PRIORITY_CLASSES,
    ("policy", "poddisruptionbudgets"): cluster.BUDGETS,
    ("networking.k8s.io", "networkpolicies"): cluster.NETWORK_POLICIES,
    (_RBAC, "roles"): cluster.dated,
    (_RBAC, "clusterroles"): cluster.dated,
    (_RBAC, "rolebindings"): cluster.BINDINGS,
    (_RBAC, "clusterrolebindings"): cluster.BINDINGS,
    (_ADMISSION, "mutatingwebhookconfigurations"): cluster.WEBHOOKS,
    (_ADMISSION, "validatingwebhookconfigurations"): cluster.WEBHOOKS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): cluster.dated,
}


def layout_of(group: str, resource: str) -> Layout:
    """The layout of a built-in kind, by API group and plural name; `custom_layout` is for the others."""
    return LAYOUTS.get((group, resource), cluster.plain)
