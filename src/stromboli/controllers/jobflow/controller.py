"""The JobFlow controller: creates the jobs of flows when they are due, and writes the flows' status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.object_bounds import MAX_STEPS
from stromboli.api.patches import merge_patch_between
from stromboli.api.types.jobflow import JobFlow, JobFlowStatus, JobTemplate
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers import selection
from stromboli.controllers.api_writer import is_final
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.job.owned_objects import NameTaken, refuse_foreign
from stromboli.controllers.jobflow.probes import passes
from stromboli.controllers.jobflow.reconcile import (
    TERMINAL,
    reconcile,
    waiting_for_probes,
)
from stromboli.controllers.owner_references import controller_keys, controller_uid, owned_by, owner_key
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.request import ApiError

OBSTACLE_RETRY = 60.0
"""Seconds until a flow is looked at again that could not create all its jobs."""
WORKERS = 3
"""More than one, so that a flow whose probes wait for an answer does not hold up the others."""


class JobFlowController(Controller[str]):
    """One key per flow, `namespace/name`."""

    name = selection.JOB_FLOW
    workers = WORKERS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.max_retries = context.options.max_requeue_num
        self._users = context.store(JobFlow).index(_templates)
        self.flows = self.watch(JobFlow, self._flow_changed)
        self.jobs = self.watch(Job, self._job_changed)
        self.templates = self.watch(JobTemplate, self._template_changed)
        self.pods = self.watch(Pod)
        self._owned = self.jobs.index(owned_by)
        self._pods_of = self.pods.index(owned_by)
        self._warned: dict[str, list[str]] = {}
        """What kept flows from their jobs when they were last looked at, by uid."""

    # -- which flows a change enqueues

    def _flow_changed(self, before: JobFlow | None, now: JobFlow | None) -> Iterable[str]:
        if now is None and before is not None:
            self._warned.pop(before.metadata.uid, None)
        if now is None or (before is not None and _relevant(before) == _relevant(now)):
            return []
        return [now.key]

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        if before is not None and now is not None and before.status == now.status:
            return []
        return controller_keys(JobFlow, before, now)

    def _template_changed(self, before: JobTemplate | None, now: JobTemplate | None) -> Iterable[str]:
        """A new template enqueues the flows that use it."""
        if before is not None or now is None:
            return []
        return [flow.key for flow in self._users[now.key]]

    # -- one flow

    async def sync(self, key: str) -> float | None:
        flow = self.flows.get(key)
        if flow is None or flow.metadata.deletion_timestamp is not None:
            return None
        if flow.status.state.phase in TERMINAL:
            return None
        if (steps := len(flow.spec.flows)) > MAX_STEPS:
            why = f"the flow has {steps} steps, at most {MAX_STEPS} are allowed: use several flows"
            self._record_obstacles(flow, [why])
            return None
        jobs = {job.name: job for job in self._owned[owner_key(flow)]}
        passed = {
            step.name
            for step in waiting_for_probes(flow, jobs)
            if await passes(flow, step, jobs, lambda job: self._pods_of[owner_key(job)])
        }
        templates = {step.name: self.templates.get(step.name, flow.namespace) for step in flow.spec.flows}
        known = {name: template for name, template in templates.items() if template is not None}
        outcome = reconcile(flow, known, jobs.values(), self.context.clock(), passed)
        for job in outcome.delete:
            await self.context.writer.delete(job)
            self.jobs.drop(job)
        obstacles = [why for manifest in outcome.create if (why := await self._create_job(flow, manifest))]
        await self._write_status(flow, outcome.status)
        self._record_obstacles(flow, obstacles)
        if outcome.missing:
            missing = ", ".join(outcome.missing)
            self._record_failure(
                flow, f"there is no JobTemplate {missing} in namespace {flow.namespace}: create it"
            )
        return OBSTACLE_RETRY if obstacles else outcome.requeue_after

    async def _create_job(self, flow: JobFlow, manifest: Manifest) -> str:
        """Create a job unless it exists; why that cannot be done as things are."""
        name = manifest["metadata"]["name"]
        try:
            if await self.context.writer.create(Job, manifest, flow.namespace) is not None:
                self.context.recorder.normal(flow, "Created", f"create a job named {name}!")
            elif (existing := await self.context.writer.read(Job, name, flow.namespace)) is not None:
                refuse_foreign(flow, "Job", name, controller_uid(existing))
        except (NameTaken, ApiError) as error:
            if isinstance(error, ApiError) and not is_final(error):
                raise
            return str(error) if isinstance(error, NameTaken) else f"job {name} is refused: {error}"
        return ""

    def _record_obstacles(self, flow: JobFlow, obstacles: list[str]) -> None:
        """Record each once: a pending flow is synced again and again."""
        known = self._warned.get(flow.metadata.uid, [])
        for why in obstacles:
            if why not in known:
                self._record_failure(flow, why)
        self._warned[flow.metadata.uid] = obstacles

    async def _write_status(self, flow: JobFlow, status: JobFlowStatus) -> None:
        """Patch what differs, and count a flow that has succeeded or failed."""
        patch = merge_patch_between(_status_manifest(flow.status), _status_manifest(status))
        if not patch:
            return
        self.flows.mutated(await self.context.writer.patch(flow, {"status": patch}, "status"))
        if status.state.phase != flow.status.state.phase:
            self.context.metrics.flow_ended(status.state.phase, flow.namespace)

    def gave_up(self, key: str, error: Exception) -> None:
        flow = self.flows.get(key)
        if flow is not None:
            self._record_failure(flow, str(error))

    def _record_failure(self, flow: JobFlow, why: str) -> None:
        self.context.recorder.warning(flow, "SyncJobFlow", f"SyncJobFlow JobFlow failed for {why}")


def _relevant(flow: JobFlow) -> tuple[object, ...]:
    return flow.metadata.uid, flow.spec, flow.status.state.phase, flow.metadata.deletion_timestamp


def _templates(flow: JobFlow) -> list[str]:
    """The templates that a flow uses, by `namespace/name`."""
    return [f"{flow.namespace}/{step.name}" for step in flow.spec.flows]


def _status_manifest(status: JobFlowStatus) -> dict[str, Any]:
    """With empty fields, so that a field that becomes empty is written."""
    fields = msgspec.structs.fields(JobFlowStatus)
    lists = [field for field in fields if field.name.endswith("_jobs")]
    return {
        "state": {"phase": status.state.phase},
        **{field.encode_name: list(getattr(status, field.name)) for field in lists},
        "jobStatusList": msgspec.json.decode(msgspec.json.encode(status.job_status_list)),
        "conditions": status.conditions,
    }
