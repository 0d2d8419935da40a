"""Jobs that change: only the number of their pods and their priority may."""

import copy
from typing import Any

from stromboli.admission.rules.field import Place, Problem
from stromboli.admission.rules.job_rules import check_total
from stromboli.admission.rules.network_topology_rules import check_topology
from stromboli.admission.rules.semantic_equality import same
from stromboli.admission.rules.task_rules import check_partitions

_FIXED = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and"
    " `PriorityClassName`"
)


def check(job: Place, old: Any) -> None:
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
    now, then = _fixed_part(spec.value), _fixed_part(before)
    changed = [key for key in sorted(now.keys() | then.keys()) if not same(now.get(key), then.get(key), key)]
    if changed:
        where = ", ".join(f"spec.{key}" for key in changed)
        way_out = "take the change back, or make a new job"
        spec.report.add(Problem(where, None, _FIXED, way_out))


def _check_counts(task: Place) -> None:
    name, replicas, least = task["name"].text(), task["replicas"], task["minAvailable"]
    if replicas.number() < 0:
        replicas.wrong(f"'replicas' must be >= 0 in task: {name}")
    if least.number() < 0:
        least.wrong(f"'minAvailable' must be >= 0 in task: {name}")
    elif least.given and least.number() > replicas.number():
        least.wrong(
            f"'minAvailable' must be <= 'replicas' in task: {name}",
            f"at most {replicas.number()}; when scaling down, lower both",
        )


def _fixed_part(spec: Any) -> dict[str, Any]:
    """A specification without all that may change."""
    if not isinstance(spec, dict):
        return {}
    kept = copy.deepcopy(spec)
    for free in ("minAvailable", "priorityClassName"):
        kept.pop(free, None)
    for task in _parts(kept, "tasks"):
        task.pop("replicas", None)
        task.pop("minAvailable", None)
    for volume in _parts(kept, "volumes"):
        if volume.get("volumeClaim") is not None:
            volume.pop("volumeClaimName", None)
    return kept


def _parts(spec: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """The elements of a list, as far as they can be elements."""
    found = spec.get(field)
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
