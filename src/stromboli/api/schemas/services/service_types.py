"""What the type of a Service says of its other fields: who has an address, ports of nodes, a check of health."""

from __future__ import annotations

from typing import Any

Content = dict[str, Any]

NONE = "None"
"""The address of a headless Service."""
CLUSTER_IP, NODE_PORT, LOAD_BALANCER = "ClusterIP", "NodePort", "LoadBalancer"
EXTERNAL_NAME = "ExternalName"


def spec_of(service: Content) -> Content:
    spec: Content = service.get("spec") or {}
    return spec


def type_of(spec: Content) -> str:
    return str(spec.get("type") or CLUSTER_IP)


def has_cluster_ip(spec: Content) -> bool:
    """Whether a Service has an address, if only `None`."""
    return type_of(spec) != EXTERNAL_NAME


def is_headless(spec: Content) -> bool:
    return list(spec.get("clusterIPs") or ()) == [NONE]


def has_node_ports(spec: Content) -> bool:
    return type_of(spec) in (NODE_PORT, LOAD_BALANCER)


def wants_node_ports(spec: Content) -> bool:
    """Whether ports of nodes are allocated that nobody asked for."""
    if type_of(spec) == LOAD_BALANCER:
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return type_of(spec) == NODE_PORT


def is_external(spec: Content) -> bool:
    """Whether a Service can be reached from outside of the cluster."""
    return has_node_ports(spec) or (type_of(spec) == CLUSTER_IP and bool(spec.get("externalIPs")))


def has_health_port(spec: Content) -> bool:
    return type_of(spec) == LOAD_BALANCER and spec.get("externalTrafficPolicy") == "Local"


def node_ports(spec: Content) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
