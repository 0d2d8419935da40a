"""Rows of namespaces, events, leases, configuration, budgets, priorities, pod groups and RBAC objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stromboli.embedded.tables.age_text import age, ago
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    Content,
    PrintRow,
    name_of,
    nested_map,
    printer,
    selector_text,
)

CREATED_AT = printer(
    "Name | Created At",
    lambda content, _: [name_of(content), nested_map(content, "metadata").get("creationTimestamp") or ""],
)


def _named(cell: Callable[[Content], Any]) -> PrintRow:
    """A row of the name, this cell, and the age."""
    return lambda content, now: [name_of(content), cell(content), age(content, now)]


def _field(*path: str) -> PrintRow:
    """A row of the name, a field or nothing, and the age."""
    return _named(lambda content: nested_map(content, *path[:-1]).get(path[-1]) or "")


def _count(*path: str) -> PrintRow:
    """A row of the name, a number of entries, and the age."""
    return _named(lambda content: len(nested_map(content, *path[:-1]).get(path[-1]) or ()))


def _event(event: Content, now: float) -> Cells:
    """Old recorders set a count and two times, new ones eventTime and a series."""
    series, source = nested_map(event, "series"), nested_map(event, "source")
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp")
    regarding = nested_map(event, "involvedObject")
    component = source.get("component") or event.get("reportingComponent")
    reporters = [component, source.get("host") or event.get("reportingInstance")]
    return [
        ago(last or first, now),
        event.get("type") or "",
        event.get("reason") or "",
        f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}",
        regarding.get("fieldPath") or "",
        ", ".join(str(reporter) for reporter in reporters if reporter),
        str(event.get("message") or "").strip(),
        ago(first, now),
        series.get("count") or event.get("count") or 1,
        name_of(event),
    ]


def _secret(secret: Content, now: float) -> Cells:
    return [name_of(secret), secret.get("type") or "Opaque", len(secret.get("data") or ()), age(secret, now)]


def _quota(quota: Content, now: float) -> Cells:
    hard = nested_map(quota, "status", "hard") or nested_map(quota, "spec", "hard")
    used = nested_map(quota, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits.") else requests).append(
            f"{name}: {used.get(name, '0')}/{hard[name]}"
        )
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


def _priority_class(priority_class: Content, now: float) -> Cells:
    return [
        name_of(priority_class),
        priority_class.get("value") or 0,
        bool(priority_class.get("globalDefault")),
        age(priority_class, now),
        priority_class.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def _budget(budget: Content, now: float) -> Cells:
    spec = nested_map(budget, "spec")

    def bound(value: Any) -> str:
        return "N/A" if value is None else str(value)

    return [
        name_of(budget),
        bound(spec.get("minAvailable")),
        bound(spec.get("maxUnavailable")),
        nested_map(budget, "status").get("disruptionsAllowed") or 0,
        age(budget, now),
    ]


def _pod_group(group: Content, now: float) -> Cells:
    return [
        name_of(group),
        "Gang" if "gang" in nested_map(group, "spec", "schedulingPolicy") else "Basic",
        nested_map(group, "spec", "podGroupTemplateRef", "workload").get("workloadName") or NONE,
        _group_status(nested_map(group, "status").get("conditions") or ()),
        age(group, now),
    ]


def _group_status(conditions: Iterable[Content]) -> str:
    by_type = {condition.get("type"): condition for condition in conditions}
    if (disruption := by_type.get("DisruptionTarget")) is not None:
        return str(disruption.get("reason"))
    if (scheduled := by_type.get("PodGroupScheduled")) is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


def _binding(binding: Content, now: float) -> Cells:
    role, subjects = nested_map(binding, "roleRef"), binding.get("subjects") or []
    users, groups, accounts = (
        [subject for subject in subjects if subject.get("kind") == kind]
        for kind in ("User", "Group", "ServiceAccount")
    )
    return [
        name_of(binding),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(binding, now),
        ", ".join(subject.get("name", "") for subject in users),
        ", ".join(subject.get("name", "") for subject in groups),
        ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in accounts),
    ]


BINDINGS = printer("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+", _binding)
WEBHOOKS = printer("Name | Webhooks# | Age", _count("webhooks"))
PRINTERS = {
    "namespaces": printer("Name | Status | Age", _field("status", "phase")),
    "events": printer(
        "Last Seen | Type | Reason | Object | Subobject+ | Source+ | Message | First Seen+ | Count#+ | Name+",
        _event,
    ),
    "leases.coordination.k8s.io": printer("Name | Holder | Age", _field("spec", "holderIdentity")),
    "secrets": printer("Name | Type | Data# | Age", _secret),
    "configmaps": printer(
        "Name | Data# | Age",
        _named(lambda content: len(content.get("data") or ()) + len(content.get("binaryData") or ())),
    ),
    "serviceaccounts": printer("Name | Secrets# | Age", _count("secrets")),
    "resourcequotas": printer("Name | Request | Limit | Age", _quota),
    "limitranges": CREATED_AT,
    "csinodes.storage.k8s.io": printer("Name | Drivers# | Age", _count("spec", "drivers")),
    "priorityclasses.scheduling.k8s.io": printer(
        "Name | Value# | Global-Default | Age | PreemptionPolicy", _priority_class
    ),
    "podgroups.scheduling.k8s.io": printer("Name | Policy | Workload | Status | Age", _pod_group),
    "poddisruptionbudgets.policy": printer(
        "Name | Min Available | Max Unavailable | Allowed Disruptions# | Age", _budget
    ),
    "networkpolicies.networking.k8s.io": printer(
        "Name | Pod-Selector | Age",
        _named(lambda policy: selector_text(nested_map(policy, "spec").get("podSelector"))),
    ),
    "roles.rbac.authorization.k8s.io": CREATED_AT,
    "clusterroles.rbac.authorization.k8s.io": CREATED_AT,
    "rolebindings.rbac.authorization.k8s.io": BINDINGS,
    "clusterrolebindings.rbac.authorization.k8s.io": BINDINGS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": WEBHOOKS,
    "customresourcedefinitions.apiextensions.k8s.io": CREATED_AT,
}
