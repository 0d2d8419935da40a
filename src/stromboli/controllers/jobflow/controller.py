"""Makes the jobs of flows when it is their turn, and keeps count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.types.jobflow import JobFlow, JobFlowStatus, JobTemplate
from stromboli.api.types.volcano_job import Job
from stromboli.controllers import selection
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller, Hindrance
from stromboli.controllers.jobflow.probes import passes
from stromboli.controllers.jobflow.reconcile import FAILED, OVER, SUCCEED, Look, look, waiting_for_probes
from stromboli.controllers.merge_patch_diff import merge_patch
from stromboli.controllers.store import controller_uid
from stromboli.controllers.watched_kinds import Pod

WORKERS = 3
"""A flow that waits for the answer of a pod must not keep others waiting."""


class JobFlowController(Controller[str]):
    """One key per flow, `namespace/name`."""

    name = selection.JOB_FLOW
    workers = WORKERS

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.most_retries = desk.options.max_requeue_num
        self._users = desk.shelf(JobFlow).index(_templates)
        self.flows = self.watch(JobFlow, self._flow_changed)
        self.jobs = self.watch(Job, self._job_changed)
        self.templates = self.watch(JobTemplate, self._template_changed)
        self.pods = self.watch(Pod)
        self._owned = self.jobs.index(controller_uid)
        self._pods_of = self.pods.index(controller_uid)

    # -- what concerns which flow

    def _flow_changed(self, before: JobFlow | None, now: JobFlow | None) -> Iterable[str]:
        if now is None or (before is not None and _matters(before) == _matters(now)):
            return []
        return [now.key]

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        if before is not None and now is not None and before.status == now.status:
            return []
        return {
            f"{one.namespace}/{owner.name}"
            for one in (before, now)
            if one is not None
            for owner in one.metadata.owner_references
            if owner.controller and owner.kind == "JobFlow"
        }

    def _template_changed(self, before: JobTemplate | None, now: JobTemplate | None) -> Iterable[str]:
        """A template that comes lets the flows go on that have waited for it."""
        if before is not None or now is None:
            return []
        return [flow.key for flow in self._users[now.key]]

    # -- putting right

    async def sync(self, key: str) -> float | None:
        flow = self.flows.at(key)
        if flow is None or flow.metadata.deletion_timestamp is not None:
            return None
        if flow.status.state.phase in OVER:
            return None
        jobs = {job.name: job for job in self._owned[flow.metadata.uid]}
        passed = {
            step.name
            for step in waiting_for_probes(flow, jobs)
            if await passes(flow, step, jobs, lambda job: self._pods_of[job.metadata.uid])
        }
        templates = {step.name: self.templates.get(step.name, flow.namespace) for step in flow.spec.flows}
        known = {name: template for name, template in templates.items() if template is not None}
        found = look(flow, known, jobs.values(), self.desk.clock(), passed)
        for job in found.delete:
            await self.desk.pen.delete(job)
            self.jobs.drop(job)
        await self._make(flow, found)
        await self._tell(flow, found.status)
        if found.missing:
            missing = ", ".join(found.missing)
            raise Hindrance(f"there is no JobTemplate {missing} in namespace {flow.namespace}: create it")
        return found.again

    async def _make(self, flow: JobFlow, found: Look) -> None:
        for manifest in found.make:
            name = manifest["metadata"]["name"]
            if await self.desk.pen.create(Job, manifest, flow.namespace) is not None:
                self.desk.voice.normal(flow, "Created", f"create a job named {name}!")
                continue
            there = await self.desk.pen.read(Job, name, flow.namespace)
            if there is not None and flow.metadata.uid not in controller_uid(there):
                raise Hindrance(f"a job {name} that is not of this flow is in the way: delete or rename it")

    async def _tell(self, flow: JobFlow, status: JobFlowStatus) -> None:
        """Write what differs, and count a flow that has come to its end."""
        patch = merge_patch(_plain(flow.status), _plain(status))
        if not patch:
            return
        self.flows.learn(await self.desk.pen.patch(flow, {"status": patch}, "status"))
        ends = {SUCCEED: self.desk.metrics.succeeded_flows, FAILED: self.desk.metrics.failed_flows}
        phase = status.state.phase
        if phase in ends and phase != flow.status.state.phase:
            ends[phase].labels(flow.namespace).inc()

    def gave_up(self, key: str, error: Exception) -> None:
        flow = self.flows.at(key)
        if flow is not None:
            self.desk.voice.warning(flow, "SyncJobFlow", f"SyncJobFlow JobFlow failed for {error}")


def _matters(flow: JobFlow) -> tuple[object, ...]:
    return flow.metadata.uid, flow.spec, flow.status.state.phase, flow.metadata.deletion_timestamp


def _templates(flow: JobFlow) -> list[str]:
    """The templates that a flow uses, by `namespace/name`."""
    return [f"{flow.namespace}/{step.name}" for step in flow.spec.flows]


def _plain(status: JobFlowStatus) -> dict[str, Any]:
    """All of it, so that what becomes empty is written too."""
    lists = ("pending", "running", "failed", "completed", "terminated", "un_know")
    return {
        "state": {"phase": status.state.phase},
        **{_camel(f"{name}_jobs"): list(getattr(status, f"{name}_jobs")) for name in lists},
        "jobStatusList": msgspec.json.decode(msgspec.json.encode(status.job_status_list)),
        "conditions": status.conditions,
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
