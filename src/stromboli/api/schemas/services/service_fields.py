"""Fields of a Service that a server sets: defaults, families of addresses, and what an update leaves out."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from stromboli.api.schemas.services.service_types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    Content,
    has_cluster_ip,
    has_health_port,
    has_node_ports,
    is_external,
    node_ports,
    spec_of,
    type_of,
    wants_node_ports,
)

IPV4, IPV6 = "IPv4", "IPv6"
SINGLE_STACK, REQUIRE_DUAL_STACK = "SingleStack", "RequireDualStack"
AFFINITY_SECONDS = 3 * 3600
"""For which a client gets to the same pod, unless a Service says otherwise."""


def set_service_defaults(service: Content) -> None:
    """Set what follows from the fields that are given."""
    spec = spec_of(service)
    if not spec:
        return
    for port in spec.get("ports") or ():
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port["port"]
    if spec.get("sessionAffinity") == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    else:
        spec.pop("sessionAffinityConfig", None)
    if is_external(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if type_of(spec) in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if type_of(spec) == LOAD_BALANCER:
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def complete_families(service: Content, old: Content | None = None) -> None:
    """Set the address list, the families and their policy, as far as they follow from what is given."""
    spec, before = spec_of(service), spec_of(old or {})
    if old is None and spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if not spec or not has_cluster_ip(spec):
        return
    undirected = spec.get("clusterIP") == NONE and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        default = REQUIRE_DUAL_STACK if undirected else SINGLE_STACK
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or default
    families = list(spec.get("ipFamilies") or ())
    if not families:
        given = [family_of(address) for address in spec.get("clusterIPs") or () if address != NONE]
        families = [family for family in given if family] or [IPV4]
    if undirected and len(families) == 1 and spec["ipFamilyPolicy"] != SINGLE_STACK:
        families.append(IPV6 if families == [IPV4] else IPV4)
    spec["ipFamilies"] = families


def family_of(address: Any) -> str:
    """IPv4 or IPv6; empty for what is no address."""
    try:
        return IPV4 if ip_address(str(address)).version == 4 else IPV6
    except ValueError:
        return ""


def prepare_service_update(service: Content, old: Content) -> None:
    """Restore allocated values that an update leaves out, and drop those that its type has no use for."""
    spec, before = spec_of(service), spec_of(old)
    if not spec:
        return
    _drop_unused(service, spec, before)
    _restore_addresses(spec, before)
    _restore_ports(spec, before)
    complete_families(service, old)


def _drop_unused(service: Content, spec: Content, before: Content) -> None:
    """Fields that the server may have set for the former type, unless the update changes them."""

    def drop(*fields: str) -> None:
        for field in fields:
            if spec.get(field) == before.get(field):
                spec.pop(field, None)

    if has_cluster_ip(before) and not has_cluster_ip(spec):
        if spec.get("clusterIP") == before.get("clusterIP"):
            drop("clusterIPs", "clusterIP")
        drop("ipFamilies", "ipFamilyPolicy")
        spec.pop("internalTrafficPolicy", None)
    if has_node_ports(before) and not has_node_ports(spec) and node_ports(spec) <= node_ports(before):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if has_health_port(before) and not has_health_port(spec):
        drop("healthCheckNodePort")
    if type_of(before) == LOAD_BALANCER != type_of(spec):
        drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
        if (service.get("status") or {}).get("loadBalancer"):
            service["status"] = {**service["status"], "loadBalancer": {}}
    if is_external(before) and not is_external(spec):
        drop("externalTrafficPolicy")


def _restore_addresses(spec: Content, before: Content) -> None:
    if EXTERNAL_NAME in (type_of(spec), type_of(before)):
        return
    same = spec.get("clusterIPs") == before.get("clusterIPs")
    if not spec.get("clusterIP") and before.get("clusterIP"):
        spec["clusterIP"] = before["clusterIP"]
    if not spec.get("clusterIPs") and before.get("clusterIPs"):
        spec["clusterIPs"] = list(before["clusterIPs"])
    elif same and spec.get("clusterIP") != before.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _restore_ports(spec: Content, before: Content) -> None:
    """Ports keep the ports of nodes that those of the same name had."""
    if wants_node_ports(spec) and wants_node_ports(before):
        used = node_ports(spec) & node_ports(before)
        known = {port.get("name", ""): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            former = known.get(port.get("name", ""))
            if not port.get("nodePort") and former and former not in used:
                port["nodePort"] = former
    port = before.get("healthCheckNodePort") if has_health_port(before) else None
    if port and has_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = port
