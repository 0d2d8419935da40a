"""Rows of Services, Endpoints and EndpointSlices."""

from __future__ import annotations

from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import (
    NONE,
    Cells,
    Content,
    format_labels,
    format_list,
    name_of,
    nested_map,
    printer,
)

UNSET = "<unset>"


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


def _addresses(endpoints: Content) -> str:
    return format_list(
        [
            f"{address.get('ip')}:{port.get('port')}"
            for subset in endpoints.get("subsets") or ()
            for port in subset.get("ports") or ()
            for address in subset.get("addresses") or ()
        ]
    )


def _endpoints(endpoints: Content, now: float) -> Cells:
    return [name_of(endpoints), _addresses(endpoints), age(endpoints, now)]


def _slice(slice: Content, now: float) -> Cells:
    addresses = [
        text for endpoint in slice.get("endpoints") or () for text in endpoint.get("addresses") or ()
    ]
    ports = [port["port"] if port.get("port") is not None else "*" for port in slice.get("ports") or ()]
    return [
        name_of(slice),
        slice.get("addressType") or NONE,
        format_list(ports) if ports else UNSET,
        format_list(addresses) if addresses else UNSET,
        age(slice, now),
    ]


PRINTERS = {
    "services": printer("Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector+", _service),
    "endpoints": printer("Name | Endpoints | Age", _endpoints),
    "endpointslices.discovery.k8s.io": printer("Name | AddressType | Ports | Endpoints | Age", _slice),
}
