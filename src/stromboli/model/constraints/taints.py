"""Taints and tolerations: evaluated once per distinct set of taints, as nodes rarely differ there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.selectors import tolerates
from stromboli.api.types.node import Taint

if TYPE_CHECKING:
    from stromboli.api.types.pod import Toleration
    from stromboli.model.node_columns import Bools, Columns, Ints, Node

Taints = tuple[Taint, ...]
_HARD_EFFECTS = (names.NO_SCHEDULE, names.NO_EXECUTE)
_CORDONED = Taint(key=names.TAINT_UNSCHEDULABLE, effect=names.NO_SCHEDULE)


def tolerable_nodes(columns: Columns, tolerations: Iterable[Toleration]) -> Bools:
    """Nodes without a NoSchedule or NoExecute taint that the pod does not tolerate."""
    tolerations = tuple(tolerations)

    def tolerated(taints: Taints) -> bool:
        return all(tolerates(tolerations, taint) for taint in taints if taint.effect in _HARD_EFFECTS)

    return _per_set(columns, tolerated) > 0


def untolerated_soft_taints(columns: Columns, tolerations: Iterable[Toleration]) -> Ints:
    """How many PreferNoSchedule taints of each node the pod does not tolerate."""
    soft = tuple(
        toleration for toleration in tolerations if toleration.effect in ("", names.PREFER_NO_SCHEDULE)
    )

    def count(taints: Taints) -> int:
        return sum(
            taint.effect == names.PREFER_NO_SCHEDULE and not tolerates(soft, taint) for taint in taints
        )

    return _per_set(columns, count)


def tolerates_cordon(tolerations: Iterable[Toleration]) -> bool:
    """Whether a pod may run on nodes that are marked unschedulable."""
    return tolerates(tolerations, _CORDONED)


def cordoned_nodes(columns: Columns) -> Bools:
    """Nodes that are marked unschedulable."""
    return columns.derived(_cordoned)


def _cordoned(columns: Columns) -> Bools:
    return np.array(
        [bool(node.object and node.object.spec.unschedulable) for node in columns.nodes], dtype=bool
    )


def _per_set(columns: Columns, value: Callable[[Taints], int]) -> Ints:
    """One number per node, from one number per distinct set of taints."""
    codes, sets = columns.derived(_taint_sets)
    column: Ints = np.array([value(taints) for taints in sets], dtype=np.int64)[codes]
    return column


def _taint_sets(columns: Columns) -> tuple[Ints, list[Taints]]:
    known: dict[Taints, int] = {}
    codes = np.fromiter(
        (known.setdefault(_taints(node), len(known)) for node in columns.nodes),
        dtype=np.int64,
        count=len(columns),
    )
    return codes, list(known)


def _taints(node: Node) -> Taints:
    return node.object.spec.taints if node.object else ()
