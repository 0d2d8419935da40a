"""What came of a sweep: the measures of each configuration as means over its seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from stromboli.simulator.sweeps.grid import SEED
from stromboli.simulator.sweeps.results_folder import PLAN, ResultsFolder
from stromboli.simulator.sweeps.sweep_plan import SweepPlan, read_plan


class ConfigurationResult(Struct, frozen=True):
    """A configuration: its runs that ended well, and the means of what was measured."""

    configuration: dict[str, str]
    planned: int
    records: list[str]
    mean: dict[str, float]
    deviation: dict[str, float]
    """The standard deviation over the runs, for measures of two runs or more."""
    alike: bool = False
    """Whether several runs came to the same in all measures: their seeds change nothing."""


def configuration_results(plan: SweepPlan, folder: ResultsFolder) -> list[ConfigurationResult]:
    """A result for each configuration, in the order of the grid."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for run in plan.runs:
        groups.setdefault(tuple(run.configuration.items()), []).append(run.id)
    return [_result(dict(key), ids, folder) for key, ids in groups.items()]


def sweep_records(results: Path) -> Iterator[tuple[str, Path]]:
    """The records of a sweep with the names of their configurations, in the order of the grid."""
    folder, plan = ResultsFolder(results), read_plan(results / PLAN)
    axes = differing_axes([run.configuration for run in plan.runs])
    for run in plan.runs:
        if folder.record(run.id).exists():
            labels = {axis: run.configuration.get(axis, "") for axis in axes}
            several = " ".join(f"{axis}={label}" for axis, label in labels.items())
            yield (
                ("".join(labels.values()) if len(axes) == 1 else several or plan.name),
                folder.record(run.id),
            )


def differing_axes(configurations: Sequence[Mapping[str, str]]) -> list[str]:
    """The axes on which configurations differ."""
    return [
        axis
        for axis in configurations[0]
        if len({configuration.get(axis) for configuration in configurations}) > 1
    ]


def _result(configuration: dict[str, str], ids: list[str], folder: ResultsFolder) -> ConfigurationResult:
    summaries = {run_id: summary for run_id in ids if (summary := folder.summary(run_id)) is not None}
    values = _numbers(list(summaries.values()))
    return ConfigurationResult(
        configuration,
        len(ids),
        [str(folder.record(run_id)) for run_id in summaries],
        {name: math.fsum(numbers) / len(numbers) for name, numbers in values.items()},
        {name: _deviation(numbers) for name, numbers in values.items() if len(numbers) > 1},
        len(summaries) > 1 and all(min(numbers) == max(numbers) for numbers in values.values()),
    )


def _numbers(summaries: list[dict[str, Any]]) -> Mapping[str, list[float]]:
    """By measure, its value in each run that has one; the seed and what is no number are left out."""
    values: dict[str, list[float]] = {}
    for summary in summaries:
        for name, value in summary.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if name != SEED and is_number and math.isfinite(value):
                values.setdefault(name, []).append(float(value))
    return values


def _deviation(numbers: list[float]) -> float:
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1))
