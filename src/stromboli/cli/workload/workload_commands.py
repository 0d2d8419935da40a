"""`show` and `save`: both take a workload from any source."""

from __future__ import annotations

from pathlib import Path

import typer

from stromboli.cli.cli_errors import print_warning
from stromboli.cli.command_group import subcommands
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.simulate.simulate_options import FILES, OPENB_NODES, OPENB_PODS, Sequence
from stromboli.cli.workload.workload_source import WorkloadSource

workload = subcommands("Show a workload in numbers, or save it for others to repeat.")

FILE = typer.Argument(
    None,
    help="A trace (.swf, .swf.gz), a saved workload (.jsonl, .jsonl.gz, .yaml), or the YAML of a generator.",
)
SEED = typer.Option(
    None, "--seed", metavar="N", help="Of a generator, its own unless given; of OpenB lists, 0."
)
LOAD = typer.Option(
    1.3,
    "--load",
    metavar="X",
    min=0.0,
    max=1000.0,
    help="With --openb-pods, GPU demand as a share of the GPUs.",
)
SEQUENCE = typer.Option(
    Sequence.OURS, "--sequence", help="With --openb-pods, whose random numbers: go replays the FGD paper."
)
RECORDED = typer.Option(
    False,
    "--recorded-times",
    help="With --openb-pods, pods come and go when they did, instead of one at a time.",
)
CPUS_PER_POD = typer.Option(
    None,
    "--cpus-per-pod",
    metavar="N",
    min=1,
    help="Of a trace: jobs are gangs of pods with at most so many CPUs.",
)
QUEUES = typer.Option(
    False, "--queues", help="Of a trace: jobs go to its queues, instead of all to `default`."
)
OVERRUN = typer.Option(False, "--overrun", help="Of a trace: runs are not cut at the estimate.")
JOBS = typer.Option(None, "--jobs", metavar="N", min=1, help="Only the first so many jobs.")


@workload.command()
def show(
    file: Path | None = FILE,
    openb_nodes: Path | None = OPENB_NODES,
    openb_pods: Path | None = OPENB_PODS,
    files: list[str] = FILES,
    seed: int | None = SEED,
    load: float = LOAD,
    sequence: Sequence = SEQUENCE,
    recorded_times: bool = RECORDED,
    cpus_per_pod: int | None = CPUS_PER_POD,
    queues: bool = QUEUES,
    overrun: bool = OVERRUN,
    jobs: int | None = JOBS,
    output: StatusFormat = typer.Option(StatusFormat.TABLE, "-o", "--output", help="How to show it."),
) -> None:
    """Say how many jobs there are, over which time, and what they ask for."""
    from stromboli.cli.workload.workload_text import print_summary
    from stromboli.simulator.workloads.workload_summary import summarised

    source = WorkloadSource(
        file,
        openb_nodes,
        openb_pods,
        files,
        seed,
        load,
        sequence,
        recorded_times,
        cpus_per_pod,
        queues,
        overrun,
        jobs,
    )
    summary = summarised(source.read())
    if output in (StatusFormat.JSON, StatusFormat.YAML):
        write_as(output, summary.as_document())
    else:
        print_summary(console(), summary, wide=output is StatusFormat.WIDE)


@workload.command()
def save(
    to: Path = typer.Option(
        ...,
        "--to",
        metavar="FILE",
        help="Its name says how: .jsonl, .jsonl.gz and .yaml hold all of it, .swf a part.",
    ),
    file: Path | None = FILE,
    openb_nodes: Path | None = OPENB_NODES,
    openb_pods: Path | None = OPENB_PODS,
    files: list[str] = FILES,
    seed: int | None = SEED,
    load: float = LOAD,
    sequence: Sequence = SEQUENCE,
    recorded_times: bool = RECORDED,
    cpus_per_pod: int | None = CPUS_PER_POD,
    queues: bool = QUEUES,
    overrun: bool = OVERRUN,
    jobs: int | None = JOBS,
) -> None:
    """Write a workload to a file, to simulate it or for other tools.

    `stromboli simulate --workload FILE` runs it.
    """
    from stromboli.simulator.count_sentences import counted
    from stromboli.simulator.workloads.workload_files import write_workload

    source = WorkloadSource(
        file,
        openb_nodes,
        openb_pods,
        files,
        seed,
        load,
        sequence,
        recorded_times,
        cpus_per_pod,
        queues,
        overrun,
        jobs,
    )
    read = source.read()
    for loss in write_workload(read, str(to)):
        print_warning(f"{to}: {loss}")
    typer.echo(f"{to}: {counted(len(read.jobs), 'job')}")
