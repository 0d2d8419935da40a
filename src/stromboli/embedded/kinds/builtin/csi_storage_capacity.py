"""CSIStorageCapacities."""

from __future__ import annotations

from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import CREATION_TIMES

KIND = builtin(
    "storage.k8s.io",
    "csistoragecapacities",
    "CSIStorageCapacity",
    strategy=Strategy(
        needs_version=True,
        printer=CREATION_TIMES,
        problems=storage_validation.capacity_problems,
        update_problems=storage_validation.capacity_update_problems,
    ),
)
