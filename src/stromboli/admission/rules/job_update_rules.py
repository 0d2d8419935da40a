"""Updates of jobs: only the numbers of pods and the priority class may change.

Who applies a manifest again leaves out what admission and the controller had filled in. It stays as it was, so that it
is no change; a minimum that nobody named falls with the replicas.
"""

from typing import Any

import msgspec

from stromboli.admission.rules import job_rules, job_size_rules
from stromboli.admission.rules.field import Field
from stromboli.admission.rules.job_order_rules import check_order
from stromboli.admission.rules.job_rules import check_total, number
from stromboli.admission.rules.network_topology_rules import check_topology
from stromboli.admission.rules.rule_context import Context
from stromboli.admission.rules.semantic_equality import same
from stromboli.admission.rules.task_rules import check_partitions
from stromboli.api.schemas.schema_problems import VOLCANO, Problem

_IMMUTABLE = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and"
    " `PriorityClassName`"
)


def default(job: dict[str, Any], old: dict[str, Any], context: Context) -> None:
    """Fill in what the manifest leaves out: as it was filled in before, else as for a new job."""
    spec, before = job.get("spec"), old.get("spec")
    if not isinstance(spec, dict) or not isinstance(before, dict) or spec == before:
        return
    for key in ("schedulerName", "minAvailable"):
        if not spec.get(key) and not _is_named(old, key):
            spec[key] = before.get(key)
    _keep_claim_names(spec, before)
    tasks = _parts(spec, "tasks")
    for task, task_before in zip(tasks, _parts(before, "tasks"), strict=False):
        _keep_minimum(task, task_before)
    replicas = sum(number(task.get("replicas")) for task in tasks)
    if number(spec.get("minAvailable")) > replicas and not _is_named(job, "minAvailable"):
        del spec["minAvailable"]
    job_rules.default(job, context)


def _keep_minimum(task: dict[str, Any], before: dict[str, Any]) -> None:
    minimum = before.get("minAvailable")
    if task.get("minAvailable") is None and minimum is not None:
        task["minAvailable"] = min(number(minimum), number(task.get("replicas")))


def _is_named(job: dict[str, Any], field: str) -> bool:
    """Whether somebody set a field of the spec, or that is not known; what admission fills in has no manager."""
    metadata = job.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if not isinstance(entries, list) or not entries:
        return True
    return any(f"f:{field}" in _owned_spec(entry) for entry in entries)


def _owned_spec(entry: Any) -> dict[str, Any]:
    fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
    spec = fields.get("f:spec") if isinstance(fields, dict) else None
    return spec if isinstance(spec, dict) else {}


def _keep_claim_names(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Claims that the controller made for volumes stay theirs."""
    claims = {
        volume["mountPath"]: volume.get("volumeClaimName")
        for volume in _parts(before, "volumes")
        if volume.get("volumeClaim") is not None and isinstance(volume.get("mountPath"), str)
    }
    for volume in _parts(spec, "volumes"):
        path = volume.get("mountPath")
        claim = claims.get(path) if isinstance(path, str) else None
        if claim and volume.get("volumeClaim") is not None and not volume.get("volumeClaimName"):
            volume["volumeClaimName"] = claim


def check(job: Field, old: Any, context: Context) -> None:
    """Report what may not change."""
    spec = job["spec"]
    if job_size_rules.check_job(spec, old.get("spec") if isinstance(old, dict) else None):
        return
    tasks = spec["tasks"].items()
    for task in tasks:
        _check_counts(task)
        check_partitions(task, job["metadata"]["name"].text())
    check_total(spec, "job 'minAvailable' must not be greater than total replicas")
    if spec["minAvailable"].number() < 0:
        spec["minAvailable"].wrong("job 'minAvailable' must be >= 0")
    check_topology(spec["networkTopology"])
    check_order(job)
    before = old.get("spec") if isinstance(old, dict) else None
    before_tasks = before.get("tasks") if isinstance(before, dict) else None
    if len(tasks) != (len(before_tasks) if isinstance(before_tasks, list) else 0):
        spec["tasks"].wrong("job updates may not add or remove tasks", "make a new job")
        return
    new, old_part = _immutable_part(spec.value, context), _immutable_part(before, context)
    changed = [
        key for key in sorted(new.keys() | old_part.keys()) if not same(new.get(key), old_part.get(key), key)
    ]
    if changed:
        where = ", ".join(f"spec.{key}" for key in changed)
        remedy = "take the change back, or make a new job"
        spec.report.add(Problem(where, VOLCANO, _IMMUTABLE, remedy))


def _check_counts(task: Field) -> None:
    name, replicas, minimum = task["name"].text(), task["replicas"], task["minAvailable"]
    if replicas.number() < 0:
        replicas.wrong(f"'replicas' must be >= 0 in task: {name}")
    if minimum.number() < 0:
        minimum.wrong(f"'minAvailable' must be >= 0 in task: {name}")
    elif minimum.given and minimum.number() > replicas.number():
        minimum.wrong(
            f"'minAvailable' must be <= 'replicas' in task: {name}",
            f"at most {replicas.number()}; when scaling down, lower both",
        )


def _immutable_part(spec: Any, context: Context) -> dict[str, Any]:
    """A spec with its defaults, in case it was stored without them, and without all that may change."""
    if not isinstance(spec, dict):
        return {}
    fixed: dict[str, Any] = msgspec.to_builtins(spec)  # a copy
    job_rules.default({"spec": fixed}, context)
    for key in ("minAvailable", "priorityClassName"):
        fixed.pop(key, None)
    for task in _parts(fixed, "tasks"):
        task.pop("replicas", None)
        task.pop("minAvailable", None)
    for volume in _parts(fixed, "volumes"):
        if volume.get("volumeClaim") is not None:
            volume.pop("volumeClaimName", None)
    return fixed


def _parts(spec: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The elements of a list that are objects."""
    parts = spec.get(key)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
