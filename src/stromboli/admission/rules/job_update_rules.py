"""Updates of jobs: only the numbers of pods and the priority class may change."""

import copy
from typing import Any

from stromboli.admission.rules.field import Field, Problem
from stromboli.admission.rules.job_rules import check_total
from stromboli.admission.rules.network_topology_rules import check_topology
from stromboli.admission.rules.semantic_equality import same
from stromboli.admission.rules.task_rules import check_partitions

_IMMUTABLE = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and"
    " `PriorityClassName`"
)


def check(job: Field, old: Any) -> None:
    """Report what may not change."""
    spec = job["spec"]
    tasks = spec["tasks"].items()
    for task in tasks:
        _check_counts(task)
        check_partitions(task, job["metadata"]["name"].text())
    check_total(spec, "job 'minAvailable' must not be greater than total replicas")
    if spec["minAvailable"].number() < 0:
        spec["minAvailable"].wrong("job 'minAvailable' must be >= 0")
    check_topology(spec["networkTopology"])
    before = old.get("spec") if isinstance(old, dict) else None
    before_tasks = before.get("tasks") if isinstance(before, dict) else None
    if len(tasks) != (len(before_tasks) if isinstance(before_tasks, list) else 0):
        spec["tasks"].wrong("job updates may not add or remove tasks", "make a new job")
        return
    new, old_part = _immutable_part(spec.value), _immutable_part(before)
    changed = [
        key for key in sorted(new.keys() | old_part.keys()) if not same(new.get(key), old_part.get(key), key)
    ]
    if changed:
        where = ", ".join(f"spec.{key}" for key in changed)
        way_out = "take the change back, or make a new job"
        spec.report.add(Problem(where, None, _IMMUTABLE, way_out))


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


def _immutable_part(spec: Any) -> dict[str, Any]:
    """A spec without all that may change."""
    if not isinstance(spec, dict):
        return {}
    fixed = copy.deepcopy(spec)
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
