"""A sweep as a Job on a cluster: created, or found running, then watched; its results are collected."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from msgspec import structs

from stromboli.cli.cli_errors import INTERRUPTED, Usage, print_error
from stromboli.cli.cluster.cluster_choice import find_api_server
from stromboli.cli.sweep.cluster_volume import ClusterVolume, collect
from stromboli.cli.sweep.job_watch import JobEnd, JobWatch
from stromboli.cli.sweep.local_sweep import results_folder, show_end
from stromboli.cli.sweep.sweep_job_manifests import job_settings, manifests
from stromboli.cli.sweep.sweep_job_requests import SweepJobRequests, runs_of
from stromboli.cli.sweep.sweep_options import ClusterOptions, SweepOptions
from stromboli.cli.sweep.sweep_progress import Counts, SweepProgress, failure_text
from stromboli.embedded.nodes.node_annotations import NODE, REAL
from stromboli.embedded.running_clusters import FolderError
from stromboli.kube.api_client import Client
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.sweeps.cluster_job import JobSettings, job_name, plan_path, results_path
from stromboli.simulator.sweeps.planned_run import PlannedRun, command, command_line
from stromboli.simulator.sweeps.portable_plan import export
from stromboli.simulator.sweeps.results_folder import FailedRun, FolderInUse, ResultsFolder, UnusableFolder
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

REAL_NODES = {NODE: REAL}
"""Of `stromboli up`; its other nodes run nothing."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_on_cluster(plan: SweepPlan, options: SweepOptions, cluster: ClusterOptions) -> int:
    """Create the Job or find it running, watch it, collect its results; the exit status."""
    try:
        access, running = find_api_server(cluster.data, cluster.kubeconfig, cluster.context)
    except (FolderError, BadConfig) as error:
        raise Usage(str(error)) from None
    settings = job_settings(plan, cluster, access.namespace)
    folder = results_folder(plan, options)
    sweep = ClusterSweep(plan, options, cluster, settings, folder, running is not None)
    try:
        with folder.locked():
            folder.save_plan(plan)
            return asyncio.run(sweep.run(Client(access)))
    except (FolderInUse, UnusableFolder) as error:
        raise Usage(str(error)) from None
    except (NoResponse, ApiError) as error:
        refused = isinstance(error, ApiError)
        print_error(f"{access.server} {'refuses' if refused else 'does not answer'}: {error}")
        return 1


@dataclass(frozen=True, slots=True)
class ClusterSweep:
    """A sweep on a cluster, from what is there already to its end."""

    plan: SweepPlan
    options: SweepOptions
    cluster: ClusterOptions
    settings: JobSettings
    folder: ResultsFolder
    is_this_machine: bool
    """Whether the nodes are processes of this machine, so that their folders are ours."""

    @property
    def name(self) -> str:
        """Of the Job."""
        return job_name(self.plan)

    async def run(self, client: Client) -> int:
        """The exit status."""
        async with client:
            requests = SweepJobRequests(client, self.settings.namespace, self.name)
            volume = ClusterVolume(
                requests, self.settings.claim, self.cluster.volume_folder, self.is_this_machine
            )
            place = await volume.folder(results_path(self.plan))
            left = self._left(place)
            if not left.runs:
                return show_end(self.plan, self.folder, [], self.options)
            job = await requests.running_job()
            if job is None:
                if self.is_this_machine and not await requests.has_nodes(REAL_NODES):
                    raise Usage(
                        "nodes of this cluster are simulated, and run nothing: start `stromboli up --real`"
                    )
                await self._create(requests, left, place)
            end = await self._watch(requests, len(left.runs) if job is None else runs_of(job))
            if end is None:
                typer.echo(
                    f"no longer watched: the Job {self.name} goes on; the same command watches it again,"
                    f" and `kubectl delete vcjob -n {self.settings.namespace} {self.name}` ends it",
                    err=True,
                )
                return INTERRUPTED
            return self._finish(await volume.folder(results_path(self.plan)), end)

    def _left(self, place: Path | None) -> SweepPlan:
        """What has no record yet, neither here nor in the volume."""
        if place is not None:
            collect(self.plan, place, self.folder)
        runs = tuple(run for run in self.plan.distinct.values() if not self.folder.is_done(run.id))
        return structs.replace(self.plan, runs=runs)

    async def _create(self, requests: SweepJobRequests, left: SweepPlan, place: Path | None) -> None:
        """Put the inputs where the pods find them, and create the Job."""
        settings = replace(
            self.settings,
            parallelism=min(self.settings.parallelism, len(left.runs)),
            node_selector=REAL_NODES if self.is_this_machine else None,
        )
        created = manifests(self.name, left, settings, self.cluster.exported, place is not None)
        if len(created) == 1 and not self.cluster.exported and place is not None:
            try:
                export(left, place.parent / plan_path(self.name, left))
            except OSError as error:
                raise Usage(
                    f"{error.filename or place}: cannot be written: {error.strerror or error}"
                ) from None
        await requests.create(created)

    async def _watch(self, requests: SweepJobRequests, runs: int) -> JobEnd | None:
        """Until the Job of so many runs has ended; None if nobody wants to watch any more."""
        total = len(self.plan.distinct)
        progress = SweepProgress(Counts(total, total - runs), self.options.quiet)
        watching = asyncio.ensure_future(JobWatch(requests, progress, total, runs).until_end())
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, watching.cancel)
        try:
            with progress.shown():
                return await watching
        except asyncio.CancelledError:
            return None
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _failed(self, run: PlannedRun) -> FailedRun | None:
        """What a pod noted of a run that failed, with the command that repeats it here."""
        failed = self.folder.failed(run.id)
        here = command_line(command(run, self.folder.record(run.id)))
        return None if failed is None else structs.replace(failed, command=here)

    def _finish(self, place: Path | None, end: JobEnd) -> int:
        """Collect what can be reached from here, and say what came of it."""
        if place is None:
            typer.echo(
                f"runs done: {end.done}, with their records in claim {self.settings.claim},"
                f" folder {results_path(self.plan)}. Copy that folder"
                f" to {self.folder.path}, as docs/sweeps.md says, and give the same command again."
            )
            return 1 if end.failed or end.is_short else 0
        left = self._left(place).runs
        failures = [failed for run in left if (failed := self._failed(run)) is not None]
        for failed in failures:
            typer.echo(failure_text(failed), err=True)
        status = show_end(self.plan, self.folder, failures, self.options)
        if len(left) > len(failures):
            print_error(
                f"runs without a result: {len(left) - len(failures)}, and the Job {self.name} is {end.phase}"
                f"{': ' + end.message if end.message else ''}; the same command goes on with them"
            )
            return 1
        return status
