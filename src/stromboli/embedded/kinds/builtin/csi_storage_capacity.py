"""CSIStorageCapacities."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.schema_problems import Problem
from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import CREATION_TIMES


class CSIStorageCapacityStrategy(Strategy):
    needs_version = True
    printer = CREATION_TIMES

    def problems(self, content: Content) -> Iterable[Problem]:
        return storage_validation.capacity_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return storage_validation.capacity_update_problems(old, new)


KIND = builtin(
    "storage.k8s.io", "csistoragecapacities", "CSIStorageCapacity", strategy=CSIStorageCapacityStrategy()
)
