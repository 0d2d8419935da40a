"""A sweep as a Job on a cluster: created, or found running, then watched; its results are collected."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
import yaml
from msgspec import structs

from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.cli.cli_errors import Usage, print_error
from stromboli.cli.output import WIDE, Format, write_as
from stromboli.cli.sweep.cluster_volume import ClusterVolume, collect
from stromboli.cli.sweep.job_watch import JobEnd, JobWatch
from stromboli.cli.sweep.local_sweep import INTERRUPTED, results_folder, show_end
from stromboli.cli.sweep.sweep_job_requests import SweepJobRequests
from stromboli.cli.sweep.sweep_options import ClusterOptions, SweepOptions
from stromboli.cli.sweep.sweep_progress import Counts, SweepProgress, failure_text
from stromboli.cli.up.cluster_choice import find_api_server
from stromboli.embedded.running_clusters import FolderError
from stromboli.kube.api_client import Client
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.sweeps.cluster_job import (
    PLAN_FOLDER,
    InputsTooLarge,
    JobSettings,
    Manifest,
    config_map,
    job_name,
    sweep_job,
)
from stromboli.simulator.sweeps.portable_plan import export
from stromboli.simulator.sweeps.results_folder import FolderInUse, ResultsFolder, UnusableFolder
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

DEFAULT_NAMESPACE = "default"


def job_settings(plan: SweepPlan, options: ClusterOptions, namespace: str) -> JobSettings:
    """What the options ask for, checked."""
    if not options.claim:
        raise Usage(
            "--on-cluster needs --claim NAME: a PersistentVolumeClaim that all pods can write to, for the results"
        )
    parallelism = min(options.parallelism, len(plan.distinct))
    return JobSettings(
        namespace, options.claim, options.image, parallelism, options.queue, requests_of(options.requests)
    )


def requests_of(text: str) -> Mapping[str, str]:
    """`cpu=1,memory=2Gi` as a resource list."""
    requests: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, amount = part.partition("=")
        try:
            if not name.strip() or exact(amount.strip()) < 0:
                raise QuantityError(amount)
        except QuantityError:
            raise Usage(f"--requests {part}: no resource with an amount; write cpu=1,memory=2Gi") from None
        requests[name.strip()] = amount.strip()
    return requests


def print_manifests(plan: SweepPlan, options: ClusterOptions, output: Format) -> None:
    """What would be created, without asking a cluster."""
    manifests = _manifests(
        job_name(plan), plan, job_settings(plan, options, options.namespace or DEFAULT_NAMESPACE), options
    )
    if output is Format.JSON:
        write_as(output, {"apiVersion": "v1", "kind": "List", "items": manifests})
    else:
        typer.echo(yaml.dump_all(manifests, Dumper=_ManifestDumper, sort_keys=False, width=WIDE).rstrip())


class _ManifestDumper(yaml.SafeDumper):
    """Texts of several lines as such."""

    def represent_str(self, data: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


_ManifestDumper.add_representer(str, _ManifestDumper.represent_str)


def _manifests(
    name: str, plan: SweepPlan, settings: JobSettings, options: ClusterOptions, folder: Path | None = None
) -> list[Manifest]:
    """The ConfigMap, unless the inputs are in the volume, and the Job; inputs too large for it go into the volume."""
    in_volume = options.exported
    inputs: list[Manifest] = []
    if not in_volume:
        try:
            inputs = [config_map(name, plan, settings)]
        except InputsTooLarge as error:
            if folder is None and options.volume_folder is None:
                raise Usage(
                    f"{error}: name the folder where the volume of claim {settings.claim} is mounted here with"
                    f" --volume-folder, or copy what `stromboli sweep GRID.yaml --export plan` writes into the"
                    f" volume as {name}/{PLAN_FOLDER} and give --exported"
                ) from None
            in_volume = True
    return [*inputs, sweep_job(name, plan, settings, in_volume)]


def run_on_cluster(plan: SweepPlan, options: SweepOptions, cluster: ClusterOptions) -> int:
    """Create the Job or find it running, watch it, collect its results; the exit status."""
    try:
        access, running = find_api_server(cluster.data, cluster.kubeconfig, cluster.context)
    except (FolderError, BadConfig) as error:
        raise Usage(str(error)) from None
    namespace = cluster.namespace or access.namespace or DEFAULT_NAMESPACE
    settings = job_settings(plan, cluster, namespace)
    folder = results_folder(plan, options)
    try:
        with folder.locked():
            folder.save_plan(plan)
            return asyncio.run(
                _sweep(Client(access), running is not None, plan, folder, settings, options, cluster)
            )
    except (FolderInUse, UnusableFolder) as error:
        raise Usage(str(error)) from None
    except (NoResponse, ApiError) as error:
        refused = isinstance(error, ApiError)
        print_error(f"{access.server} {'refuses' if refused else 'does not answer'}: {error}")
        return 1


async def _sweep(
    client: Client,
    is_this_machine: bool,
    plan: SweepPlan,
    folder: ResultsFolder,
    settings: JobSettings,
    options: SweepOptions,
    cluster: ClusterOptions,
) -> int:
    name = job_name(plan)
    async with client:
        requests = SweepJobRequests(client, settings.namespace, name)
        volume = ClusterVolume(requests, settings.claim, cluster.volume_folder, is_this_machine)
        if (place := await volume.folder(name)) is not None:
            collect(plan, place, folder)
        missing = tuple(run for run in plan.distinct.values() if not folder.is_done(run.id))
        if not missing:
            return show_end(plan, folder, [], options)
        left = structs.replace(plan, runs=missing)
        if not await requests.is_running():
            await _create(requests, name, left, settings, cluster, place)
        end = await _watch(requests, plan, len(plan.distinct) - len(missing), left, options)
        if end is None:
            typer.echo(
                f"no longer watched: the Job {name} goes on; the same command watches it again,"
                f" and `kubectl delete vcjob -n {settings.namespace} {name}` ends it",
                err=True,
            )
            return INTERRUPTED
        return _finish(plan, left, folder, await volume.folder(name), end, settings, options)


async def _create(
    requests: SweepJobRequests,
    name: str,
    plan: SweepPlan,
    settings: JobSettings,
    cluster: ClusterOptions,
    place: Path | None,
) -> None:
    """Put the inputs where the pods find them, and create the Job."""
    settings = JobSettings(
        settings.namespace,
        settings.claim,
        settings.image,
        min(settings.parallelism, len(plan.runs)),
        settings.queue,
        settings.requests,
    )
    manifests = _manifests(name, plan, settings, cluster, place)
    if len(manifests) == 1 and not cluster.exported:
        target = place or (cluster.volume_folder or Path()) / name
        try:
            export(plan, target / PLAN_FOLDER)
        except OSError as error:
            raise Usage(f"{error.filename or target}: cannot be written: {error.strerror or error}") from None
    await requests.create(manifests)


async def _watch(
    requests: SweepJobRequests, plan: SweepPlan, done: int, left: SweepPlan, options: SweepOptions
) -> JobEnd | None:
    """Until the Job has ended; nothing if somebody no longer wants to watch."""
    progress = SweepProgress(Counts(len(plan.distinct), done), options.quiet)
    watch = JobWatch(requests, progress, len(plan.distinct), len(left.runs))
    watching = asyncio.ensure_future(watch.until_end())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, watching.cancel)
    try:
        with progress.shown():
            return await watching
    except asyncio.CancelledError:
        return None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


def _finish(
    plan: SweepPlan,
    left: SweepPlan,
    folder: ResultsFolder,
    place: Path | None,
    end: JobEnd,
    settings: JobSettings,
    options: SweepOptions,
) -> int:
    """Collect what can be reached from here, and say what came of it."""
    name = job_name(plan)
    if place is None:
        typer.echo(
            f"{end.done} runs are done, and their records in claim {settings.claim}, folder {name}/records."
            f" Copy {name} to {folder.path} (docs/sweeps.md says how), and run the same command again for the table."
        )
        return 1 if end.failed or end.done < len(left.runs) else 0
    collect(plan, place, folder)
    missing = [run for run in left.runs if not folder.is_done(run.id)]
    failures = [failed for run in missing if (failed := folder.failed(run)) is not None]
    for failed in failures:
        typer.echo(failure_text(failed), err=True)
    status = show_end(plan, folder, failures, options)
    if len(missing) > len(failures):
        print_error(
            f"{len(missing) - len(failures)} runs have no result, as the Job {name} ended {end.phase}:"
            f" {end.message or 'see its pods'}; the same command goes on with them"
        )
        return 1
    return status
