"""How large jobs and pods may be: one of them must not keep the scheduler and the controllers from the others."""

from typing import Any

import msgspec

from stromboli.admission.rules.field import Field
from stromboli.api.object_bounds import MAX_JOB_BYTES, Size, exceeding, job_sizes, manifest_sizes

_COUNTED = {"tasks": "tasks", "pods": "tasks", "volumes": "volumes"}
"""The field of the spec that has too much of something, where it is a single one."""


def check_job(spec: Field, before: Any = None) -> bool:
    """Report a job that is too large, and say whether it is; one that was so `before` may stay, but not grow."""
    sizes = {size.what: size for size in _sizes(spec)}
    allowed = {size.what: size.amount for size in _sizes(Field(before, spec.report))} if before else {}
    grown = [size for size in sizes.values() if size.amount > allowed.get(size.what, 0)]
    for size in grown:
        field = spec[_COUNTED[size.what]] if size.what in _COUNTED else spec
        field.wrong(f"the job {size}", size.remedy)
    return bool(grown)


def check_pod(spec: Field) -> bool:
    """Report a pod that is too large, and say whether it is."""
    problem = next(manifest_sizes(spec.value), None)
    if problem is not None:
        spec.wrong(f"the pod {problem}", problem.remedy)
    return problem is not None


def _sizes(spec: Field) -> list[Size]:
    tasks = spec["tasks"].items()
    pods = sum(task["replicas"].number() for task in tasks)
    policies = max([_length(spec["policies"]), *(_length(task["policies"]) for task in tasks)])
    size = len(msgspec.json.encode(spec.value)) if spec.given else 0
    return [
        *job_sizes(len(tasks), pods, _length(spec["volumes"]), policies),
        *exceeding([Size("bytes of spec", size, MAX_JOB_BYTES, "move data into ConfigMaps or volumes")]),
    ]


def _length(field: Field) -> int:
    return len(field.value) if isinstance(field.value, list) else 0
