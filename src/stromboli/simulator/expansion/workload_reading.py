"""Reads the workloads of files: first what others refer to, then jobs, then what makes jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.manifests.manifest_reader import Manifests
from stromboli.api.types.volcano_job import Manifest
from stromboli.controllers.job.plugins.job_plugin import PluginFailure
from stromboli.controllers.workloads.workload_pods import name_suffix
from stromboli.simulator.expansion.job_sources import JobSources
from stromboli.simulator.expansion.kube_workloads import KubeWorkloads, PlannedWorkload
from stromboli.simulator.expansion.observed_objects import ObservedObjects
from stromboli.simulator.expansion.planned_job import PlannedJob
from stromboli.simulator.expansion.submission import BATCH, FLOW
from stromboli.simulator.expansion.volcano_jobs import VolcanoJobs

BUS = "bus.volcano.sh"
BROKEN = (BadObject, PluginFailure)
"""What a workload that cannot be expanded raises."""


class _Entry(NamedTuple):
    group: str
    kind: str
    where: str
    content: Manifest


class WorkloadReader:
    """The workloads of files, each with what it lacks."""

    def __init__(self, manifests: Manifests, observed: ObservedObjects, now: float) -> None:
        self.planned: list[PlannedJob | PlannedWorkload] = []
        self.notes: list[str] = []
        """What is not made, and what was assumed: each in a sentence."""
        self._manifests = manifests
        self._jobs = VolcanoJobs(observed, manifests.priorities.values, self.notes)
        self._sources = JobSources(observed, self._jobs.jobs, now, self.notes)
        self._workloads = KubeWorkloads(observed, now, self.notes)
        self._seen: dict[tuple[str, str, str], str] = {}
        self._read()

    @property
    def owners(self) -> dict[str, PlannedWorkload]:
        """Kubernetes' workloads, by the uid that their pods name."""
        return {
            planned.workload.metadata.uid: planned
            for planned in self.planned
            if isinstance(planned, PlannedWorkload)
        }

    def report(self, where: str, subject: str, error: Exception) -> None:
        """A problem with a workload, under its own name; `BadInput` unless we keep going."""
        field, problem = (error.field, error.problem) if isinstance(error, BadObject) else ("", str(error))
        self._manifests.report(where, BadObject(field, problem, subject))

    def _read(self) -> None:
        entries = [
            _Entry(group, kind, source.where, content)
            for group, kind, source in self._manifests.workloads
            if (content := self._content(group, kind, source.where, msgspec.json.decode(source.raw)))
        ]
        readers: tuple[tuple[str, str, Callable[[Manifest, str], None]], ...] = (
            (BUS, "Command", self._jobs.add_command),
            (FLOW, "JobTemplate", self._sources.add_template),
            (BATCH, "Job", self._plan_job),
            (FLOW, "JobFlow", self._plan_flow),
            (BATCH, "CronJob", self._plan_cron_job),
        )
        for group, kind, read in readers:
            for entry in entries:
                if (entry.group, entry.kind) == (group, kind):
                    self._guarded(read, entry.content, entry.where)
        for manifest, where in self._sources.unused_templates():
            self._guarded(self._plan_job, manifest, where)
        for entry in entries:
            if entry.group in ("", "apps", "batch"):
                self._guarded(self._plan_workload, entry.content, entry.where)

    def _content(self, group: str, kind: str, where: str, content: Manifest) -> Manifest | None:
        """A manifest with a name and a namespace; None if it has no name or was defined before."""
        meta = content.get("metadata")
        meta = dict(meta) if isinstance(meta, dict) else {}
        meta["namespace"] = meta.get("namespace") or names.DEFAULT_NAMESPACE
        prefix = meta.get("generateName")
        if not meta.get("name") and isinstance(prefix, str) and prefix:
            meta["name"] = prefix + name_suffix(where)
        if not isinstance(meta.get("name"), str) or not isinstance(meta["namespace"], str):
            self._manifests.report(where, BadObject("metadata.name", "is missing", kind))
            return None
        name = f"{meta['namespace']}/{meta['name']}"
        first = self._seen.setdefault((group, kind, name), where)
        if first != where:
            problem = f"defined twice: {first} has it too"
            self._manifests.report(where, BadObject("metadata.name", problem, f"{kind} {name}"))
            return None
        return {**content, "metadata": meta}

    def _guarded(self, read: Callable[[Manifest, str], None], content: Manifest, where: str) -> None:
        try:
            read(content, where)
        except BROKEN as error:
            meta = content["metadata"]
            self.report(where, f"{content.get('kind')} {meta['namespace']}/{meta['name']}", error)

    def _plan_job(self, content: Manifest, where: str) -> None:
        planned = self._jobs.plan(content, where)
        if planned is not None:
            self.planned.append(planned)

    def _plan_flow(self, content: Manifest, where: str) -> None:
        for manifest in self._sources.jobs_of_flow(content):
            self._guarded(self._plan_job, manifest, where)

    def _plan_cron_job(self, content: Manifest, where: str) -> None:
        manifest = self._sources.job_of_cron_job(content)
        if manifest is not None:
            self._guarded(self._plan_job, manifest, where)

    def _plan_workload(self, content: Manifest, where: str) -> None:
        planned = self._workloads.plan(content, where)
        if planned is not None:
            self.planned.append(planned)
