"""What changes in a job for other numbers of pods, within what an API server lets change; without a terminal."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from stromboli.api.patches import JSON_PATCH
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import FORBIDDEN, ClusterError, shown
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, full_name, name_of, namespace_of
from stromboli.cli.job.job_columns import spec_of, tasks_of, whole_number
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

MOST_REPLICAS = 10**6
"""Pods that a task may be asked to have."""
ONLY_THESE = (
    "only replicas and minAvailable of tasks, minAvailable and the priority class of a job can change"
)


class Scaling(NamedTuple):
    """The change as a JSON patch, and in words."""

    patch: list[dict[str, Any]]
    text: str


def position_of(job: Manifest, task: str) -> int:
    """Which task of the job is meant."""
    known = [str(each.get("name") or "") for each in tasks_of(job)]
    if not task and len(known) == 1:
        return 0
    if task not in known or not task:
        name = full_name(JOBS, name_of(job))
        if not known:
            raise Usage(shown(f"{name} has no tasks"))
        problem = f"has no task {task}" if task else "has several tasks: --task says which"
        listed = ", ".join(filter(None, known)) or "without names"
        raise Usage(shown(f"{name} {problem}; its tasks are {listed}"))
    return known.index(task)


def scaling_of(
    job: Manifest, position: int, replicas: int, minimum: int | None, task_minimum: int | None
) -> Scaling:
    """What has to change for so many replicas; minimums that the API server would refuse go down with them."""
    task, spec = tasks_of(job)[position], spec_of(job)
    name = str(task.get("name") or position)
    if task.get("partitionPolicy"):
        raise ClusterError(
            f"task {name} has partitions of a fixed number and size, so it cannot be scaled: delete the job, and"
            " submit it with another partitionPolicy"
        )
    total = sum(whole_number(each.get("replicas")) for each in tasks_of(job))
    total += replicas - whole_number(task.get("replicas"))
    _check(minimum, total, "--min", "all pods of the job")
    _check(task_minimum, replicas, "--task-min", f"the replicas of task {name}")
    path = f"/spec/tasks/{position}"
    patch: list[dict[str, Any]] = [{"op": "test", "path": f"{path}/name", "value": task.get("name")}]
    if task.get("name") is None:
        patch = []
    changes = [
        _change(patch, f"{path}/replicas", f"{name} replicas", task.get("replicas"), replicas),
        _change(
            patch,
            f"{path}/minAvailable",
            f"{name} minAvailable",
            task.get("minAvailable"),
            _lowered(task.get("minAvailable"), replicas, task_minimum),
        ),
        _change(
            patch,
            "/spec/minAvailable",
            "minAvailable",
            spec.get("minAvailable"),
            _lowered(spec.get("minAvailable"), total, minimum),
        ),
    ]
    return Scaling(patch, ", ".join(filter(None, changes)) or "nothing changes")


async def send_scaling(
    session: ClusterSession, job: Manifest, scaling: Scaling, dry_run: bool = False
) -> Manifest:
    """As a patch; Volcano's role for editors of jobs has the right to update them and none to patch them."""
    where = namespace_of(job) or session.namespace
    try:
        return await session.patch(
            JOBS, name_of(job), scaling.patch, where, content_type=JSON_PATCH, dry_run=dry_run
        )
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        try:
            return await session.replace(JOBS, _scaled(job, scaling), where, dry_run)
        except ApiError as other:
            raise (error if other.status == FORBIDDEN else other) from None


def _scaled(job: Manifest, scaling: Scaling) -> Manifest:
    """The job with the changes of the patch."""
    changed = copy.deepcopy(job)
    for change in scaling.patch:
        target: Any = changed
        *parents, last = change["path"].split("/")[1:]
        for key in parents:
            target = target[int(key)] if isinstance(target, list) else target[key]
        target[last] = change["value"]
    return changed


def _check(wanted: int | None, most: int, option: str, what: str) -> None:
    if wanted is not None and wanted > most:
        raise Usage(f"{option} {wanted} is more than {what}, {most}; {ONLY_THESE}")


def _lowered(current: object, most: int, wanted: int | None) -> int | None:
    """As wanted, else as it is but no more than there are pods; None if nobody set it."""
    if wanted is not None:
        return wanted
    return min(current, most) if isinstance(current, int) else None


def _change(patch: list[dict[str, Any]], path: str, what: str, old: object, new: int | None) -> str:
    if new is None or new == old:
        return ""
    patch.append({"op": "add", "path": path, "value": new})
    return f"{what} {'unset' if old is None else old} -> {new}"
