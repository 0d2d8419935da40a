"""Configurations side by side: the runs of a setting with several seeds each, held against the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from stromboli.simulator.reports.comparison.significance import (
    Difference,
    TestKind,
    holm,
    paired_difference,
    unpaired_difference,
)
from stromboli.simulator.reports.measure_titles import MEASURES, Measure
from stromboli.simulator.reports.record_columns import Floats

CONFIDENCE = 0.95


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


@dataclass(frozen=True, slots=True)
class Configuration:
    """Runs of one setting that differ by their seeds."""

    name: str
    runs: tuple[Run, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def values(self, measure: str) -> Floats:
        """Of the runs that have it."""
        return np.array(
            [value for run in self.runs if (value := _number(run, measure)) is not None], np.float64
        )

    def by_seed(self, measure: str) -> dict[int, float]:
        """The same by seed; empty where a seed occurs twice, as pairs would be arbitrary then."""
        if len({run.seed for run in self.runs}) < len(self.runs):
            return {}
        return {run.seed: value for run in self.runs if (value := _number(run, measure)) is not None}


def _number(run: Run, measure: str) -> float | None:
    value = run.measures.get(measure)
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


@dataclass(slots=True)
class Entry:
    """A measure of a configuration, and how it differs from the first."""

    mean: float | None
    deviation: float | None
    runs: int
    difference: Difference | None = None
    corrected_p: float | None = None

    def is_significant(self, confidence: float) -> bool:
        return self.corrected_p is not None and self.corrected_p < 1 - confidence


@dataclass(frozen=True, slots=True)
class Comparison:
    """All measures of all configurations, in the order of both."""

    configurations: tuple[Configuration, ...]
    entries: dict[Measure, list[Entry]]
    confidence: float
    test: TestKind
    notes: list[str]


def compare(
    configurations: Sequence[Configuration],
    confidence: float = CONFIDENCE,
    test: TestKind = TestKind.T,
    measures: Sequence[Measure] = MEASURES,
) -> Comparison:
    """Means of every measure, differences from the first configuration, and p values corrected for their number.

    The measures that are always shown are corrected together, so are the others, each kind over all configurations.
    """
    shown = [m for m in measures if any(configuration.values(m.key).size for configuration in configurations)]
    entries = {
        measure: [
            _entry(configurations[0], other, measure, confidence, test, is_first=other is configurations[0])
            for other in configurations
        ]
        for measure in shown
    }
    for is_main in (True, False):
        family = [entry for measure, row in entries.items() if measure.main is is_main for entry in row]
        tested = [entry.difference.p if entry.difference else None for entry in family]
        for entry, corrected in zip(family, holm(tested), strict=True):
            entry.corrected_p = corrected
    return Comparison(tuple(configurations), entries, confidence, test, _notes(configurations))


def _entry(
    base: Configuration,
    other: Configuration,
    measure: Measure,
    confidence: float,
    test: TestKind,
    is_first: bool,
) -> Entry:
    values = other.values(measure.key)
    entry = Entry(
        float(values.mean()) if values.size else None,
        float(values.std(ddof=1)) if values.size > 1 else None,
        int(values.size),
    )
    if is_first or not values.size or not base.values(measure.key).size:
        return entry
    first, second = base.by_seed(measure.key), other.by_seed(measure.key)
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) > 1 or (len(seeds) == 1 and len(first) == len(second) == 1):
        pairs = np.array([second[seed] - first[seed] for seed in seeds])
        entry.difference = _tested(paired_difference(pairs, confidence, test), measure)
    else:
        difference = unpaired_difference(base.values(measure.key), values, confidence, test)
        entry.difference = _tested(difference, measure)
    return entry


def _tested(difference: Difference, measure: Measure) -> Difference:
    """A measure that is neither good nor bad, such as the number of jobs, is shown and not tested."""
    return difference if measure.better else difference._replace(p=None)


def _notes(configurations: Sequence[Configuration]) -> list[str]:
    notes = []
    if all(len(configuration.runs) < 2 for configuration in configurations):
        notes.append(
            "One run each: nothing can be tested. Give runs with several seeds of each configuration."
        )
    else:
        alone = [configuration.name for configuration in configurations if len(configuration.runs) < 2]
        if alone:
            notes.append(f"One run only, so it cannot be tested: {', '.join(alone)}.")
    workloads = {str(configuration.settings.get("workload")) for configuration in configurations}
    if len(workloads) > 1:
        notes.append(f"The runs are of different workloads: {', '.join(sorted(workloads))}.")
    for configuration in configurations:
        if interrupted := sum(run.partial for run in configuration.runs):
            notes.append(
                f"{configuration.name}: {interrupted} of {len(configuration.runs)} runs were interrupted."
            )
    return notes


def document(comparison: Comparison) -> dict[str, Any]:
    """A comparison as plain data."""
    names = [configuration.name for configuration in comparison.configurations]
    return {
        "base": names[0],
        "test": comparison.test.value,
        "confidence": comparison.confidence,
        "configurations": [
            {
                "name": configuration.name,
                "runs": len(configuration.runs),
                "seeds": [run.seed for run in configuration.runs],
                "settings": dict(configuration.settings),
            }
            for configuration in comparison.configurations
        ],
        "measures": {
            measure.key: {
                name: _entry_document(entry, comparison.confidence)
                for name, entry in zip(names, row, strict=True)
            }
            for measure, row in comparison.entries.items()
        },
        "notes": comparison.notes,
    }


def _entry_document(entry: Entry, confidence: float) -> dict[str, Any]:
    told: dict[str, Any] = {"mean": entry.mean, "deviation": entry.deviation, "runs": entry.runs}
    if (difference := entry.difference) is not None:
        told |= {
            "difference": difference.mean,
            "low": difference.low,
            "high": difference.high,
            "p": difference.p,
            "corrected_p": entry.corrected_p,
            "significant": entry.is_significant(confidence),
            "paired": difference.paired,
        }
    return told
