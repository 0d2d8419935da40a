"""The nodes of this scheduler, where several schedulers share a cluster (spec 05 11.3)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.model.node_columns import Bools, Columns


class Shard:
    """Nodes by name: the only ones to be used (`strict`), or those to be preferred."""

    def __init__(self, nodes: Collection[str], strict: bool):
        self.nodes = frozenset(nodes)
        self.strict = strict
        self._inside: tuple[int, Bools] | None = None

    def inside(self, columns: Columns) -> Bools:
        """Which of all nodes are in it; cached until the columns are laid out again."""
        if self._inside is None or self._inside[0] != columns.layout:
            members = (node.name in self.nodes for node in columns.nodes)
            self._inside = (columns.layout, np.fromiter(members, dtype=bool, count=len(columns)))
        return self._inside[1]
