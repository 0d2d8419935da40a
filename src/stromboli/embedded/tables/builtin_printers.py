"""The printers of built-in kinds; others print a name and an age."""

from __future__ import annotations

from stromboli.embedded.tables import (
    cluster_rows,
    device_rows,
    node_rows,
    pod_rows,
    service_rows,
    storage_rows,
    usage_rows,
    workload_rows,
)
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import TablePrinter, name_of, printer

PRINTERS: dict[str, TablePrinter] = {
    "pods": pod_rows.PODS,
    "nodes": node_rows.NODES,
    **cluster_rows.PRINTERS,
    **service_rows.PRINTERS,
    **storage_rows.PRINTERS,
    **usage_rows.PRINTERS,
    **device_rows.PRINTERS,
    **workload_rows.PRINTERS,
}
_DEFAULT = printer("Name | Age", lambda content, now: [name_of(content), age(content, now)])


def printer_for(resource: str) -> TablePrinter:
    """The printer of a built-in kind, by its id: `pods`, `jobs.batch`."""
    return PRINTERS.get(resource, _DEFAULT)
