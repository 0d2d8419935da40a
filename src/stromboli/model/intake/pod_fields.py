"""Fields, labels and annotations of pods, PodGroups and nodes as values of the model (spec 01 2, 3, 05 3.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stromboli.api import card_names, go_scalars, names
from stromboli.api.node_state import is_usable
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import Pod
from stromboli.model.devices.pod_claims import pod_claims
from stromboli.model.job import VOLCANO_GROUP, JobId
from stromboli.model.requirements.pod_demands import metadata_demands
from stromboli.model.status import Status
from stromboli.model.task import Condition, Task
from stromboli.model.time_limits import annotated_limit, usable_limit
from stromboli.model.volumes.volume_claims import claims_of

if TYPE_CHECKING:
    from stromboli.api.types.meta import ObjectMeta
    from stromboli.model.interning import Interning
    from stromboli.model.requirements.placement_requirement import Demand
    from stromboli.model.shape import Annotations, LabelSet, Shape


# -- labels and annotations of a pod, read once for consecutive replicas


_INT32 = re.compile(r"[+-]?[0-9]{1,10}")


class PodMetadata:
    """Labels and annotations, shared with equal pods, and the values that a task has of them."""

    __slots__ = (
        "_demands",
        "annotations",
        "job_id",
        "label_set",
        "preemptable",
        "priority",
        "role",
        "time_limit",
        "zone",
    )

    def __init__(self, label_set: LabelSet, annotations: Annotations) -> None:
        labels = label_set.labels
        preemptable = annotations.get(names.PREEMPTABLE, labels.get(names.PREEMPTABLE))
        self.label_set = label_set
        self.annotations = annotations
        self.role: str = annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC, "")
        self.priority = _priority(annotations.get(names.TASK_PRIORITY, ""))
        """The priority that an annotation gives; none if it gives none."""
        self.preemptable = preemptable is None or go_scalars.boolean(preemptable) is True
        self.time_limit = annotated_limit(annotations)
        self.zone = _revocable_zone(annotations)
        group = annotations.get(names.GROUP_NAME, "")
        self.job_id = JobId(VOLCANO_GROUP, label_set.namespace, group) if group else None
        """The job of its PodGroup; none if it names none."""
        self._demands: tuple[Shape, tuple[Demand, ...]] | None = None

    def is_of(self, meta: ObjectMeta) -> bool:
        """Whether a pod has the same labels and annotations."""
        label_set = self.label_set
        return (
            meta.labels == label_set.labels
            and meta.annotations == self.annotations
            and meta.namespace == label_set.namespace
        )

    def demands(self, shape: Shape) -> tuple[Demand, ...]:
        """What a pod of a shape requires of its placement and only a plugin can honour."""
        if self._demands is None or self._demands[0] is not shape:
            of_metadata = metadata_demands(shape.spec, self.label_set.labels, self.annotations)
            self._demands = (shape, shape.demands + of_metadata)
        return self._demands[1]


class MetadataReader:
    """Caches the last pod's metadata: lists are sorted by name, so that replicas are consecutive."""

    def __init__(self, interning: Interning) -> None:
        self._interning = interning
        self._last: PodMetadata | None = None

    def read(self, meta: ObjectMeta) -> PodMetadata:
        """The metadata of a pod."""
        last = self._last
        if last is None or not last.is_of(meta):
            label_set = self._interning.label_set(meta.namespace, meta.labels)
            last = self._last = PodMetadata(label_set, self._interning.annotations(meta.annotations))
        return last


def _priority(annotated: str) -> int | None:
    if _INT32.fullmatch(annotated) and -(2**31) <= int(annotated) < 2**31:
        return int(annotated)
    return None


def _revocable_zone(annotations: dict[str, str]) -> str:
    zone = annotations.get(names.REVOCABLE_ZONE)
    if zone is not None:
        return zone if zone == names.ANY_REVOCABLE_ZONE else ""
    return names.ANY_REVOCABLE_ZONE if go_scalars.boolean(annotations.get(names.PREEMPTABLE, "")) else ""


# -- fields


_PHASES = {
    names.POD_RUNNING: Status.RUNNING,
    names.POD_SUCCEEDED: Status.SUCCEEDED,
    names.POD_FAILED: Status.FAILED,
}


def describe_pod(task: Task, pod: Pod, metadata: PodMetadata) -> None:
    """Copy all fields of a pod to its task, except its job, status and node."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    priority = spec.priority
    task.annotations = metadata.annotations
    task.demands = metadata.demands(task.shape)
    task.role = metadata.role
    task.preemptable = metadata.preemptable
    task.zone = metadata.zone
    task.time_limit = metadata.time_limit
    if spec.active_deadline_seconds is not None:
        task.deadline = usable_limit(spec.active_deadline_seconds)
    if metadata.priority is not None:
        task.priority = metadata.priority
    elif priority is not None:
        task.priority = priority
    task.pod_priority = priority or 0
    task.priority_class = spec.priority_class_name
    task.preempts = spec.preemption_policy != names.PREEMPT_NEVER
    task.nominated = status.nominated_node_name
    if meta.deletion_timestamp is not None:
        task.terminating = True
    if spec.volumes:
        task.volume_claims = claims_of(pod.name, spec.volumes)
    if spec.scheduling_gates:
        task.gates = tuple(gate.name for gate in spec.scheduling_gates)
    if meta.owner_references:
        owners = (owner for owner in meta.owner_references if owner.controller)
        task.owner = next(((owner.kind, owner.name) for owner in owners), None)
    if spec.resource_claims:
        task.claims = pod_claims(pod)
    if status.extended_resource_claim_status is not None:
        task.extended_claim = status.extended_resource_claim_status.resource_claim_name
    if status.start_time is not None:
        task.started = status.start_time.timestamp()
    if status.conditions:
        _describe_conditions(task, pod)


def _describe_conditions(task: Task, pod: Pod) -> None:
    for condition in pod.status.conditions:
        if (
            condition.type == names.CONDITION_DISRUPTION_TARGET
            and task.terminating
            and condition.status == "True"
        ):
            task.preempted = condition.reason == names.PREEMPTION_BY_SCHEDULER
        if condition.type == names.CONDITION_POD_SCHEDULED:
            task.condition = Condition(condition.status, condition.reason, condition.message)
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
    """When its first true PodScheduled condition became true."""
    for condition in pod.status.conditions:
        if condition.type == names.CONDITION_POD_SCHEDULED and condition.status == "True":
            return condition.last_transition_time.timestamp() if condition.last_transition_time else None
    return None


def waiting_time(annotations: dict[str, str]) -> float | None:
    """The waiting time of the first annotation that has a valid one."""
    for key in (names.SLA_WAITING_TIME, names.OLD_SLA_WAITING_TIME):
        waiting = go_scalars.duration(annotations.get(key, ""))
        if waiting is not None and waiting > 0:
            return waiting
    return None


def whole_number(number: str) -> int:
    """A decimal number without its fraction; 0 if the text is invalid, or beyond 62 bits."""
    try:
        value = float(number)
    except ValueError:
        return 0
    return int(value) if -(2.0**62) < value < 2.0**62 else 0


def scheduling_properties_changed(before: NodeObject, after: NodeObject) -> bool:
    """Whether an update changed more than a heartbeat does."""
    return (
        before.spec != after.spec
        or before.status.allocatable != after.status.allocatable
        or before.status.capacity != after.status.capacity
        or before.status.images != after.status.images
        or before.metadata.labels != after.metadata.labels
        or _lasting(before.metadata.annotations) != _lasting(after.metadata.annotations)
        or is_usable(before) != is_usable(after)
    )


def _lasting(annotations: dict[str, str]) -> dict[str, str]:
    """Annotations without the heartbeats of device plugins."""
    if not any(key.endswith(card_names.HANDSHAKE_SUFFIX) for key in annotations):
        return annotations
    return {key: value for key, value in annotations.items() if not key.endswith(card_names.HANDSHAKE_SUFFIX)}
