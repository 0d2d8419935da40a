"""Whether a job is too large, which admission refuses: nothing is made of such a job."""

from __future__ import annotations

from stromboli.api.object_bounds import job_sizes, manifest_sizes
from stromboli.api.types.volcano_job import Job


def size_problem(job: Job) -> str:
    """What there is too much of in a job, how much is allowed, and the remedy; empty if nothing."""
    spec = job.spec
    pods = sum(task.replicas for task in spec.tasks)
    policies = max([len(spec.policies), *(len(task.policies) for task in spec.tasks)])
    for size in job_sizes(len(spec.tasks), pods, len(spec.volumes), policies):
        return f"the job {size}: {size.remedy}"
    for task in spec.tasks:
        for size in manifest_sizes(task.template.get("spec")):
            return f"a pod of task {task.name} {size}: {size.remedy}"
    return ""
