"""Tells of every JobTemplate which jobs were made of it (spec 06 8)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.types.jobflow import JobTemplate
from stromboli.api.types.volcano_job import Job
from stromboli.controllers import selection
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller
from stromboli.controllers.jobflow.flow_jobs import CREATED_BY_TEMPLATE


class JobTemplateController(Controller[str]):
    """One key per template, `namespace/name`."""

    name = selection.JOB_TEMPLATE

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.most_retries = desk.options.max_requeue_num
        self.templates = self.watch(JobTemplate, self._template_changed)
        self.jobs = self.watch(Job, self._job_changed)
        self._made = self.jobs.index(_template)

    def _template_changed(self, before: JobTemplate | None, now: JobTemplate | None) -> Iterable[str]:
        return [now.key] if before is None and now is not None else []

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        """Only that a job comes or goes concerns us."""
        if before is not None and now is not None:
            return []
        return [key for one in (before, now) if one is not None for key in _template(one)]

    async def sync(self, key: str) -> float | None:
        template = self.templates.at(key)
        made = tuple(job.name for job in self._made[key])
        if template is not None and made and made != template.status.job_depends_on_list:
            patch = {"status": {"jobDependsOnList": list(made)}}
            self.templates.learn(await self.desk.pen.patch(template, patch, "status"))
        return None

    def gave_up(self, key: str, error: Exception) -> None:
        template = self.templates.at(key)
        if template is not None:
            said = f"SyncJobTemplate JobTemplate failed for {error}"
            self.desk.voice.warning(template, "SyncJobTemplate", said)


def _template(job: Job) -> tuple[str, ...]:
    """`namespace/name` of the template that a job was made of; a namespace has no dots, a template may."""
    namespace, _, name = job.metadata.labels.get(CREATED_BY_TEMPLATE, "").partition(".")
    return (f"{namespace}/{name}",) if name and namespace == job.namespace else ()
