"""What a task holds on its node besides amounts: volumes, devices, cards, CPUs.

A grant is what one task was given, a ledger counts all grants. Grants are chosen when a task gets its node, stay with
it through every status there, and end with the move that removes it. So undoing a move restores them exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from stromboli.api.types.meta import Object
    from stromboli.api.types.node import Node as NodeObject
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.status import Status
    from stromboli.model.task import Task


class Grant(Struct, frozen=True, tag=True, tag_field="grant", rename="camel", omit_defaults=True):
    """What a task was given on its node, as plain data: it is part of the bind and is written before it."""

    @property
    def annotations(self) -> Mapping[str, str] | tuple[tuple[str, str], ...]:
        """The annotations that the pod gets with its bind."""
        return ()

    @property
    def needs_write(self) -> bool:
        """Whether other objects are written for it before the bind."""
        return False


class Unsettled(NamedTuple):
    """Tasks of which objects do not show yet what they hold, or no longer show it."""

    uids: frozenset[str]
    tasks: Sequence[Task]
    """Those of them that the cluster has."""

    @property
    def nodes(self) -> set[str]:
        """The names of their nodes."""
        return {task.node.name for task in self.tasks if task.node is not None}


Fact = tuple[tuple[str, str], str]
"""Kind and key of an object, and what is held of it."""


class Ledger:
    """Counts what tasks hold on nodes. It is called for every change of weight of a task that concerns it.

    What is counted of a task follows from its grants, its pod and other objects. `remove` takes off exactly what the
    last `add` of the task counted, also when those objects have changed since. All else that a ledger has to do with
    the model are the other methods, so a new one is a package and a line in `Cluster`.
    """

    kinds: tuple[type[Object], ...] = ()
    """The kinds of objects that it reads, besides pods and nodes."""

    @property
    def generation(self) -> int | None:
        """The generation of the last change of what is counted, if jobs that lack it may be parked until then."""
        return None

    def concerns(self, spec: PodSpec) -> bool:
        """Whether pods of this spec may hold any of what is counted; those of others cost nothing."""
        raise NotImplementedError

    def counts_at(self, node: Node) -> bool:
        """Whether anything is counted on a node."""
        return True

    def add(self, task: Task, status: Status, node: Node) -> None:
        """A task has this status on a node now; what it holds is leaving, promised or in use by that status."""
        raise NotImplementedError

    def remove(self, task: Task, status: Status, node: Node) -> None:
        """A task has this status on this node no longer."""
        raise NotImplementedError

    def shown(self, task: Task, assumed: tuple[Grant, ...]) -> tuple[Grant, ...]:
        """The grants of a task on its node, with those that its pod shows in place of the assumed ones."""
        return assumed

    def recharge(self, job: Job, queue: Queue, sign: int) -> None:
        """A job is about to leave a queue (-1), or has joined it (1), with all that its tasks hold."""

    # -- objects

    def node_changed(self, node: Node, before: NodeObject | None) -> None:
        """The object of a node was added, changed or deleted."""

    def put(self, obj: Object) -> None:
        """An object of its kinds is about to be added or changed; `BadObject` refuses it."""

    def drop(self, obj: Object) -> None:
        """An object of its kinds is about to be deleted."""

    def changed(self, obj: Object) -> None:
        """An object of its kinds was added, changed or deleted, as `LookupObjects` shows."""

    # -- the consistency check

    def facts(self, unsettled: Unsettled) -> Iterator[Fact]:
        """What is held, as texts by which two clusters can be compared, without what unsettled tasks hold."""
        return iter(())
