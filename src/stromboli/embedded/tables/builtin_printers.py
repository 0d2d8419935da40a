"""The printers of built-in kinds; others print a name and an age."""

from __future__ import annotations

from stromboli.embedded.tables import cluster_rows, node_rows, pod_rows, storage_rows, workload_rows
from stromboli.embedded.tables.table_printer import TablePrinter

_RBAC, _APPS, _BATCH = "rbac.authorization.k8s.io", "apps", "batch"
_ADMISSION = "admissionregistration.k8s.io"

PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "pods"): pod_rows.PODS,
    ("", "nodes"): node_rows.NODES,
    ("", "namespaces"): cluster_rows.NAMESPACES,
    ("", "events"): cluster_rows.EVENTS,
    ("events.k8s.io", "events"): cluster_rows.EVENTS,
    ("coordination.k8s.io", "leases"): cluster_rows.LEASES,
    ("", "services"): cluster_rows.SERVICES,
    ("", "endpoints"): cluster_rows.ENDPOINTS,
    ("", "secrets"): cluster_rows.SECRETS,
    ("", "configmaps"): cluster_rows.CONFIG_MAPS,
    ("", "serviceaccounts"): cluster_rows.SERVICE_ACCOUNTS,
    ("", "resourcequotas"): cluster_rows.QUOTAS,
    ("", "limitranges"): cluster_rows.CREATED_AT,
    ("", "persistentvolumes"): storage_rows.VOLUMES,
    ("", "persistentvolumeclaims"): storage_rows.CLAIMS,
    ("", "replicationcontrollers"): workload_rows.REPLICA_SETS,
    ("storage.k8s.io", "storageclasses"): storage_rows.STORAGE_CLASSES,
    ("storage.k8s.io", "csinodes"): cluster_rows.CSI_NODES,
    (_APPS, "deployments"): workload_rows.DEPLOYMENTS,
    (_APPS, "replicasets"): workload_rows.REPLICA_SETS,
    (_APPS, "statefulsets"): workload_rows.STATEFUL_SETS,
    (_APPS, "daemonsets"): workload_rows.DAEMON_SETS,
    (_BATCH, "jobs"): workload_rows.JOBS,
    (_BATCH, "cronjobs"): workload_rows.CRON_JOBS,
    ("scheduling.k8s.io", "priorityclasses"): cluster_rows.PRIORITY_CLASSES,
    ("policy", "poddisruptionbudgets"): cluster_rows.BUDGETS,
    ("networking.k8s.io", "networkpolicies"): cluster_rows.NETWORK_POLICIES,
    (_RBAC, "roles"): cluster_rows.CREATED_AT,
    (_RBAC, "clusterroles"): cluster_rows.CREATED_AT,
    (_RBAC, "rolebindings"): cluster_rows.BINDINGS,
    (_RBAC, "clusterrolebindings"): cluster_rows.BINDINGS,
    (_ADMISSION, "mutatingwebhookconfigurations"): cluster_rows.WEBHOOKS,
    (_ADMISSION, "validatingwebhookconfigurations"): cluster_rows.WEBHOOKS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): cluster_rows.CREATED_AT,
}


def printer_for(group: str, resource: str) -> TablePrinter:
    """The printer of a built-in kind, by API group and plural name."""
    return PRINTERS.get((group, resource), cluster_rows.DEFAULT)
