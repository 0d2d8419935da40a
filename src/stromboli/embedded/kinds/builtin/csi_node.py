"""CSINodes."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.schema_problems import Problem
from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import CLUSTER, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import count_printer


class CSINodeStrategy(Strategy):
    needs_version = True
    printer = count_printer("Name | Drivers# | Age", "spec", "drivers")

    def problems(self, content: Content) -> Iterable[Problem]:
        return storage_validation.csi_node_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return storage_validation.csi_node_update_problems(old, new)


KIND = builtin("storage.k8s.io", "csinodes", "CSINode", strategy=CSINodeStrategy(), **CLUSTER)
