"""What makes Volcano Jobs: JobTemplates, JobFlows and CronJobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.types.cronjob import CronJob, CronJobStatus
from stromboli.api.types.jobflow import JobFlow, JobTemplate
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.cronjob.reconcile import reconcile as reconcile_cron_job
from stromboli.controllers.jobflow.flow_jobs import job_name
from stromboli.controllers.jobflow.reconcile import complete_jobs
from stromboli.controllers.jobflow.reconcile import reconcile as reconcile_flow
from stromboli.controllers.owner_references import BATCH_VERSION
from stromboli.simulator.expansion.cron_runs import next_run
from stromboli.simulator.expansion.observed_objects import ObservedObjects
from stromboli.simulator.expansion.submission import BATCH, FLOW, admitted, stable_uid


class JobSources:
    """The manifests of the jobs that other objects make."""

    def __init__(self, observed: ObservedObjects, jobs: Sequence[Job], now: float, notes: list[str]) -> None:
        self._observed = observed
        self._jobs = jobs
        self._now = now
        self._notes = notes
        self._templates: dict[str, JobTemplate] = {}
        self._template_files: dict[str, str] = {}
        self._used_templates: set[str] = set()

    def add_template(self, content: Manifest, where: str) -> None:
        template = decode_as(JobTemplate, msgspec.json.encode(content))
        self._templates[template.key] = template
        self._template_files[template.key] = where

    def jobs_of_flow(self, content: Manifest) -> Iterator[Manifest]:
        """The jobs that a flow starts now; the others are told."""
        flow = decode_as(JobFlow, msgspec.json.encode(admitted(FLOW, "JobFlow", content, self._observed)))
        flow.metadata.uid = flow.metadata.uid or stable_uid("JobFlow", flow.namespace, flow.name)
        inside = f"{flow.namespace}/"
        templates = {
            key.removeprefix(inside): template
            for key, template in self._templates.items()
            if key.startswith(inside)
        }
        self._used_templates |= {inside + step.name for step in flow.spec.flows}
        names_of_steps = {job_name(flow, step.name) for step in flow.spec.flows}
        own = [job for job in self._jobs if job.namespace == flow.namespace and job.name in names_of_steps]
        outcome = reconcile_flow(flow, templates, own, self._now)
        for name in outcome.missing:
            self._notes.append(
                f'JobFlow {flow.key}: there is no JobTemplate "{name}" among the objects: no job is made of it'
            )
        self._note_waiting_steps(flow, {job.name: job for job in own})
        for manifest in outcome.create:
            yield _job_manifest(manifest)

    def _note_waiting_steps(self, flow: JobFlow, jobs: Mapping[str, Job]) -> None:
        complete = complete_jobs(flow, jobs)
        for step in flow.spec.flows:
            name = job_name(flow, step.name)
            targets = step.depends_on.targets if step.depends_on is not None else ()
            before = [target for target in targets if job_name(flow, target) not in complete]
            if before and name not in jobs:
                verb = "has" if len(before) == 1 else "have"
                self._notes.append(
                    f"JobFlow {flow.key}: job {name} is made once {' and '.join(before)} {verb} completed"
                )

    def unused_templates(self) -> Iterator[tuple[Manifest, str]]:
        """A job for each new template that no flow makes one of, and the template's file."""
        for key, template in self._templates.items():
            if key not in self._used_templates and not template.metadata.uid:
                self._notes.append(
                    f"JobTemplate {key}: planned as a job; it takes a JobFlow to make one of it"
                )
                meta = {"name": template.name, "namespace": template.namespace}
                manifest = _job_manifest({"metadata": meta, "spec": template.spec})
                yield manifest, self._template_files[key]

    def job_of_cron_job(self, content: Manifest) -> Manifest | None:
        """The next job of a new CronJob. One that a cluster has starts its jobs by itself."""
        cron = decode_as(CronJob, msgspec.json.encode(admitted(BATCH, "CronJob", content, self._observed)))
        if cron.metadata.uid:
            return None
        cron.metadata.uid = stable_uid("CronJob", cron.namespace, cron.name)
        cron.metadata.creation_timestamp = datetime.fromtimestamp(self._now, UTC)
        cron.status = CronJobStatus()
        due = next_run(cron, self._now, self._notes)
        start = reconcile_cron_job(cron, (), due).start if due is not None else None
        return _job_manifest(start) if start is not None else None


def _job_manifest(manifest: Manifest) -> Manifest:
    return {"apiVersion": BATCH_VERSION, "kind": "Job", **manifest}
