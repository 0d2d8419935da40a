"""The JobTemplate controller: writes into a template's status which jobs were created from it (spec 06 8)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.types.jobflow import JobTemplate
from stromboli.api.types.volcano_job import Job
from stromboli.controllers import selection
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.jobflow.flow_jobs import CREATED_BY_TEMPLATE

MAX_JOBS = 1_000
"""Jobs that a template's status lists, the last by name."""


class JobTemplateController(Controller[str]):
    """One key per template, `namespace/name`."""

    name = selection.JOB_TEMPLATE

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.max_retries = context.options.max_requeue_num
        self.templates = self.watch(JobTemplate, self._template_changed)
        self.jobs = self.watch(Job, self._job_changed)
        self._created = self.jobs.index(_template)

    def _template_changed(self, before: JobTemplate | None, now: JobTemplate | None) -> Iterable[str]:
        return [now.key] if before is None and now is not None else []

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        """Only creations and deletions matter."""
        if before is not None and now is not None:
            return []
        return [key for job in (before, now) if job is not None for key in _template(job)]

    async def sync(self, key: str) -> float | None:
        template = self.templates.get(key)
        jobs = tuple(job.name for job in self._created[key][-MAX_JOBS:])
        if template is not None and jobs and jobs != template.status.job_depends_on_list:
            patch = {"status": {"jobDependsOnList": list(jobs)}}
            self.templates.mutated(await self.context.writer.patch(template, patch, "status"))
        return None

    def gave_up(self, key: str, error: Exception) -> None:
        template = self.templates.get(key)
        if template is not None:
            text = f"SyncJobTemplate JobTemplate failed for {error}"
            self.context.recorder.warning(template, "SyncJobTemplate", text)


def _template(job: Job) -> tuple[str, ...]:
    """`namespace/name` of the template that a job was created from; a namespace has no dots, a template may."""
    namespace, _, name = job.metadata.labels.get(CREATED_BY_TEMPLATE, "").partition(".")
    return (f"{namespace}/{name}",) if name and namespace == job.namespace else ()
