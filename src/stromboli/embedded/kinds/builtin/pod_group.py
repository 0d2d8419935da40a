"""PodGroups of `scheduling.k8s.io`."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.pod_group_rules import GROUP_FIELDS, pod_group_problems
from stromboli.embedded.kinds.builtin.priority_class import admitted_class
from stromboli.embedded.kinds.builtin.workload import WORKLOADS
from stromboli.embedded.kinds.kind import ALPHA, STATUS, Content, Kind, builtin
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy, fixed_fields
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import NONE, Cells, name_of, nested_map, printer

POD_GROUPS = "podgroups.scheduling.k8s.io"
FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""Keeps a group until none of its pods is active."""


def _row(group: Content, now: float) -> Cells:
    return [
        name_of(group),
        "Gang" if "gang" in nested_map(group, "spec", "schedulingPolicy") else "Basic",
        nested_map(group, "spec", "podGroupTemplateRef", "workload").get("workloadName") or NONE,
        _state(nested_map(group, "status").get("conditions") or ()),
        age(group, now),
    ]


def _state(conditions: Iterable[Content]) -> str:
    by_type = {condition.get("type"): condition for condition in conditions}
    if (disruption := by_type.get("DisruptionTarget")) is not None:
        return str(disruption.get("reason"))
    if (scheduled := by_type.get("PodGroupScheduled")) is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def _admit(store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
    """The Priority, PodGroup and PodGroupProtection admission plugins."""
    meta, spec = content["metadata"], content["spec"]
    _set_priority(store, kind, meta, spec)
    _check_template(store, kind, namespace, meta, spec.get("podGroupTemplateRef") or {})
    finalizers = meta.get("finalizers") or []
    if FINALIZER not in finalizers:
        meta["finalizers"] = [*finalizers, FINALIZER]


def _set_priority(store: StoredObjects, kind: Kind, meta: Content, spec: Content) -> None:
    value = admitted_class(store, kind, meta, spec).get("value", 0)
    if spec.get("priority") not in (None, value):
        why = (
            f"priority set in the pod group ({spec['priority']}) must match the priority computed ({value})"
            " based on the priority class set in the spec"
        )
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["priority"] = value


def _check_template(
    store: StoredObjects, kind: Kind, namespace: str, meta: Content, reference: Content
) -> None:
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


KIND = builtin(
    "scheduling.k8s.io",
    "podgroups",
    "PodGroup",
    "",
    STATUS,
    strategy=Strategy(
        status_alone=True,
        printer=printer("Name | Policy | Workload | Status | Age", _row),
        problems=pod_group_problems,
        update_problems=fixed_fields(GROUP_FIELDS),
        admit=_admit,
    ),
    **ALPHA,
)
