"""What came of a sweep: the measures of each configuration as means over its seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from stromboli.simulator.sweeps.results_folder import ResultsFolder
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

ReadSummary = Callable[[Path], dict[str, Any]]
"""The summary of a record, for runs that somebody ran by hand."""


class ConfigurationResult(Struct, frozen=True):
    """A configuration: its runs that ended well, and the means of what was measured."""

    configuration: dict[str, str]
    planned: int
    records: list[str]
    mean: dict[str, float]
    deviation: dict[str, float]
    """The standard deviation over the runs, for measures of two runs or more."""


def configuration_results(
    plan: SweepPlan, folder: ResultsFolder, read_summary: ReadSummary
) -> list[ConfigurationResult]:
    """A result for each configuration, in the order of the grid."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for run in plan.runs:
        groups.setdefault(tuple(run.configuration.items()), []).append(run.id)
    return [_result(dict(key), ids, folder, read_summary) for key, ids in groups.items()]


def _result(
    configuration: dict[str, str], ids: list[str], folder: ResultsFolder, read_summary: ReadSummary
) -> ConfigurationResult:
    done = [run_id for run_id in ids if folder.record(run_id).exists()]
    summaries = [folder.summary(run_id) or read_summary(folder.record(run_id)) for run_id in done]
    values = _numbers(summaries)
    return ConfigurationResult(
        configuration,
        len(ids),
        [str(folder.record(run_id)) for run_id in done],
        {name: math.fsum(numbers) / len(numbers) for name, numbers in values.items()},
        {name: _deviation(numbers) for name, numbers in values.items() if len(numbers) > 1},
    )


def _numbers(summaries: list[dict[str, Any]]) -> Mapping[str, list[float]]:
    """By measure, its value in each run that has one; what is no number is left out."""
    values: dict[str, list[float]] = {}
    for summary in summaries:
        for name, value in summary.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                values.setdefault(name, []).append(float(value))
    return values


def _deviation(numbers: list[float]) -> float:
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1))
