"""Configurations side by side: every measure of each, held against the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stromboli.simulator.reports.comparison.comparison_notes import comparison_notes
from stromboli.simulator.reports.comparison.configurations import Configuration
from stromboli.simulator.reports.comparison.significance import (
    Difference,
    TestKind,
    holm,
    paired_difference,
    unpaired_difference,
)
from stromboli.simulator.reports.measure_titles import MEASURES, Measure

CONFIDENCE = 0.95


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

    @property
    def is_tested(self) -> bool:
        """Whether there is any p value."""
        return any(entry.corrected_p is not None for row in self.entries.values() for entry in row)


def compare(
    configurations: Sequence[Configuration],
    confidence: float = CONFIDENCE,
    test: TestKind = TestKind.T,
    measures: Sequence[Measure] = MEASURES,
) -> Comparison:
    """Means of every measure, differences from the first configuration, and p values corrected for their number.

    The measures that are always shown are corrected together, so are the others, each kind over all configurations.
    Runs that are the same whatever the seed, such as those of a trace, repeat each other: nothing is tested.
    """
    shown = [m for m in measures if any(configuration.values(m.key).size for configuration in configurations)]
    entries = {
        measure: [
            _entry(configurations[0], other, measure, confidence, test, is_first=other is configurations[0])
            for other in configurations
        ]
        for measure in shown
    }
    is_sampled = any(configuration.varies for configuration in configurations)
    for is_main in (True, False):
        family = [entry for measure, row in entries.items() if measure.main is is_main for entry in row]
        tested = [entry.difference.p if entry.difference and is_sampled else None for entry in family]
        for entry, corrected in zip(family, holm(tested), strict=True):
            entry.corrected_p = corrected
    notes = comparison_notes(configurations, is_sampled)
    return Comparison(tuple(configurations), entries, confidence, test, notes)


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
            "p": difference.p if entry.corrected_p is not None else None,
            "corrected_p": entry.corrected_p,
            "significant": entry.is_significant(confidence),
            "paired": difference.paired,
        }
    return told
