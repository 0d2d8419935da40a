"""Who is whose parent, and which queues no path joins to the root."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.model.queue import ROOT, Queue


class Lineage(NamedTuple):
    """Every queue is in one of the two."""

    ancestors: dict[Queue, tuple[Queue, ...]]
    """Of queues joined to the root: the parent first, the root last."""
    strays: dict[Queue, str]
    """Of the others: what is wrong, and how to mend it."""


def trace(queues: dict[str, Queue]) -> Lineage:
    """Follow the parents of queues that exist; a bad one takes along whatever is below it, and nothing else."""
    found = Lineage({}, {})
    causes: dict[Queue, str] = {}
    for name in sorted(queues):
        for queue in reversed(_climb(queues[name], queues, found)):
            if queue in found.ancestors or queue in found.strays:
                continue
            parent = queues[queue.parent]
            if parent in found.ancestors:
                found.ancestors[queue] = (parent, *found.ancestors[parent])
            else:
                causes[queue] = causes.get(parent, found.strays[parent])
                found.strays[queue] = names.QUEUE_CUT_OFF.format(queue=queue.name, why=causes[queue])
    return found


def _climb(queue: Queue, queues: dict[str, Queue], found: Lineage) -> list[Queue]:
    """The way up to something known: the root, a queue seen before, or what is wrong."""
    trail: dict[Queue, None] = {}
    while queue not in found.ancestors and queue not in found.strays:
        if queue in trail:
            members = list(trail)
            _tell_loop(members[members.index(queue) :], found)
            break
        trail[queue] = None
        if queue.name == ROOT:
            found.ancestors[queue] = ()
        elif queue.parent not in queues:
            found.strays[queue] = names.QUEUE_PARENT_MISSING.format(queue=queue.name, parent=queue.parent)
        else:
            queue = queues[queue.parent]
    return list(trail)


def _tell_loop(members: list[Queue], found: Lineage) -> None:
    for place, queue in enumerate(members):
        around = [*members[place:], *members[:place], queue]
        loop = " -> ".join(one.name for one in around)
        found.strays[queue] = names.QUEUE_PARENT_LOOP.format(queue=queue.name, loop=loop)
