"""What `kubectl get` prints: columns per kind, as a Kubernetes API server prints them. Pure functions of objects.

`printer_for` finds the printer of a built-in kind, `crd_printer` makes one for a custom kind, `table` prints with it.
"""

from stromboli.embedded.tables.builtin_printers import printer_for
from stromboli.embedded.tables.crd_printers import crd_printer
from stromboli.embedded.tables.table import INCLUDE, partial_list, partial_metadata, table
from stromboli.embedded.tables.table_printer import TablePrinter

__all__ = [
    "INCLUDE",
    "TablePrinter",
    "crd_printer",
    "partial_list",
    "partial_metadata",
    "printer_for",
    "table",
]
