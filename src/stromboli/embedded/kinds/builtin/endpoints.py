"""Endpoints."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import cell_printer, format_list


def _addresses(endpoints: Content) -> Any:
    return format_list(
        [
            f"{address.get('ip')}:{port.get('port')}"
            for subset in endpoints.get("subsets") or ()
            for port in subset.get("ports") or ()
            for address in subset.get("addresses") or ()
        ]
    )


KIND = builtin(
    "",
    "endpoints",
    "Endpoints",
    "ep",
    strategy=Strategy(printer=cell_printer("Name | Endpoints | Age", _addresses)),
)
