"""Grids in a folder, planned as the command plans them."""

from __future__ import annotations

from pathlib import Path

from stromboli.cli.sweep.grid_vocabulary import grid_vocabulary
from stromboli.simulator.sweeps.grid import Grid, expand
from stromboli.simulator.sweeps.grid_reading import grid_of
from stromboli.simulator.sweeps.input_files import InputFiles
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

VOCABULARY = grid_vocabulary()


def grid_in(folder: Path, text: str) -> Grid:
    """A grid beside a trace `a.swf`."""
    if not (folder / "a.swf").exists():
        (folder / "a.swf").write_text("; a trace\n")
    return grid_of(text, folder / "grid.yaml", VOCABULARY)


def plan_in(folder: Path, text: str) -> SweepPlan:
    """Its plan."""
    grid = grid_in(folder, text)
    return SweepPlan(grid.name, tuple(expand(grid, VOCABULARY, InputFiles())))
