"""The command: plans the runs, runs what is missing here or on a cluster, shows what came of it."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.output import Format
from stromboli.cli.sweep import sweep_options as options_of
from stromboli.cli.sweep.sweep_options import ClusterOptions, SweepOptions
from stromboli.simulator.sweeps.sweep_plan import Share


def sweep(
    grid: Path = options_of.GRID,
    results: Path | None = options_of.RESULTS,
    jobs: int | None = options_of.JOBS,
    dry_run: bool = options_of.DRY_RUN,
    share: Share | None = options_of.SHARE,
    export: Path | None = options_of.EXPORT,
    quiet: bool = options_of.QUIET,
    output: Format = options_of.OUTPUT,
    in_pod: str = options_of.IN_POD,
    on_cluster: bool = options_of.ON_CLUSTER,
    claim: str = options_of.CLAIM,
    namespace: str = options_of.NAMESPACE,
    queue: str = options_of.QUEUE,
    image: str = options_of.IMAGE_NAME,
    requests: str = options_of.REQUESTS,
    parallelism: int = options_of.PARALLELISM,
    volume_folder: Path | None = options_of.VOLUME_FOLDER,
    exported: bool = options_of.EXPORTED,
    kubeconfig: str = options_of.KUBECONFIG,
    context: str = options_of.CONTEXT,
    data: Path | None = options_of.DATA,
) -> None:
    """Simulate a grid of workloads, policies, loads and seeds: every combination is a run of `stromboli simulate`.

    Runs that are in the folder of results already are not run again, so the same command goes on after an
    interruption. With --on-cluster the runs are pods of a Job, and the results are in the volume of --claim.

    Exit status 1 if a run failed, 2 for a grid that cannot be used, 130 after Ctrl-C.
    """
    from stromboli.cli.sweep.local_sweep import dry_run as print_commands
    from stromboli.cli.sweep.local_sweep import export_plan, planned, run_here
    from stromboli.cli.sweep.sweep_job_manifests import print_manifests
    from stromboli.cli.sweep.sweep_on_cluster import run_on_cluster

    root = os.environ.get("STROMBOLI_ROOT", "") if in_pod else ""  # mounts on real nodes of `stromboli up`
    options = SweepOptions(
        Path(f"{root}{grid}"),
        None if results is None else Path(f"{root}{results}"),
        jobs,
        dry_run,
        share,
        export,
        quiet,
        output,
        in_pod,
    )
    plan = planned(options)
    if export is not None:
        export_plan(plan, export)
    elif on_cluster:
        cluster = ClusterOptions(
            claim,
            namespace,
            queue,
            image,
            requests,
            parallelism,
            volume_folder,
            exported,
            kubeconfig,
            context,
            data,
        )
        if share is not None:
            raise Usage("--share and --on-cluster exclude each other: --parallelism divides the runs")
        if dry_run:
            print_manifests(plan, cluster, output)
        else:
            raise typer.Exit(run_on_cluster(plan, options, cluster))
    elif dry_run:
        print_commands(plan, options)
    else:
        raise typer.Exit(run_here(plan, options))
