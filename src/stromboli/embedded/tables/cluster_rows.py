"""Rows of what a cluster is made of: namespaces, events, leases, services, settings, budgets, priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stromboli.embedded.tables.age_text import age, ago
from stromboli.embedded.tables.layout import (
    NONE,
    Cells,
    Thing,
    layout,
    listed,
    name_of,
    pairs,
    part,
    selector_text,
)

plain = layout("Name | Age", lambda thing, now: [name_of(thing), age(thing, now)])
dated = layout(
    "Name | Created At",
    lambda thing, _: [name_of(thing), part(thing, "metadata").get("creationTimestamp") or ""],
)


def _count(*path: str) -> Callable[[Thing, float], Cells]:
    """A row of name, how many entries something has, and age."""

    def fill(thing: Thing, now: float) -> Cells:
        return [name_of(thing), len(part(thing, *path[:-1]).get(path[-1]) or ()), age(thing, now)]

    return fill


def _namespace(thing: Thing, now: float) -> Cells:
    return [name_of(thing), part(thing, "status").get("phase") or "", age(thing, now)]


def _event(thing: Thing, now: float) -> Cells:
    """Both ways of counting: an old event has a count and two times, a new one a series."""
    series = part(thing, "series")
    first = thing.get("firstTimestamp") or thing.get("deprecatedFirstTimestamp") or thing.get("eventTime")
    last = (
        series.get("lastObservedTime") or thing.get("lastTimestamp") or thing.get("deprecatedLastTimestamp")
    )
    about = part(thing, "involvedObject") or part(thing, "regarding")
    source = part(thing, "source") or part(thing, "deprecatedSource")
    told_by = [source.get("component") or thing.get("reportingComponent") or thing.get("reportingController")]
    told_by.append(source.get("host") or thing.get("reportingInstance"))
    return [
        ago(last or first, now),
        thing.get("type") or "",
        thing.get("reason") or "",
        f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}",
        about.get("fieldPath") or "",
        ", ".join(str(part) for part in told_by if part),
        str(thing.get("message") or thing.get("note") or "").strip(),
        ago(first, now),
        series.get("count") or thing.get("count") or thing.get("deprecatedCount") or 1,
        name_of(thing),
    ]


def _lease(thing: Thing, now: float) -> Cells:
    return [name_of(thing), part(thing, "spec").get("holderIdentity") or "", age(thing, now)]


def _service(thing: Thing, now: float) -> Cells:
    spec = part(thing, "spec")
    type = spec.get("type") or "ClusterIP"
    return [
        name_of(thing),
        type,
        spec.get("clusterIP") or NONE,
        _external(thing, type),
        ",".join(map(_port, spec.get("ports") or ())) or NONE,
        age(thing, now),
        pairs(spec.get("selector")),
    ]


def _external(thing: Thing, type: str) -> str:
    spec = part(thing, "spec")
    given = list(spec.get("externalIPs") or ())
    if type == "ExternalName":
        return spec.get("externalName") or NONE
    if type == "LoadBalancer":
        entries = part(thing, "status", "loadBalancer").get("ingress") or ()
        given = [entry.get("ip") or entry.get("hostname") for entry in entries] + given
        return ",".join(given) or "<pending>"
    return ",".join(given) or NONE


def _port(port: Thing) -> str:
    behind = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{behind}/{port.get('protocol', 'TCP')}"


def _endpoints(thing: Thing, now: float) -> Cells:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in thing.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return [name_of(thing), listed(found), age(thing, now)]


def _secret(thing: Thing, now: float) -> Cells:
    return [name_of(thing), thing.get("type") or "Opaque", len(thing.get("data") or ()), age(thing, now)]


def _config_map(thing: Thing, now: float) -> Cells:
    return [
        name_of(thing),
        len(thing.get("data") or ()) + len(thing.get("binaryData") or ()),
        age(thing, now),
    ]


def _quota(thing: Thing, now: float) -> Cells:
    hard, used = part(thing, "status", "hard") or part(thing, "spec", "hard"), part(thing, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits.") else requests).append(
            f"{name}: {used.get(name, '0')}/{hard[name]}"
        )
    return [name_of(thing), ", ".join(requests), ", ".join(limits), age(thing, now)]


def _priority_class(thing: Thing, now: float) -> Cells:
    return [
        name_of(thing),
        thing.get("value") or 0,
        bool(thing.get("globalDefault")),
        age(thing, now),
        thing.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def _budget(thing: Thing, now: float) -> Cells:
    spec = part(thing, "spec")

    def bound(value: Any) -> str:
        return "N/A" if value is None else str(value)

    return [
        name_of(thing),
        bound(spec.get("minAvailable")),
        bound(spec.get("maxUnavailable")),
        part(thing, "status").get("disruptionsAllowed") or 0,
        age(thing, now),
    ]


def _binding(thing: Thing, now: float) -> Cells:
    role, subjects = part(thing, "roleRef"), thing.get("subjects") or []
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


def _network_policy(thing: Thing, now: float) -> Cells:
    return [name_of(thing), selector_text(part(thing, "spec").get("podSelector")), age(thing, now)]


NAMESPACES = layout("Name | Status | Age", _namespace)
EVENTS = layout(
    "Last Seen | Type | Reason | Object | Subobject+ | Source+ | Message | First Seen+ | Count#+ | Name+",
    _event,
)
LEASES = layout("Name | Holder | Age", _lease)
SERVICES = layout("Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector+", _service)
ENDPOINTS = layout("Name | Endpoints | Age", _endpoints)
SECRETS = layout("Name | Type | Data# | Age", _secret)
CONFIG_MAPS = layout("Name | Data# | Age", _config_map)
SERVICE_ACCOUNTS = layout("Name | Secrets# | Age", _count("secrets"))
WEBHOOKS = layout("Name | Webhooks# | Age", _count("webhooks"))
CSI_NODES = layout("Name | Drivers# | Age", _count("spec", "drivers"))
QUOTAS = layout("Name | Request | Limit | Age", _quota)
PRIORITY_CLASSES = layout("Name | Value# | Global-Default | Age | PreemptionPolicy", _priority_class)
BUDGETS = layout("Name | Min Available | Max Unavailable | Allowed Disruptions# | Age", _budget)
BINDINGS = layout("Name | Role | Age | Users+ | Groups+ | ServiceAccounts+", _binding)
NETWORK_POLICIES = layout("Name | Pod-Selector | Age", _network_policy)
