"""Volcano's Jobs, with the PodGroup and the claims that each lacks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.object_bounds import MAX_PODS
from stromboli.api.types.volcano_job import Command, Job, Manifest
from stromboli.controllers.job.job_phases import Phase, is_live, transition_of
from stromboli.controllers.job.job_pod_group import group_of
from stromboli.controllers.job.job_pods import group_name
from stromboli.controllers.job.job_volumes import volumes_of
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, PluginFailure
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.simulator.expansion.observed_objects import ObservedObjects, OwnerKey
from stromboli.simulator.expansion.planned_job import PlannedJob
from stromboli.simulator.expansion.submission import BATCH, admitted, stable_uid

_ENDING = (Phase.ABORTING, Phase.COMPLETING, Phase.TERMINATING)


class VolcanoJobs:
    """Expands jobs; Commands among the files count."""

    def __init__(self, observed: ObservedObjects, priorities: Mapping[str, int], notes: list[str]) -> None:
        self.jobs: list[Job] = []
        """Every job that was read, also those that have no pods now."""
        self._observed = observed
        self._priorities = priorities
        self._notes = notes
        self._plugins = JobPlugins()
        self._commands: dict[str, Command] = {}

    def add_command(self, content: Manifest, where: str) -> None:
        """A command counts for the job that it names."""
        command = decode_as(Command, msgspec.json.encode(content))
        if command.target is not None and command.target.kind == "Job":
            self._commands[f"{command.namespace}/{command.target.name}"] = command
        else:
            self._notes.append(
                f"Command {command.key} ({command.action}): a plan carries out none but those on jobs"
            )

    def plan(self, content: Manifest, where: str) -> PlannedJob | None:
        """A job with its PodGroup and claims; None if it is to have no pods now."""
        job = decode_as(Job, msgspec.json.encode(admitted(BATCH, "Job", content, self._observed)))
        self.jobs.append(job)
        key = OwnerKey(BATCH, "Job", job.namespace, job.name)
        job.metadata.uid = (
            job.metadata.uid or self._observed.uids.get(key, "") or stable_uid("Job", job.namespace, job.name)
        )
        pods = sum(task.replicas for task in job.spec.tasks)
        if pods > MAX_PODS:
            raise BadObject(
                "spec.tasks", f"{pods} pods; at most {MAX_PODS} are made for one job", f"Job {job.key}"
            )
        if job.metadata.deletion_timestamp is not None or not self._is_live(job):
            return None
        volumes = volumes_of(job, lambda name: f"{job.namespace}/{name}" in self._observed.claims)
        if problem := volumes.problem or self._queue_problem(job):
            self._notes.append(f"Job {job.key}: {problem}; it gets no pods until that is there")
            return None
        if volumes.named is not None:
            named = zip(job.spec.volumes, volumes.named, strict=True)
            job.spec.volumes = tuple(
                msgspec.structs.replace(volume, volume_claim_name=name) for volume, name in named
            )
        group, exists = self._group(job, key)
        manifests = [] if exists else [group_of(job, self._priorities)]
        for manifest in manifests:
            manifest["metadata"]["name"] = group
        return PlannedJob(job, where, group, self._plugins_of(job), [*manifests, *volumes.claims])

    def _is_live(self, job: Job) -> bool:
        """Whether a job has pods; one that was suspended, or is to be, is told."""
        phase = job.status.state.phase
        command = self._commands.get(job.key)
        if command is not None:
            leads_to = transition_of(phase, command.action).to
            if leads_to in _ENDING:
                self._notes.append(
                    f"Job {job.key}: the Command {command.name} ({command.action}) stops it: no pods"
                )
                return False
            phase = leads_to or phase
        if phase in (Phase.ABORTING, Phase.ABORTED):
            self._notes.append(
                f"Job {job.key} is suspended ({phase}): it has no pods until a Command resumes it"
            )
        return is_live(phase)

    def _queue_problem(self, job: Job) -> str:
        name = job.spec.queue or names.DEFAULT_QUEUE
        return "" if self._observed.queues.get(name) is not None else f'there is no Queue "{name}"'

    def _group(self, job: Job, key: OwnerKey) -> tuple[str, bool]:
        """The name of the job's PodGroup, and whether the files have it."""
        generated = group_name(job)
        known = self._observed.owned_groups.get(key)
        if known is None and f"{job.namespace}/{generated}" in self._observed.groups:
            known = generated
        if known is not None:
            return known, True
        return (generated if f"{job.namespace}/{job.name}" in self._observed.groups else job.name), False

    def _plugins_of(self, job: Job) -> tuple[JobPlugin, ...]:
        try:
            plugins, problems = self._plugins.for_job(job)
        except PluginFailure as error:
            self._notes.append(f"Job {job.key}: {error}; its pods are planned without job plugins")
            return ()
        self._notes += [f"Job {job.key}: {problem}" for problem in problems]
        return plugins
