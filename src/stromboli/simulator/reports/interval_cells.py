"""Time cut into equal cells, and how much of what intervals hold falls into each: the mean over a cell, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stromboli.simulator.reports.record_columns import Floats, Integers, RecordColumns, sums


@dataclass(frozen=True, slots=True)
class Cells:
    """Equal pieces of the time from `begin` to `end`."""

    begin: float
    end: float
    count: int

    @property
    def edges(self) -> Floats:
        return np.linspace(self.begin, self.end, self.count + 1)

    @property
    def middles(self) -> Floats:
        return (self.edges[1:] + self.edges[:-1]) / 2

    def means(
        self, start: Floats, end: Floats, height: Floats, group: Integers | None = None, groups: int = 1
    ) -> Floats:
        """The mean of the sum of all intervals over each cell, by group: an array of groups x cells.

        An interval raises the sum by its height. The integral of the sum up to an edge is what began before it,
        each with its time since, less the same of what ended.
        """
        if self.end <= self.begin:
            return np.zeros((groups, self.count))
        group = np.zeros(start.size, np.int64) if group is None else group
        integral = self._integral(start, height, group, groups) - self._integral(end, height, group, groups)
        means: Floats = np.diff(integral, axis=1) * (self.count / (self.end - self.begin))
        return np.maximum(means, 0.0)

    def _integral(self, moment: Floats, height: Floats, group: Integers, groups: int) -> Floats:
        """Of steps by `height` at each moment, from the first edge up to every edge."""
        width = (self.end - self.begin) / self.count
        place = np.clip((moment - self.begin) / width, 0.0, self.count)
        cell = np.minimum(place.astype(np.int64), self.count)
        flat = group * (self.count + 1) + cell
        size = groups * (self.count + 1)
        steps = sums(flat, height, size).reshape(groups, -1)
        rests = sums(flat, height * (cell + 1 - place), size).reshape(groups, -1)
        full = np.cumsum(steps, axis=1)
        per_cell = np.concatenate([np.zeros((groups, 1)), full[:, :-1]], axis=1) + rests
        later = np.cumsum(per_cell[:, :-1], axis=1) * width
        return np.concatenate([np.zeros((groups, 1)), later], axis=1)


def measured_time(columns: RecordColumns, count: int) -> Cells:
    """The time from the first submission to the last end, in so many cells."""
    return Cells(columns.begin, columns.end, count)
