"""The volume of a sweep on a cluster, where it is a folder that can be reached from here."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import structs

from stromboli.cli.cli_errors import Usage
from stromboli.cli.sweep.sweep_job_requests import SweepJobRequests
from stromboli.kube.request import ApiError
from stromboli.simulator.sweeps.results_folder import ResultsFolder, is_whole
from stromboli.simulator.sweeps.sweep_plan import SweepPlan


class ClusterVolume:
    """The volume of a claim."""

    def __init__(
        self, requests: SweepJobRequests, claim: str, mounted_at: Path | None, is_this_machine: bool
    ) -> None:
        """`is_this_machine`: nodes are processes of this machine, so that their folders are ours."""
        self._requests = requests
        self._claim = claim
        self._mounted_at = mounted_at
        self._is_this_machine = is_this_machine

    async def folder(self, name: str) -> Path | None:
        """The folder of a sweep in the volume; None if it cannot be reached from here, or does not exist yet."""
        claim = await self._requests.claim(self._claim)
        if claim is None:
            raise Usage(
                f"--claim {self._claim}: no such PersistentVolumeClaim in namespace {self._requests.namespace};"
                " create it first, with access mode ReadWriteMany where nodes are several"
            )
        if self._mounted_at is not None:
            if not self._mounted_at.is_dir():
                raise Usage(f"--volume-folder {self._mounted_at}: no folder; mount the volume there first")
            return self._mounted_at / name
        volume_name = str((claim.get("spec") or {}).get("volumeName") or "")
        if not self._is_this_machine or not volume_name:
            return None
        try:
            volume = await self._requests.volume(volume_name)
        except ApiError:  # who may not read volumes sees no folder
            return None
        spec = (volume or {}).get("spec") or {}
        path = str((spec.get("hostPath") or spec.get("local") or {}).get("path") or "")
        return Path(path) / name if path and Path(path).is_dir() else None


def collect(plan: SweepPlan, place: Path, folder: ResultsFolder) -> None:
    """Copy whole records from the volume, and what is known of runs that failed."""
    there = ResultsFolder(place)
    try:
        for run in plan.distinct.values():
            if not folder.is_done(run.id):
                _collect_run(run.id, there, folder)
    except OSError as error:
        where, why = error.filename or place, error.strerror or error
        raise Usage(f"{where}: cannot be copied to {folder.path}: {why}") from None


def _collect_run(run_id: str, there: ResultsFolder, folder: ResultsFolder) -> None:
    if is_whole(there.record(run_id)):
        shutil.copyfile(there.record(run_id), folder.scratch(run_id))
        folder.scratch(run_id).replace(folder.record(run_id))
        folder.failure(run_id).unlink(missing_ok=True)
    elif (failed := there.failed(run_id)) is not None:
        folder.note_failure(structs.replace(failed, id=run_id))  # the volume may say anything
