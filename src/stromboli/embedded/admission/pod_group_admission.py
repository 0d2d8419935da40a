"""Defaults of a new PodGroup of `scheduling.k8s.io`: its priority and its finalizer; and the template that it names."""

from __future__ import annotations

from stromboli.embedded.admission.pod_admission import admitted_priority_class
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.store.object_store import Store

POD_GROUPS = "podgroups.scheduling.k8s.io"
WORKLOADS = "workloads.scheduling.k8s.io"
FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""Keeps a group until none of its pods is active."""


def set_pod_group_defaults(store: Store, kind: Kind, namespace: str, group: Content) -> None:
    """The Priority, PodGroup and PodGroupProtection admission plugins."""
    meta, spec = group["metadata"], group["spec"]
    _set_priority(store, kind, meta, spec)
    _check_template(store, kind, namespace, meta, spec.get("podGroupTemplateRef") or {})
    finalizers = meta.get("finalizers") or []
    if FINALIZER not in finalizers:
        meta["finalizers"] = [*finalizers, FINALIZER]


def _set_priority(store: Store, kind: Kind, meta: Content, spec: Content) -> None:
    value = admitted_priority_class(store, kind, meta, spec).get("value", 0)
    if spec.get("priority") not in (None, value):
        why = (
            f"priority set in the pod group ({spec['priority']}) must match the priority computed ({value})"
            " based on the priority class set in the spec"
        )
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["priority"] = value


def _check_template(store: Store, kind: Kind, namespace: str, meta: Content, reference: Content) -> None:
    wanted = reference.get("workload") or {}
    workload, template = wanted.get("workloadName"), wanted.get("podGroupTemplateName")
    if not workload or not template:
        return  # validation has more to say
    record = store.get(WORKLOADS, namespace, workload)
    if record is None:
        why = f'PodGroup rejected: Workload "{workload}" not found'
        raise forbidden(kind, str(meta.get("name", "")), why)
    templates = (record.object().get("spec") or {}).get("podGroupTemplates") or ()
    if all(known.get("name") != template for known in templates):
        why = f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{workload}"'
        raise forbidden(kind, str(meta.get("name", "")), why)
