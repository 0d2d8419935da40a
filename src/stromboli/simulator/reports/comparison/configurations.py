"""What is compared: the runs of a setting with several seeds each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from stromboli.simulator.reports.measure_titles import MEASURES
from stromboli.simulator.reports.record_columns import Floats


@dataclass(frozen=True, slots=True)
class Run:
    """What a comparison needs of a run."""

    seed: int
    measures: Mapping[str, Any]
    """Its summary."""
    waits: Floats = field(default_factory=lambda: np.zeros(0))
    """Of its jobs at equal steps from the shortest to the longest."""
    slowdowns: Floats = field(default_factory=lambda: np.zeros(0))
    partial: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Configuration:
    """Runs of one setting that differ by their seeds."""

    name: str
    runs: tuple[Run, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    mixed: tuple[str, ...] = ()
    """Settings that its runs do not share."""

    @property
    def seeds(self) -> set[int]:
        """Of its runs; none where a seed occurs twice, as pairs would be arbitrary then."""
        seeds = {run.seed for run in self.runs}
        return seeds if len(seeds) == len(self.runs) else set()

    @property
    def varies(self) -> bool:
        """Whether its runs differ in any measure."""
        columns = (self.values(measure.key) for measure in MEASURES)
        return any(column.size and np.ptp(column) > 0 for column in columns)

    def values(self, measure: str) -> Floats:
        """Of the runs that have it."""
        return np.array(
            [value for run in self.runs if (value := _number(run, measure)) is not None], np.float64
        )

    def by_seed(self, measure: str) -> dict[int, float]:
        """The same by seed, where seeds tell runs apart."""
        if not self.seeds:
            return {}
        return {run.seed: value for run in self.runs if (value := _number(run, measure)) is not None}


def _number(run: Run, measure: str) -> float | None:
    value = run.measures.get(measure)
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
