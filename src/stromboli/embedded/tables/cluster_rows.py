"""Rows of namespaces, events, leases, services, configuration, budgets, priorities and RBAC objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stromboli.embedded.tables.age_text import age, ago
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    Content,
    format_labels,
    format_list,
    name_of,
    nested_map,
    printer,
    selector_text,
)

DEFAULT = printer("Name | Age", lambda content, now: [name_of(content), age(content, now)])
CREATED_AT = printer(
    "Name | Created At",
    lambda content, _: [name_of(content), nested_map(content, "metadata").get("creationTimestamp") or ""],
)


def _count(*path: str) -> Callable[[Content, float], Cells]:
    """A row of name, number of entries, and age."""

    def print_row(content: Content, now: float) -> Cells:
        return [name_of(content), len(nested_map(content, *path[:-1]).get(path[-1]) or ()), age(content, now)]

    return print_row


def _namespace(namespace: Content, now: float) -> Cells:
    return [name_of(namespace), nested_map(namespace, "status").get("phase") or "", age(namespace, now)]


def _event(event: Content, now: float) -> Cells:
    """Core events have a count and two times, those of events.k8s.io a series."""
    series = nested_map(event, "series")
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last = (
        series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    )
    regarding = nested_map(event, "involvedObject") or nested_map(event, "regarding")
    source = nested_map(event, "source") or nested_map(event, "deprecatedSource")
    component = source.get("component") or event.get("reportingComponent")
    host = source.get("host") or event.get("reportingInstance")
    reporters = [component or event.get("reportingController"), host]
    return [
        ago(last or first, now),
        event.get("type") or "",
        event.get("reason") or "",
        f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}",
        regarding.get("fieldPath") or "",
        ", ".join(str(reporter) for reporter in reporters if reporter),
        str(event.get("message") or event.get("note") or "").strip(),
        ago(first, now),
        series.get("count") or event.get("count") or event.get("deprecatedCount") or 1,
        name_of(event),
    ]


def _lease(lease: Content, now: float) -> Cells:
    return [name_of(lease), nested_map(lease, "spec").get("holderIdentity") or "", age(lease, now)]


def _service(service: Content, now: float) -> Cells:
    spec = nested_map(service, "spec")
    type = spec.get("type") or "ClusterIP"
    return [
        name_of(service),
        type,
        spec.get("clusterIP") or NONE,
        _external(service, type),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(service, now),
        format_labels(spec.get("selector")),
    ]


def _external(service: Content, type: str) -> str:
    spec = nested_map(service, "spec")
    addresses = list(spec.get("externalIPs") or ())
    if type == "ExternalName":
        return spec.get("externalName") or NONE
    if type == "LoadBalancer":
        entries = nested_map(service, "status", "loadBalancer").get("ingress") or ()
        addresses = [entry.get("ip") or entry.get("hostname") for entry in entries] + addresses
        return ",".join(addresses) or "<pending>"
    return ",".join(addresses) or NONE


def _port(port: Content) -> str:
    behind = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{behind}/{port.get('protocol', 'TCP')}"


def _endpoints(endpoints: Content, now: float) -> Cells:
    addresses = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in endpoints.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return [name_of(endpoints), format_list(addresses), age(endpoints, now)]


def _secret(secret: Content, now: float) -> Cells:
    return [name_of(secret), secret.get("type") or "Opaque", len(secret.get("data") or ()), age(secret, now)]


def _config_map(config_map: Content, now: float) -> Cells:
    return [
        name_of(config_map),
        len(config_map.get("data") or ()) + len(config_map.get("binaryData") or ()),
        age(config_map, now),
    ]


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


def _network_policy(policy: Content, now: float) -> Cells:
    return [name_of(policy), selector_text(nested_map(policy, "spec").get("podSelector")), age(policy, now)]


NAMESPACES = printer("Name | Status | Age", _namespace)
EVENTS = printer(
    "Last Seen | Type | Reason | Object | Subobject+ | Source+ | Message | First Seen+ | Count#+ | Name+",
    _event,
)
LEASES = printer("Name | Holder | Age", _lease)
SERVICES = printer("Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector+", _service)
ENDPOINTS = printer("Name | Endpoints | Age", _endpoints)
SECRETS = printer("Name | Type | Data# | Age", _secret)
CONFIG_MAPS = printer("Name | Data# | Age", _config_map)
SERVICE_ACCOUNTS = printer("Name | Secrets# | Age", _count("secrets"))
WEBHOOKS = printer("Name | Webhooks# | Age", _count("webhooks"))
CSI_NODES = printer("Name | Drivers# | Age", _count("spec", "drivers"))
QUOTAS = printer("Name | Request | Limit | Age", _quota)
PRIORITY_CLASSES = printer("Name | Value# | Global-Default | Age | PreemptionPolicy", _priority_class)
BUDGETS = printer("Name | Min Available | Max Unavailable | Allowed Disruptions# | Age", _budget)
BINDINGS = printer("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+", _binding)
NETWORK_POLICIES = printer("Name | Pod-Selector | Age", _network_policy)
