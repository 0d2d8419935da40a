"""Pods of which only the status has changed: their tasks move, instead of leaving and entering.

The echo of a bind and the report that a pod runs are such, and most of what watches bring. A move between two statuses
of equal weight touches the counters of the job alone.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter

from stromboli.model.cluster import Cluster
from stromboli.model.status import WEIGHT
from stromboli.model.task import Task

_COPIED = ("assumed", "condition", "scheduled_at", "started")
"""Fields that change as a pod makes progress, and that nothing in the model is derived from."""
_MOVED = ("status", "node", "grants", "job", "sub_job")
_DERIVED = ("attaches", "_order")
_rest = attrgetter(
    *(field.name for field in fields(Task) if field.name not in {*_COPIED, *_MOVED, *_DERIVED})
)


def makes_progress(cluster: Cluster, before: Task, after: Task, node: str) -> bool:
    """Whether a task differs from what it was in its status alone, on the same node and with the same weight.

    A task that holds more than amounts is none of these: its grants are read from its pod. Nor is one for which room
    is reserved.
    """
    return (
        before.node is not None
        and before.node.name == node
        and WEIGHT[before.status] is WEIGHT[after.status]
        and _rest(before) == _rest(after)
        and not before.grants
        and not cluster.ledgers_of(before.shape)
        and before.uid not in cluster.reservations
        and (before.job is None or before.job.native is None)
    )


def progress(cluster: Cluster, task: Task, seen: Task) -> None:
    """Let a task be what was seen of it."""
    for field in _COPIED:
        setattr(task, field, getattr(seen, field))
    cluster.move(task, seen.status, task.node)
