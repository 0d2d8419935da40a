"""What a task holds on its node besides amounts: volumes, devices, cards, CPUs.

A grant is what one task was given, a ledger counts all grants. Grants are chosen when a task gets its node, stay with
it through every status there, and end with the move that removes it. So undoing a move restores them exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.node_columns import Node
    from stromboli.model.status import Status
    from stromboli.model.task import Task


class Grant(Struct, frozen=True, tag=True, tag_field="grant", rename="camel", omit_defaults=True):
    """What a task was given on its node, as plain data: it is part of the bind and is written before it."""

    @property
    def annotations(self) -> Mapping[str, str] | tuple[tuple[str, str], ...]:
        """What the pod is told with its binding: keys that are added to its annotations."""
        return ()


class Ledger(Protocol):
    """Counts what tasks hold on nodes. It is called for every change of weight of a task that concerns it.

    What is counted of a task follows from its grants, its pod and other objects. `remove` takes off exactly what the
    last `add` of the task counted, also when those objects have changed since.
    """

    def concerns(self, spec: PodSpec) -> bool:
        """Whether pods of this spec may hold any of what is counted; those of others cost nothing."""

    def add(self, task: Task, status: Status, node: Node) -> None:
        """A task has this status on a node now; what it holds is leaving, promised or in use by that status."""

    def remove(self, task: Task, status: Status, node: Node) -> None:
        """A task has this status on this node no longer."""
