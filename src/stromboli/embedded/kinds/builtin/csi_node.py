"""CSINodes."""

from __future__ import annotations

from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import CLUSTER, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import count_printer

KIND = builtin(
    "storage.k8s.io",
    "csinodes",
    "CSINode",
    strategy=Strategy(
        needs_version=True,
        printer=count_printer("Name | Drivers# | Age", "spec", "drivers"),
        problems=storage_validation.csi_node_problems,
        update_problems=storage_validation.csi_node_update_problems,
    ),
    **CLUSTER,
)
