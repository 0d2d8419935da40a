"""Rows of what a cluster is made of: namespaces, events, leases, services, settings, budgets, priorities."""

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

DEFAULT = printer("Name | Age", lambda thing, now: [name_of(thing), age(thing, now)])
CREATED_AT = printer(
    "Name | Created At",
    lambda thing, _: [name_of(thing), nested_map(thing, "metadata").get("creationTimestamp") or ""],
)


def _count(*path: str) -> Callable[[Content, float], Cells]:
    """A row of name, how many entries something has, and age."""

    def fill(thing: Content, now: float) -> Cells:
        return [name_of(thing), len(nested_map(thing, *path[:-1]).get(path[-1]) or ()), age(thing, now)]

    return fill


def _namespace(thing: Content, now: float) -> Cells:
    return [name_of(thing), nested_map(thing, "status").get("phase") or "", age(thing, now)]


def _event(thing: Content, now: float) -> Cells:
    """Both ways of counting: an old event has a count and two times, a new one a series."""
    series = nested_map(thing, "series")
    first = thing.get("firstTimestamp") or thing.get("deprecatedFirstTimestamp") or thing.get("eventTime")
    last = (
        series.get("lastObservedTime") or thing.get("lastTimestamp") or thing.get("deprecatedLastTimestamp")
    )
    about = nested_map(thing, "involvedObject") or nested_map(thing, "regarding")
    source = nested_map(thing, "source") or nested_map(thing, "deprecatedSource")
    told_by = [source.get("component") or thing.get("reportingComponent") or thing.get("reportingController")]
    told_by.append(source.get("host") or thing.get("reportingInstance"))
    return [
        ago(last or first, now),
        thing.get("type") or "",
        thing.get("reason") or "",
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath") or "",
        ", ".join(str(nested_map) for nested_map in told_by if nested_map),
        str(thing.get("message") or thing.get("note") or "").strip(),
        ago(first, now),
        series.get("count") or thing.get("count") or thing.get("deprecatedCount") or 1,
        name_of(thing),
    ]


def _lease(thing: Content, now: float) -> Cells:
    return [name_of(thing), nested_map(thing, "spec").get("holderIdentity") or "", age(thing, now)]


def _service(thing: Content, now: float) -> Cells:
    spec = nested_map(thing, "spec")
    type = spec.get("type") or "ClusterIP"
    return [
        name_of(thing),
        type,
        spec.get("clusterIP") or NONE,
        _external(thing, type),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(thing, now),
        format_labels(spec.get("selector")),
    ]


def _external(thing: Content, type: str) -> str:
    spec = nested_map(thing, "spec")
    given = list(spec.get("externalIPs") or ())
    if type == "ExternalName":
        return spec.get("externalName") or NONE
    if type == "LoadBalancer":
        entries = nested_map(thing, "status", "loadBalancer").get("ingress") or ()
        given = [entry.get("ip") or entry.get("hostname") for entry in entries] + given
        return ",".join(given) or "<pending>"
    return ",".join(given) or NONE


def _port(port: Content) -> str:
    behind = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{behind}/{port.get('protocol', 'TCP')}"


def _endpoints(thing: Content, now: float) -> Cells:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in thing.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return [name_of(thing), format_list(found), age(thing, now)]


def _secret(thing: Content, now: float) -> Cells:
    return [name_of(thing), thing.get("type") or "Opaque", len(thing.get("data") or ()), age(thing, now)]


def _config_map(thing: Content, now: float) -> Cells:
    return [
        name_of(thing),
        len(thing.get("data") or ()) + len(thing.get("binaryData") or ()),
        age(thing, now),
    ]


def _quota(thing: Content, now: float) -> Cells:
    hard, used = (
        nested_map(thing, "status", "hard") or nested_map(thing, "spec", "hard"),
        nested_map(thing, "status", "used"),
    )
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits.") else requests).append(
            f"{name}: {used.get(name, '0')}/{hard[name]}"
        )
    return [name_of(thing), ", ".join(requests), ", ".join(limits), age(thing, now)]


def _priority_class(thing: Content, now: float) -> Cells:
    return [
        name_of(thing),
        thing.get("value") or 0,
        bool(thing.get("globalDefault")),
        age(thing, now),
        thing.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def _budget(thing: Content, now: float) -> Cells:
    spec = nested_map(thing, "spec")

    def bound(value: Any) -> str:
        return "N/A" if value is None else str(value)

    return [
        name_of(thing),
        bound(spec.get("minAvailable")),
        bound(spec.get("maxUnavailable")),
        nested_map(thing, "status").get("disruptionsAllowed") or 0,
        age(thing, now),
    ]


def _binding(thing: Content, now: float) -> Cells:
    role, subjects = nested_map(thing, "roleRef"), thing.get("subjects") or []
    users, groups, accounts = (
        [subject for subject in subjects if subject.get("kind") == kind]
        for kind in ("User", "Group", "ServiceAccount")
    )
    return [
        name_of(thing),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(thing, now),
        ", ".join(subject.get("name", "") for subject in users),
        ", ".join(subject.get("name", "") for subject in groups),
        ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in accounts),
    ]


def _network_policy(thing: Content, now: float) -> Cells:
    return [name_of(thing), selector_text(nested_map(thing, "spec").get("podSelector")), age(thing, now)]


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
