"""EndpointSlices."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import NONE, UNSET, Cells, format_list, name_of, printer


def _row(slice: Content, now: float) -> Cells:
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


KIND = builtin(
    "discovery.k8s.io",
    "endpointslices",
    "EndpointSlice",
    strategy=Strategy(printer=printer("Name | AddressType | Ports | Endpoints | Age", _row)),
)
