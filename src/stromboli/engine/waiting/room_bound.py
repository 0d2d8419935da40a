"""How many tasks of a shape nodes could take, at most: by what each will have free, kept up while nodes change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.engine.session import Session
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


class ShapeSlots:
    """How many tasks of a shape fit on each node once what is leaving has left; nodes that changed are counted anew."""

    def __init__(self, shape: Shape):
        self._shape = shape
        self._layout = self._clock = -1
        self.by_row: Ints = np.zeros(0, dtype=np.int64)
        self.total = 0

    def update(self, columns: Columns) -> None:
        if columns.layout != self._layout:
            self.by_row = slots(self._shape, columns.future_idle)
            self.total = int(self.by_row.sum())
        elif columns.clock != self._clock:
            rows = np.flatnonzero(columns.version > self._clock)
            free = columns.idle[:, rows] + columns.releasing[:, rows] - columns.pipelined[:, rows]
            counted = slots(self._shape, free)
            self.total += int(counted.sum() - self.by_row[rows].sum())
            self.by_row[rows] = counted
        self._layout, self._clock = columns.layout, columns.clock


class RoomBound:
    """Slots by shape, for the shapes of tasks that wait."""

    def __init__(self) -> None:
        self._by_shape: dict[Shape, ShapeSlots] = {}

    def __len__(self) -> int:
        return len(self._by_shape)

    def may_take(self, session: Session, task: Task, needed: int, alike: bool) -> bool:
        """Whether nodes could take so many tasks of a shape: if not, whatever is tried must fail.

        For tasks that are `alike` in all that filters read, only the nodes count that such a task may use.
        """
        known = self._by_shape.get(task.shape)
        if known is None:
            known = self._by_shape[task.shape] = ShapeSlots(task.shape)
        known.update(session.cluster.columns)
        if known.total < needed or not alike:
            return known.total >= needed
        return int(known.by_row[session.usable(task)].sum()) >= needed

    def keep(self, shapes: Iterable[Shape]) -> None:
        """Forget all other shapes."""
        self._by_shape = {shape: self._by_shape[shape] for shape in set(shapes) if shape in self._by_shape}
