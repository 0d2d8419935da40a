"""The command: finds out which form it is, lets it prepare a simulation, runs it and shows what came of it."""

from __future__ import annotations

import math
from pathlib import Path

from stromboli.cli.cli_errors import Usage
from stromboli.cli.output import StatusFormat
from stromboli.cli.policy_options import LENIENT, PLUGINS_DIR, POLICY, PRESET
from stromboli.cli.simulate import simulate_options as options_of
from stromboli.cli.simulate.option_effects import FILES, OPENB, SUBMIT, SWF, WORKLOAD, check_effects
from stromboli.cli.simulate.report_files import (
    PLOT_FORMAT,
    PLOTS,
    REPORT,
    PlotFormat,
    check_files,
    check_folders,
    check_plots,
)
from stromboli.cli.simulate.simulate_options import Backfill, CycleMode, Score, Sequence, SimulateOptions


def simulate(
    swf: Path | None = options_of.SWF,
    openb_nodes: Path | None = options_of.OPENB_NODES,
    openb_pods: Path | None = options_of.OPENB_PODS,
    workload: Path | None = options_of.WORKLOAD,
    files: list[str] = options_of.FILES,
    submit: list[str] = options_of.SUBMIT,
    assume_run_time: str | None = options_of.ASSUME_RUN_TIME,
    now: str | None = options_of.NOW,
    data: Path | None = options_of.DATA,
    kubeconfig: str = options_of.KUBECONFIG,
    context: str = options_of.CONTEXT,
    policy: Path | None = POLICY,
    preset: str | None = PRESET,
    backfill: Backfill | None = options_of.BACKFILL,
    score: Score | None = options_of.SCORE,
    nodes: list[str] = options_of.NODES,
    load: float | None = options_of.LOAD,
    seed: int | None = options_of.SEED,
    sequence: Sequence = options_of.SEQUENCE,
    overrun: bool = options_of.OVERRUN,
    jobs: int | None = options_of.JOBS,
    cycle: CycleMode = options_of.CYCLE,
    period: float = options_of.PERIOD,
    failures: str | None = options_of.FAILURES,
    save: Path | None = options_of.SAVE,
    report: Path | None = REPORT,
    csv: Path | None = options_of.CSV,
    plots: Path | None = PLOTS,
    plot_format: PlotFormat = PLOT_FORMAT,
    output: StatusFormat = options_of.OUTPUT,
    quiet: bool = options_of.QUIET,
    lenient: bool = LENIENT,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """What would happen: a workload on a cluster under a policy, in virtual time.

    The workload is a trace (--swf, --openb-nodes and --openb-pods), generated or saved (--workload), or what a cluster
    holds (-f). With --submit: when would a job start on a cluster, and whom would it delay?

    Ctrl-C shows what came of it so far, with exit status 130.
    """
    options = SimulateOptions(
        swf,
        openb_nodes,
        openb_pods,
        workload,
        files,
        submit,
        assume_run_time,
        now,
        data,
        kubeconfig,
        context,
        policy,
        preset,
        backfill,
        score,
        nodes,
        load,
        seed,
        sequence,
        overrun,
        jobs,
        cycle,
        period,
        failures,
        save,
        report,
        csv,
        output,
        quiet,
        lenient,
        plugins_dir,
        plots,
        plot_format,
    )
    check_files(save, report)
    check_folders(csv)
    check_plots(plots)
    for name, number in (("--period", period), ("--load", load or 0.0)):
        if not math.isfinite(number):
            raise Usage(f"{name} {number:g}: no finite number")
    if period != options_of.DEFAULT_PERIOD and cycle is not CycleMode.PERIOD:
        raise Usage(f"--period {period:g}: without effect on --cycle event; give --cycle period with it")
    run_form(options)


def run_form(options: SimulateOptions) -> None:
    """Run the form that was asked for."""
    given = {
        SWF: options.swf is not None,
        OPENB: options.openb_nodes is not None or options.openb_pods is not None,
        WORKLOAD: options.workload is not None,
        FILES: bool(options.files) and not options.submit,
        SUBMIT: bool(options.submit),
    }
    chosen = [form for form, is_given in given.items() if is_given]
    if len(chosen) != 1:
        problem = f"{' and '.join(chosen)} exclude each other" if chosen else "nothing to simulate"
        raise Usage(f"{problem}: give one of {', '.join(given)}")
    check_effects(chosen[0], options)
    if chosen[0] == SUBMIT:
        from stromboli.cli.simulate.submit_form import run_submit

        run_submit(options)
    else:
        from stromboli.cli.simulate.run_form import run_workload

        run_workload(chosen[0], options)
