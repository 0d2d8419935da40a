"""A queue: a share of the cluster, with a place in a hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model.amounts import Amounts, plus

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import Queue as QueueObject
    from stromboli.model.job import Job

ROOT = "root"


class Queue:
    """A name that jobs point at; it exists once its object arrived, and is open unless told otherwise."""

    __slots__ = (
        "allocated",
        "capability",
        "created",
        "deserved",
        "guarantee",
        "jobs",
        "name",
        "object",
        "pending",
        "pipelined",
        "reported",
        "reserved",
    )

    def __init__(self, name: str):
        self.name = name
        self.object: QueueObject | None = None
        self.created = 0.0
        self.jobs: dict[Job, None] = {}
        self.capability: Amounts = {}
        self.deserved: Amounts = {}
        self.guarantee: Amounts = {}
        self.allocated: Amounts = {}
        """What tasks in an allocated status of its jobs hold."""
        self.pipelined: Amounts = {}
        """What is promised to its tasks on nodes that are still being freed."""
        self.pending: Amounts = {}
        """What its Pending tasks ask for."""
        self.reserved: Amounts = {}
        """The part of it for which room is held beyond a cycle."""
        self.reported: dict[str, str] | None = None
        """The allocated amounts that its status shows."""

    @property
    def exists(self) -> bool:
        return self.object is not None

    @property
    def open(self) -> bool:
        """Open, or of no state yet (spec 02 D17)."""
        return self.object is not None and self.object.status.state in ("", "Open")

    @property
    def held(self) -> Amounts:
        """What its tasks have or were promised: allocated and pipelined together."""
        return plus(self.allocated, self.pipelined) if self.pipelined else self.allocated

    @property
    def weight(self) -> int:
        return self.object.spec.weight if self.object else 1

    @property
    def priority(self) -> int:
        return self.object.spec.priority if self.object else 0

    @property
    def reclaimable(self) -> bool:
        return self.object is None or self.object.spec.reclaimable is not False

    @property
    def parent(self) -> str:
        """The parent's name; every queue but the root has one."""
        if self.name == ROOT or self.object is None:
            return ""
        return self.object.spec.parent or ROOT

    @property
    def annotations(self) -> dict[str, str]:
        return self.object.metadata.annotations if self.object else {}

    def __repr__(self) -> str:
        return f"Queue({self.name})"


def lineage(queue: Queue, queues: dict[str, Queue]) -> list[Queue]:
    """A queue and its ancestors up to the root; an unknown parent counts as root, a cycle ends where it closes."""
    found = [queue]
    while found[-1].name != ROOT:
        parent = queues.get(found[-1].parent) or queues.get(ROOT)
        if parent is None or parent in found:
            break
        found.append(parent)
    return found
