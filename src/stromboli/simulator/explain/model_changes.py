"""Changes to objects, applied to a loaded cluster for a while and taken back after that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.manifests.merge_patches import merged
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.pod import Pod, PodSpec
from stromboli.model.intake.object_intake import Intake
from stromboli.model.intake.sub_jobs import sub_job_of
from stromboli.model.job import VOLCANO_GROUP, JobId
from stromboli.model.task import Task
from stromboli.simulator.explain.explanation_document import ObjectChange


@contextmanager
def applied(intake: Intake, changes: Sequence[ObjectChange]) -> Iterator[None]:
    """The cluster with these changes while this lasts."""
    with ExitStack() as undone:
        for change in changes:
            undone.callback(_apply(intake, change))
        yield
    intake.cluster.settle()


def as_manifest(object: Object) -> dict[str, Any]:
    """An object as JSON has it, with the fields that a scheduler reads."""
    manifest: dict[str, Any] = msgspec.to_builtins(object)
    return manifest


def _apply(intake: Intake, change: ObjectChange) -> Callable[[], None]:
    """Apply a change; gives the way back."""
    if change.kind == "Pod":
        return _apply_to_pods(intake, change)
    if change.operation == "create":
        created = _decoded(change.kind, change.patch)
        intake.put(created)
        return lambda: intake.drop(created)
    before = [_object(intake, change.kind, change.namespace, name) for name in change.names]
    for object in before:
        intake.put(_decoded(change.kind, merged(as_manifest(object), change.patch)))

    def back() -> None:
        for object in before:
            intake.put(object)

    return back


def _object(intake: Intake, kind: str, namespace: str, name: str) -> Object:
    cluster = intake.cluster
    object: Object | None
    if kind == "PodGroup":
        object = cluster.jobs[JobId(VOLCANO_GROUP, namespace, name)].group
    elif kind == "Queue":
        object = cluster.queues[name].object
    else:
        object = cluster.nodes[name].object
    assert object is not None
    return object


def _decoded(kind: str, manifest: Mapping[str, Any]) -> Object:
    object = decode({**manifest, "kind": kind})
    assert object is not None
    return object


# -- pods


def _apply_to_pods(intake: Intake, change: ObjectChange) -> Callable[[], None]:
    """Pods leave, or others take their places: the model keeps no Pod objects, but all that is read of them."""
    cluster, wanted = intake.cluster, set(change.names)
    before = [
        task for task in cluster.tasks.values() if task.namespace == change.namespace and task.name in wanted
    ]
    after = [] if change.operation == "delete" else [_changed(intake, task, change.patch) for task in before]
    _exchange(intake, before, after)
    return lambda: _exchange(intake, after, before)


def _exchange(intake: Intake, leaving: Sequence[Task], coming: Sequence[Task]) -> None:
    for task in leaving:
        intake.cluster.leave(task)
    for task in coming:
        if task.job is not None:
            task.sub_job = sub_job_of(task.job, task.label_set.labels)
        intake.cluster.enter(task)


def _changed(intake: Intake, task: Task, patch: Mapping[str, Any]) -> Task:
    """A task like this one whose pod has another spec."""
    spec = msgspec.convert(merged(as_plain(task.shape.spec), patch.get("spec", {})), PodSpec)
    changed, shape = copy(task), intake.shape_of(Pod(ObjectMeta(""), spec=spec))
    if shape.demands != task.shape.demands:
        own = tuple(demand for demand in task.demands if demand not in task.shape.demands)
        changed.demands = (*own, *shape.demands)
    changed.shape = shape
    if spec.priority is not None:
        changed.pod_priority, changed.priority_class = spec.priority, spec.priority_class_name
        if names.TASK_PRIORITY not in task.annotations:
            changed.priority = spec.priority
    if "schedulingGates" in patch.get("spec", {}):
        changed.gates = tuple(gate.name for gate in spec.scheduling_gates)
    return changed


def as_plain(spec: PodSpec) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(spec)
    return plain
