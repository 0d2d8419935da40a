"""Tasks assumed bound or evicted before the API server's objects show it: what their pods show, and what holds.

Decisions change the model at once and are written later. Until the write arrives or fails, a watch may still show the
pod as it was before:

| assumed                         | the pod shows                 | the task                             |
| bound                           | no node, pending              | stays as assumed                     |
| bound                           | no node, being deleted        | is releasing on the assumed node     |
| bound                           | a node                        | is what the pod shows                |
| evicted                         | bound or running              | stays releasing                      |
| evicted                         | an unknown phase              | is unknown, until the pod shows more |
| evicted                         | being deleted, finished       | is what the pod shows                |
| bound, and the bind failed      |                               | is pending, or releasing, on no node |
| evicted, and the eviction failed| not being deleted             | is bound or running again            |
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.types.pod import Pod
from stromboli.model.cluster import Cluster
from stromboli.model.status import ALLOCATED_CLASS, WEIGHT, Status
from stromboli.model.task import PROGRESS, Task

if TYPE_CHECKING:
    from stromboli.model.ledgers import Grant


_AT_WORK = (Status.BOUND, Status.RUNNING)

MAY_STILL_SHOW = {
    Status.ALLOCATED: (Status.PENDING, *_AT_WORK),
    Status.BINDING: (Status.PENDING, *_AT_WORK),
    Status.PIPELINED: (Status.PENDING,),
    Status.RELEASING: (Status.PENDING, *_AT_WORK),
}
"""The statuses that the API server may still show of a task whose status is a decision of this scheduler."""


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


# -- pods of which only the status has changed: their tasks move, instead of leaving and entering
#
# Most changes that watches report are of this kind: the echo of a bind, a pod that starts to run. A move between two
# statuses of equal weight touches the counters of the job alone.


_MOVED = ("status", "node", "grants", "job", "sub_job")
_DERIVED = ("attaches", "_order")
_rest = attrgetter(
    *(field.name for field in fields(Task) if field.name not in {*PROGRESS, *_MOVED, *_DERIVED})
)


def makes_progress(cluster: Cluster, before: Task, after: Task, node: str) -> bool:
    """Whether a task differs from what it was in its status alone, on the same node and with the same weight.

    A task that holds more than amounts is excluded: its grants are read from its pod. So is a task with a
    reservation.
    """
    return (
        before.node is not None
        and before.node.name == node
        and WEIGHT[before.status] is WEIGHT[after.status]
        and _rest(before) == _rest(after)
        and not before.grants
        and not cluster.ledgers_at(before.shape, before.node)
        and before.uid not in cluster.reservations
        and (before.job is None or before.job.native is None)
    )


def progress(cluster: Cluster, task: Task, seen: Task) -> None:
    """Update a task to what its pod shows."""
    for field in PROGRESS:
        setattr(task, field, getattr(seen, field))
    cluster.move(task, seen.status, task.node)


def grants_of(cluster: Cluster, task: Task, assumed: tuple[Grant, ...]) -> tuple[Grant, ...]:
    """The grants of a task on its node: those that its pod shows, which is all that is left after a restart."""
    for ledger in cluster.ledgers_of(task.shape):
        assumed = ledger.shown(task, assumed)
    return assumed
