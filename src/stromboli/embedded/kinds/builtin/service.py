"""Services."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from stromboli.api.resources.quota_charges import Charges
from stromboli.api.schemas.schema_problems import Problem
from stromboli.api.schemas.services.service_fields import (
    complete_families,
    prepare_service_update,
    set_service_defaults,
)
from stromboli.api.schemas.services.service_types import (
    LOAD_BALANCER,
    NODE_PORT,
    has_node_ports,
    spec_of,
    type_of,
    wants_node_ports,
)
from stromboli.api.schemas.services.service_validation import service_problems, service_update_problems
from stromboli.embedded.kinds.kind import IN_ALL, STATUS, Content, builtin, fields
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    format_labels,
    name_of,
    nested_map,
    printer,
)


def _row(service: Content, now: float) -> Cells:
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


class ServiceStrategy(Strategy):
    allocates_addresses = completes_stored = counted_by_name = charged_by_content = True
    printer = printer("Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector+", _row)

    def set_defaults(self, content: Content) -> None:
        set_service_defaults(content)

    def complete(self, content: Content) -> None:
        complete_families(content)

    def problems(self, content: Content) -> Iterable[Problem]:
        return service_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return service_update_problems(old, new)

    def initialise(self, content: Content) -> None:
        content["status"] = {"loadBalancer": {}}

    def restore(self, content: Content, old: Content, subresource: str) -> None:
        if subresource == "":
            prepare_service_update(content, old)

    def creation_warnings(self, content: Content) -> tuple[str, ...]:
        """Warn that no proxy serves the addresses and ports."""
        if type_of(spec_of(content)) not in (NODE_PORT, LOAD_BALANCER):
            return ()
        name = str(content["metadata"].get("name", ""))
        return (
            f"nothing listens at the ports of nodes here, and no load balancer is made: `kubectl port-forward"
            f" service/{name} PORT` reaches a pod on a real node",
        )

    def charges(self, content: Content) -> Charges:
        """By what a Service asks for: its ports may not be allocated yet."""
        spec = spec_of(content)
        ports = [port for port in spec.get("ports") or () if wants_node_ports(spec) or port.get("nodePort")]
        return {
            "services.nodeports": Fraction(len(ports) if has_node_ports(spec) else 0),
            "services.loadbalancers": Fraction(type_of(spec) == LOAD_BALANCER),
        }


KIND = builtin(
    "",
    "services",
    "Service",
    "svc",
    STATUS,
    selectable_fields=fields("spec.clusterIP", "spec.type"),
    strategy=ServiceStrategy(),
    **IN_ALL,
)
