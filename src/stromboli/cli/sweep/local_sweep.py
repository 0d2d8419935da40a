"""A sweep on this machine: plan, run what is missing on all cores, show the results."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import typer

from stromboli.cli.cli_errors import INTERRUPTED, Usage
from stromboli.cli.output import Format, write_as
from stromboli.cli.sweep.grid_vocabulary import grid_vocabulary
from stromboli.cli.sweep.sweep_options import SweepOptions
from stromboli.cli.sweep.sweep_progress import Counts, SweepProgress
from stromboli.cli.sweep.sweep_table import print_results
from stromboli.daemon.noted_signals import noted_signals
from stromboli.embedded.nodes.machine.machine_node import cpus
from stromboli.simulator.sweeps.grid import BadGrid, expand
from stromboli.simulator.sweeps.grid_reading import read_grid
from stromboli.simulator.sweeps.input_files import InputFiles
from stromboli.simulator.sweeps.planned_run import PlannedRun, command, command_line
from stromboli.simulator.sweeps.portable_plan import export
from stromboli.simulator.sweeps.results_folder import FailedRun, FolderInUse, ResultsFolder, UnusableFolder
from stromboli.simulator.sweeps.run_processes import THIS_PROGRAM, RunProcesses
from stromboli.simulator.sweeps.sweep_plan import Share, SweepPlan, load_plan

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a sweep, with what it has come to."""


def planned(options: SweepOptions) -> SweepPlan:
    """The runs of a grid, or of the plan of an earlier one."""
    try:
        if options.grid.suffix == ".json":
            return load_plan(options.grid, InputFiles())
        vocabulary = grid_vocabulary()
        grid = read_grid(options.grid, vocabulary)
        return SweepPlan(grid.name, tuple(expand(grid, vocabulary, InputFiles())))
    except BadGrid as error:
        raise Usage(str(error)) from None


def results_folder(plan: SweepPlan, options: SweepOptions) -> ResultsFolder:
    """The folder that was named, that of an earlier plan, or one by the name of the grid."""
    if options.results is not None:
        return ResultsFolder(options.results)
    if options.grid.suffix == ".json":
        return ResultsFolder(options.grid.parent)
    return ResultsFolder(Path(f"{plan.name}-results"))


def dry_run(plan: SweepPlan, options: SweepOptions) -> None:
    """Print the command of each run, those that are done already as well."""
    folder = results_folder(plan, options)
    runs = _share(plan, options)
    lines = [command_line(command(run, folder.record(run.id), shown=short_path)) for run in runs]
    if options.output is Format.TABLE:
        typer.echo("\n".join(lines))
        return
    entries = [
        {"id": run.id, "title": run.title, "command": line, "done": folder.is_done(run.id)}
        for run, line in zip(runs, lines, strict=True)
    ]
    write_as(options.output, {"name": plan.name, "results": str(folder.path), "runs": entries})


def export_plan(plan: SweepPlan, folder: Path) -> None:
    """Write what another machine needs."""
    try:
        path = export(plan, folder)
    except OSError as error:
        raise Usage(
            f"--export {folder}: {error.strerror or error}; name a folder that you may write to"
        ) from None
    typer.echo(f"{path}: {len(plan.distinct)} runs; `stromboli sweep {path}` runs them, --share divides them")


def run_here(plan: SweepPlan, options: SweepOptions, program: Sequence[str] = THIS_PROGRAM) -> int:
    """Run what is missing; the exit status."""
    folder = results_folder(plan, options)
    try:
        with folder.locked(shared=options.share is not None):
            if options.share is None:
                folder.save_plan(plan)
            return _run(plan, folder, options, program)
    except (FolderInUse, UnusableFolder) as error:
        raise Usage(str(error)) from None


def _run(plan: SweepPlan, folder: ResultsFolder, options: SweepOptions, program: Sequence[str]) -> int:
    runs = _share(plan, options)
    missing = [run for run in runs if not folder.is_done(run.id)]
    given_up = [failed for run in missing if options.pod and (failed := folder.given_up(run, options.pod))]
    tried = [run for run in missing if run.id not in {failed.id for failed in given_up}]
    counts = Counts(len(runs), len(runs) - len(missing), 0, len(given_up))
    jobs = options.jobs or max(1, int(cpus()))
    if tried and not options.quiet and not options.pod:
        typer.echo(f"{plan.name}: {len(runs)} runs, {jobs} at a time, results in {folder.path}", err=True)
    progress = SweepProgress(counts, options.quiet)
    try:
        with progress.shown(), noted_signals(*ENDING) as interrupted:
            processes = RunProcesses(folder, jobs, progress, program, options.pod, interrupted)
            failures = [*given_up, *processes.run_all(tried)]
    except KeyboardInterrupt:
        done = sum(folder.record(run.id).exists() for run in runs)
        typer.echo(
            f"interrupted: {done} of {len(runs)} runs are done and kept in {folder.path};"
            " the same command goes on from there",
            err=True,
        )
        return INTERRUPTED
    if options.pod:
        return 0  # what failed is told in the folder: a pod that is restarted could not do better
    return show_end(plan, folder, failures, options)


def show_end(
    plan: SweepPlan, folder: ResultsFolder, failures: Sequence[FailedRun], options: SweepOptions
) -> int:
    """Print the results; the exit status."""
    print_results(plan, folder, failures, options.output)
    if failures:
        typer.echo(
            f"runs failed: {len(failures)}; the same command tries again, and only what failed", err=True
        )
    return 1 if failures else 0


def _share(plan: SweepPlan, options: SweepOptions) -> Sequence[PlannedRun]:
    return (options.share or Share()).of(list(plan.distinct.values()))


def short_path(path: str) -> str:
    """Relative to where we are, if it lies below."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
