"""A plan that travels: `sweep.json` with its inputs beside it, for a volume, a ConfigMap or another machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import structs

from stromboli.simulator.reports.written_files import whole_file
from stromboli.simulator.sweeps.input_files import files_below
from stromboli.simulator.sweeps.planned_run import Argument, PlannedRun
from stromboli.simulator.sweeps.results_folder import PLAN
from stromboli.simulator.sweeps.sweep_plan import SweepPlan


def portable(plan: SweepPlan) -> tuple[SweepPlan, dict[str, Path]]:
    """The plan with inputs named relative to it, and by such a name the file that belongs there."""
    carried: dict[str, Path] = {}
    runs = tuple(_portable_run(run, carried) for run in plan.runs)
    files: dict[str, Path] = {}
    for name, path in carried.items():
        if path.is_dir():
            files |= {f"{name}/{file.relative_to(path).as_posix()}": file for file in files_below(path)}
        else:
            files[name] = path
    return structs.replace(plan, runs=runs), files


def _portable_run(run: PlannedRun, carried: dict[str, Path]) -> PlannedRun:
    return structs.replace(run, arguments=tuple(_portable_argument(part, carried) for part in run.arguments))


def _portable_argument(part: Argument, carried: dict[str, Path]) -> Argument:
    if not part.sha256 or part.value is None:
        return part
    path = Path(part.value)
    name = f"{part.sha256[:12]}/{path.name}"  # its own name is part of what a record says
    carried[name] = path
    return structs.replace(part, value=name)


def export(plan: SweepPlan, folder: Path) -> Path:
    """Write a plan with its inputs into a folder; the path of its `sweep.json`."""
    travelling, files = portable(plan)
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    with whole_file(folder / PLAN) as file:
        file.write(travelling.encoded())
    return folder / PLAN
