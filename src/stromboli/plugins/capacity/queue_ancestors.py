"""The ancestors of each queue, and queues that are not connected to the root."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.api.name_cycles import format_cycle
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.model.queue import ROOT, Queue


class QueuePaths(NamedTuple):
    """Every queue is in one of the two dicts."""

    ancestors: dict[Queue, tuple[Queue, ...]]
    """Of queues connected to the root: the parent first, the root last."""
    detached: dict[Queue, str]
    """Of the others: what is wrong, and how to fix it."""


def queue_paths(queues: dict[str, Queue]) -> QueuePaths:
    """Follow the parents of queues that exist; a bad parent detaches the queues below it, and no others."""
    paths = QueuePaths({}, {})
    causes: dict[Queue, str] = {}
    for name in sorted(queues):
        for queue in reversed(_unknown_ancestors(queues[name], queues, paths)):
            if queue in paths.ancestors or queue in paths.detached:
                continue
            parent = queues[queue.parent]
            if parent in paths.ancestors and len(paths.ancestors[parent]) < MAX_QUEUE_DEPTH:
                paths.ancestors[queue] = (parent, *paths.ancestors[parent])
            elif parent in paths.ancestors:
                text = names.QUEUE_TOO_DEEP.format(queue=queue.name, most=MAX_QUEUE_DEPTH)
                paths.detached[queue] = text
            else:
                causes[queue] = causes.get(parent, paths.detached[parent])
                paths.detached[queue] = names.QUEUE_CUT_OFF.format(queue=queue.name, why=causes[queue])
    return paths


def _unknown_ancestors(queue: Queue, queues: dict[str, Queue], paths: QueuePaths) -> list[Queue]:
    """The queues from this one up to the root, a queue that is known already, or an error."""
    unknown: dict[Queue, None] = {}
    while queue not in paths.ancestors and queue not in paths.detached:
        if queue in unknown:
            members = list(unknown)
            _detach_loop(members[members.index(queue) :], paths)
            break
        unknown[queue] = None
        if queue.name == ROOT:
            paths.ancestors[queue] = ()
        elif queue.parent not in queues:
            paths.detached[queue] = names.QUEUE_PARENT_MISSING.format(queue=queue.name, parent=queue.parent)
        else:
            queue = queues[queue.parent]
    return list(unknown)


def _detach_loop(members: list[Queue], paths: QueuePaths) -> None:
    cycle = [member.name for member in members]
    for index, queue in enumerate(members):
        loop = format_cycle(cycle, index)
        paths.detached[queue] = names.QUEUE_PARENT_LOOP.format(queue=queue.name, loop=loop)
