"""The one rule for tasks that we assumed bound or evicted before the API server's objects show it.

Decisions change the model at once and are written later. Until the write arrives, or fails, a watch may still show
the pod as it was before:

| we assumed                      | the pod shows                 | the task                             |
| bound                           | no node, pending              | stays as we assumed                  |
| bound                           | no node, being deleted        | is releasing on the node we assumed  |
| bound                           | a node                        | is what the pod shows                |
| evicted                         | bound or running              | stays releasing                      |
| evicted                         | an unknown phase              | is unknown, until the pod shows more |
| evicted                         | being deleted, finished       | is what the pod shows                |
| bound, and the bind failed      |                               | is pending, or releasing, on no node |
| evicted, and the eviction failed| not being deleted             | is bound or running again            |
"""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.pod import Pod
from stromboli.model.status import ALLOCATED_CLASS, Status
from stromboli.model.task import Task

_AT_WORK = (Status.BOUND, Status.RUNNING)

MAY_STILL_SHOW = {
    Status.ALLOCATED: (Status.PENDING, *_AT_WORK),
    Status.BINDING: (Status.PENDING, *_AT_WORK),
    Status.PIPELINED: (Status.PENDING,),
    Status.RELEASING: (Status.PENDING, *_AT_WORK),
}
"""The statuses that the API server may still show of a task which has a status by our decision."""


class Observation(NamedTuple):
    """What a task is after its pod was seen: its status, the name of its node, and what is still assumed."""

    status: Status
    node: str
    assumed: Status | None = None


def observe(task: Task | None, pod: Pod, shown: Status) -> Observation | None:
    """The task, known or new, of a pod that shows this status; None if the pod is shown as before our bind."""
    node = pod.spec.node_name
    if task is None:
        return Observation(shown, node)
    if not node and pod.status.phase == names.POD_PENDING and task.node is not None and _assumed_bound(task):
        deleted = shown is Status.RELEASING
        return Observation(shown, task.node.name, Status.BINDING) if deleted else None
    if task.assumed is not Status.RELEASING:
        return Observation(shown, node)
    if shown in _AT_WORK:
        return Observation(Status.RELEASING, node, Status.RELEASING)
    return Observation(shown, node, Status.RELEASING if shown is Status.UNKNOWN else None)


def _assumed_bound(task: Task) -> bool:
    return ALLOCATED_CLASS[task.status] or task.assumed is Status.BINDING


def after_failed_bind(task: Task) -> Status | None:
    """The status, on no node, of a task whose bind failed; None if its pod was seen on a node meanwhile."""
    if task.assumed is Status.BINDING:
        return Status.RELEASING
    return Status.PENDING if task.status is Status.BINDING else None


def after_failed_eviction(task: Task) -> Status | None:
    """The status, on its node, of a task whose eviction failed; None if its pod is being deleted all the same."""
    if task.status is not Status.RELEASING or task.terminating:
        return None
    return Status.RUNNING if task.started is not None else Status.BOUND
