"""What pods, PodGroups and nodes say about themselves in fields, labels and annotations (spec 01 2, 3, 05 3.4)."""

from __future__ import annotations

import re
from datetime import datetime

from stromboli.api import go_scalars, names
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import Pod
from stromboli.model.status import Status
from stromboli.model.task import Condition, Task

_PHASES = {
    names.POD_RUNNING: Status.RUNNING,
    names.POD_SUCCEEDED: Status.SUCCEEDED,
    names.POD_FAILED: Status.FAILED,
}
_INT32 = re.compile(r"[+-]?[0-9]{1,10}")


def seconds(time: datetime | None) -> float:
    """Seconds since 1970; nothing known is the beginning of time."""
    return time.timestamp() if time is not None else 0.0


def describe_pod(task: Task, pod: Pod) -> None:
    """Give a task all that its pod says, save its job, status and node."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    notes = task.annotations
    task.dying = meta.deletion_timestamp is not None
    task.role = notes.get(names.TASK_SPEC) or meta.labels.get(names.TASK_SPEC, "")
    task.priority = _priority(notes.get(names.TASK_PRIORITY, ""), spec.priority)
    task.pod_priority = spec.priority or 0
    task.priority_class = spec.priority_class_name
    task.preempts = spec.preemption_policy != names.PREEMPT_NEVER
    wish = notes.get(names.PREEMPTABLE, meta.labels.get(names.PREEMPTABLE))
    task.preemptable = True if wish is None else go_scalars.boolean(wish) is True
    task.zone = _zone(notes)
    task.gates = tuple(gate.name for gate in spec.scheduling_gates)
    task.owner = next(((one.kind, one.name) for one in meta.owner_references if one.controller), None)
    task.nominated = status.nominated_node_name
    task.started = seconds(status.start_time) if status.start_time else None
    for one in status.conditions:
        if one.type == names.CONDITION_DISRUPTION_TARGET and task.dying and one.status == "True":
            task.leaves_for_another = one.reason == names.PREEMPTION_BY_SCHEDULER
        if one.type == names.CONDITION_POD_SCHEDULED:
            task.condition = Condition(one.status, one.reason, one.message)
    task.scheduled_at = _scheduled_at(pod)


def status_of(pod: Pod) -> Status:
    """The status that a pod shows."""
    phase = pod.status.phase
    if phase not in (names.POD_RUNNING, names.POD_PENDING):
        return _PHASES.get(phase, Status.UNKNOWN)
    if pod.metadata.deletion_timestamp is not None:
        return Status.RELEASING
    if phase == names.POD_PENDING:
        return Status.BOUND if pod.spec.node_name else Status.PENDING
    return Status.RUNNING


def _scheduled_at(pod: Pod) -> float | None:
    """When the first condition that calls the pod scheduled became true."""
    for one in pod.status.conditions:
        if one.type == names.CONDITION_POD_SCHEDULED and one.status == "True":
            return seconds(one.last_transition_time) if one.last_transition_time else None
    return None


def _priority(annotated: str, given: int | None) -> int:
    if _INT32.fullmatch(annotated) and -(2**31) <= int(annotated) < 2**31:
        return int(annotated)
    return 1 if given is None else given


def _zone(annotations: dict[str, str]) -> str:
    zone = annotations.get(names.REVOCABLE_ZONE)
    if zone is not None:
        return zone if zone == names.ANY_REVOCABLE_ZONE else ""
    return names.ANY_REVOCABLE_ZONE if go_scalars.boolean(annotations.get(names.PREEMPTABLE, "")) else ""


def waiting_time(annotations: dict[str, str]) -> float | None:
    """As the first of the annotations says that makes sense."""
    for key in (names.SLA_WAITING_TIME, names.OLD_SLA_WAITING_TIME):
        waiting = go_scalars.duration(annotations.get(key, ""))
        if waiting is not None and waiting > 0:
            return waiting
    return None


def whole_number(number: str) -> int:
    try:
        value = float(number)
    except ValueError:
        return 0
    return int(value) if -(2.0**62) < value < 2.0**62 else 0


def looks_different(before: NodeObject, after: NodeObject) -> bool:
    """Whether an update is more than a heartbeat."""
    return (
        before.spec != after.spec
        or before.status.allocatable != after.status.allocatable
        or before.status.images != after.status.images
        or before.metadata.labels != after.metadata.labels
        or before.metadata.annotations != after.metadata.annotations
    )
