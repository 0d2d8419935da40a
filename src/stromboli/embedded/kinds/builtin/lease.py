"""Leases."""

from stromboli.embedded.kinds.kind import builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import field_printer

KIND = builtin(
    "coordination.k8s.io",
    "leases",
    "Lease",
    strategy=Strategy(
        needs_version=True, printer=field_printer("Name | Holder | Age", "spec", "holderIdentity")
    ),
)
