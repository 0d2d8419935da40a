"""A grid: options that all runs have, axes whose values are combined, and combinations that are left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path

from stromboli.api.errors import InputProblem, Unreadable, quoted
from stromboli.simulator.sweeps.input_files import InputFiles
from stromboli.simulator.sweeps.planned_run import Argument, PlannedRun, planned_run
from stromboli.simulator.sweeps.simulate_vocabulary import PathUse, SimulateOption, Vocabulary

SEED = "seed"
"""The axis over which means are taken."""
MOST_RUNS = 10_000
"""Combinations of a grid."""

Settings = Mapping[str, tuple[str, ...]]
"""By option: its value, several where it is repeatable, none where it is not given; switches: `true` or `false`."""


class BadGrid(Exception):
    """A grid that cannot be used: `errors` are sentences that name field, value and remedy."""

    def __init__(self, problems: list[InputProblem]) -> None:
        self.errors = [str(problem) for problem in problems]
        super().__init__("\n".join(self.errors))


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of the grid: by label, the options that the label stands for."""

    name: str
    variants: Mapping[str, Settings]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Combinations that are left out: those that have one of these labels on each of these axes."""

    labels: Mapping[str, frozenset[str]]

    def matches(self, point: Mapping[str, str]) -> bool:
        return all(point[axis] in labels for axis, labels in self.labels.items())


@dataclass(frozen=True, slots=True)
class Grid:
    """What a grid file says."""

    name: str
    folder: Path
    """Relative to which its files are named."""
    source: str
    options: Settings
    axes: tuple[Axis, ...]
    exclusions: tuple[Exclusion, ...]

    @property
    def combinations(self) -> int:
        """Of all labels, before any are left out."""
        return prod(len(axis.variants) for axis in self.axes)

    def points(self) -> Iterator[dict[str, str]]:
        """By axis its label, for all combinations that are not left out."""
        names = [axis.name for axis in self.axes]
        for labels in product(*(axis.variants for axis in self.axes)):
            point = dict(zip(names, labels, strict=True))
            if not any(exclusion.matches(point) for exclusion in self.exclusions):
                yield point

    def settings_at(self, point: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """The options of a combination; axes go before what all runs have."""
        settings = dict(self.options)
        for axis in self.axes:
            settings |= axis.variants[point[axis.name]]
        return {name: values for name, values in settings.items() if values}


def expand(grid: Grid, vocabulary: Vocabulary, files: InputFiles) -> list[PlannedRun]:
    """The run of every combination; combinations that come to the same settings have the same id."""
    if grid.combinations > MOST_RUNS:
        sizes = " x ".join(f"{axis.name} {len(axis.variants)}" for axis in grid.axes)
        raise _bad(
            grid,
            "axes",
            f"{grid.combinations:,} combinations ({sizes}), and a sweep has {MOST_RUNS:,} at most:"
            " divide it into several grids",
        )
    planner = _RunPlanner(grid, vocabulary, files)
    runs = [planner.run(point) for point in grid.points()]
    if planner.unreadable:
        raise BadGrid(list(planner.unreadable))
    if not runs:
        raise _bad(grid, "exclude", "leaves out every combination; take one of its entries away")
    return runs


class _RunPlanner:
    """Makes the runs of combinations, and collects the inputs that cannot be read."""

    def __init__(self, grid: Grid, vocabulary: Vocabulary, files: InputFiles) -> None:
        self.grid = grid
        self.vocabulary = vocabulary
        self.files = files
        self.unreadable: dict[InputProblem, None] = {}

    def run(self, point: dict[str, str]) -> PlannedRun:
        options, settings = self.vocabulary.options, self.grid.settings_at(point)
        if not any(options[name].is_workload for name in settings):
            ways = ", ".join(name for name, option in options.items() if option.is_workload)
            where = " ".join(f"{axis}={label}" for axis, label in point.items())
            raise _bad(
                self.grid, "options", f"no workload{' at ' + where if where else ''}: set one of {ways}"
            )
        arguments = [
            argument
            for name, values in settings.items()
            for argument in self.arguments(options[name], values)
        ]
        seed = point.pop(SEED, "") or "".join(settings.get(SEED, ()))
        return planned_run(point, arguments, seed)

    def arguments(self, option: SimulateOption, values: tuple[str, ...]) -> list[Argument]:
        if option.is_switch:
            flag = option.flag if values == ("true",) else option.off_flag
            return [Argument(flag)] if flag else []
        return [self.argument(option, value) for value in values]

    def argument(self, option: SimulateOption, value: str) -> Argument:
        path = os.path.abspath(self.grid.folder / value)
        use = option.path_use
        if use is PathUse.NEVER or (use is PathUse.IF_THERE and not os.path.exists(path)):
            return Argument(option.flag, value)
        try:
            return Argument(option.flag, path, self.files.digest(Path(path)))
        except Unreadable as error:
            text = f"{quoted(value)}: {error}; files are named relative to the folder of the grid"
            self.unreadable[InputProblem(self.grid.source, text, field=option.name)] = None
            return Argument(option.flag, value)


def _bad(grid: Grid, field: str, text: str) -> BadGrid:
    return BadGrid([InputProblem(grid.source, text, field=field)])
