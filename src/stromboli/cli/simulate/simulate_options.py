"""The options of `stromboli simulate`, all forms together."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

import typer

from stromboli.cli.data_option import data_folder
from stromboli.cli.output import StatusFormat
from stromboli.cli.simulate.report_files import PlotFormat


class Backfill(enum.StrEnum):
    """Who may overtake a job that does not fit."""

    EASY = "easy"
    CONSERVATIVE = "conservative"
    NONE = "none"


class Score(enum.StrEnum):
    """By what a node with GPUs is chosen."""

    FGD = "fgd"
    BESTFIT = "bestfit"
    DOTPROD = "dotprod"
    PACKING = "packing"
    CLUSTERING = "clustering"
    RANDOM = "random"


class Sequence(enum.StrEnum):
    """Whose random numbers put a list of pods into order."""

    OURS = "ours"
    GO = "go"


class CycleMode(enum.StrEnum):
    """When the scheduler runs a cycle."""

    EVENT = "event"
    PERIOD = "period"


SWF = typer.Option(None, "--swf", metavar="FILE", help="A trace in Standard Workload Format (.swf, .swf.gz).")
OPENB_NODES = typer.Option(
    None, "--openb-nodes", metavar="CSV", help="A list of nodes of the OpenB traces; with --openb-pods."
)
OPENB_PODS = typer.Option(
    None, "--openb-pods", metavar="CSV", help="A list of pods of the OpenB traces; with --openb-nodes."
)
WORKLOAD = typer.Option(
    None,
    "--workload",
    metavar="FILE",
    help="A workload as `stromboli workload` saves it, or the YAML of a generator.",
)
FILES = typer.Option(
    [],
    "-f",
    "--filename",
    metavar="PATH",
    help="A cluster, as for `plan`: manifests, what `kubectl get -o yaml` prints, or a dump; repeatable.",
)
SUBMIT = typer.Option(
    [],
    "--submit",
    metavar="JOB.YAML",
    help="When would this start, and whom would it delay? On -f or the live cluster; repeatable.",
)
ASSUME_RUN_TIME = typer.Option(
    None,
    "--assume-run-time",
    metavar="TIME",
    help="With --submit and -f: jobs without a time limit run so long, such as 2h; else they never end.",
)
NOW = typer.Option(
    None,
    "--now",
    metavar="TIME",
    help="The clock of -f, such as 2026-11-01T12:00:00Z; that of the dump unless given.",
)
DATA = typer.Option(
    None,
    "--data",
    parser=data_folder,
    metavar="DIR",
    help="With --submit: the folder of a cluster of `stromboli up`.",
)
KUBECONFIG = typer.Option(
    "", "--kubeconfig", metavar="FILE", help="The live cluster of --submit; $KUBECONFIG unless given."
)
CONTEXT = typer.Option("", "--context", metavar="NAME", help="A context of the kubeconfig.")
BACKFILL = typer.Option(
    None,
    "--backfill",
    help="Who may overtake a job that does not fit: those that do not delay the first that waits (easy), "
    "those that delay nobody who waits (conservative), or nobody (none). Easy for --swf unless given.",
)
SCORE = typer.Option(
    None, "--score", help="By what a node with GPUs is chosen; fgd for --openb-pods unless given."
)
NODES = typer.Option(
    [],
    "--nodes",
    metavar="NODES",
    help="Other nodes than the trace's, such as 20x32cpu,256Gi,8gpu, or a file of Node manifests; repeatable. "
    "With --swf, jobs that need several of them become gangs.",
)
LOAD = typer.Option(
    None,
    "--load",
    metavar="X",
    min=0.0,
    help="With --openb-pods, GPU demand as a share of the cluster's GPUs, 1.3 unless given; "
    "else jobs come so many times as fast.",
)
SEED = typer.Option(
    None,
    "--seed",
    metavar="N",
    help="Of all that is random: the same seed, the same run. Unless given, 0, and of a generator its own.",
)
SEQUENCE = typer.Option(
    Sequence.OURS, "--sequence", help="Whose random numbers: go replays the order of the FGD paper."
)
OVERRUN = typer.Option(
    False, "--overrun", help="Jobs may run on beyond their estimate instead of being cut there."
)
JOBS = typer.Option(None, "--jobs", metavar="N", min=1, help="Only the first so many jobs.")
CYCLE = typer.Option(
    CycleMode.EVENT, "--cycle", help="Run a cycle on every event, or once in a --period of virtual time."
)
DEFAULT_PERIOD = 1.0
"""Seconds from cycle to cycle."""
PERIOD = typer.Option(
    DEFAULT_PERIOD,
    "--period",
    metavar="SECONDS",
    min=0.001,
    max=31_536_000.0,
    help="Virtual time from cycle to cycle, with --cycle period.",
)
FAILURES = typer.Option(
    None,
    "--failures",
    metavar="MTBF/MTTR",
    help="Nodes fail and come back: mean time between failures of a node and mean time to repair, such as 30d/4h.",
)
SAVE = typer.Option(
    None, "--save", metavar="FILE", help="Keep the record of the run, for `stromboli compare`."
)
CSV = typer.Option(None, "--csv", metavar="FOLDER", help="Write jobs, pods, samples and evictions as CSV.")
OUTPUT = typer.Option(StatusFormat.TABLE, "-o", "--output", help="How to show the measures.")
QUIET = typer.Option(
    False, "-q", "--quiet", "--no-progress", help="No progress bar, and no word of files that were written."
)


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of the command, as given."""

    swf: Path | None
    openb_nodes: Path | None
    openb_pods: Path | None
    workload: Path | None
    files: list[str]
    submit: list[str]
    assume_run_time: str | None
    now: str | None
    data: Path | None
    kubeconfig: str
    context: str
    policy: Path | None
    preset: str | None
    backfill: Backfill | None
    score: Score | None
    nodes: list[str]
    load: float | None
    seed: int | None
    """None: 0, and of a generator its own."""
    sequence: Sequence
    overrun: bool
    jobs: int | None
    cycle: CycleMode
    period: float
    failures: str | None
    save: Path | None
    report: Path | None
    csv: Path | None
    output: StatusFormat
    quiet: bool
    lenient: bool
    plugins_dir: Path | None
    plots: Path | None = None
    plot_format: PlotFormat = PlotFormat.PNG
