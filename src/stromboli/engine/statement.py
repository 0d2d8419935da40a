"""A statement: moves that belong together, with three endings.

`commit()` lets decisions leave, `keep()` holds the moves for the rest of the session (as allocate does for a gang
that waits for capacity), and leaving without either takes everything back. Moves are undone last in, first out.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from stromboli.engine.placement.node_placement import Place
from stromboli.model.cluster import Change, Refused
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.transaction import EvictionReason, Journal
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task


class Statement:
    """A group of moves, finished by `commit` or `keep`, or undone when its block is left."""

    def __init__(self, journal: Journal):
        self._journal = journal
        self._start = len(journal)
        self._ended = False

    def __enter__(self) -> Statement:
        self._journal.open_statements += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.open_statements -= 1
        if not self._ended:
            self._journal.roll_back(self._start)

    def __len__(self) -> int:
        """How many moves it holds."""
        return len(self._journal) - self._start

    def assign(self, task: Task, place: Place) -> Refused | None:
        """Assign a task to the node that `session.place` found: allocate if it fits now, otherwise pipeline.

        A plugin may refuse; then nothing moved, and the answer says why. The same holds for the moves below.
        """
        return self.allocate(task, place.node) if place.now else self.pipeline(task, place.node)

    def allocate(self, task: Task, node: Node) -> Refused | None:
        """Allocate a Pending task to a node, without a check whether it fits, which `session.place` makes."""
        return self._journal.give(task, Status.ALLOCATED, node)

    def pipeline(self, task: Task, node: Node, evicted: bool = False) -> Refused | None:
        """Assign a Pending task to a node that is still being freed; `evicted` if pods were evicted for it."""
        refused = self._journal.give(task, Status.PIPELINED, node)
        if refused is None and evicted:
            self._journal.nominate(task)
        return refused

    def evict(self, task: Task, reason: EvictionReason) -> Refused | None:
        """Evict a task; its resources are not promised to another task yet."""
        refused = self._journal.move(task, Status.RELEASING, task.node)
        if refused is None:
            self._journal.record_eviction(task, reason)
        return refused

    def restore(self, victim: Task) -> Refused | None:
        """Reprieve a victim: restore the status that it had before this statement."""
        moves = (change.old_status for change in self.changes() if change.task is victim)
        refused = self._journal.move(victim, next(moves, victim.status), victim.node)
        if refused is None:
            self._journal.rollbacks.append(self._start)  # bounds that count it as evicted become invalid
        return refused

    def changes(self) -> list[Change]:
        """The moves it holds, in order."""
        return [entry for entry in self._journal.entries[self._start :] if isinstance(entry, Change)]

    def evicted(self) -> list[Task]:
        """The tasks that it evicts, in order."""
        gone = (change.task for change in self.changes() if change.status is Status.RELEASING)
        return [task for task in dict.fromkeys(gone) if task.status is Status.RELEASING]

    def release(self, task: Task) -> Refused | None:
        """Undo an assignment of a task of this session: it is Pending again."""
        return self._journal.move(task, Status.PENDING, None)

    def commit(self) -> None:
        """Decide when the cycle ends: bind the allocated tasks, evict the releasing ones.

        What is pipelined is held as by `keep`. Only the outermost statement may be committed.
        """
        if self._journal.open_statements > 1:
            raise RuntimeError("only the outermost statement may be committed")
        self._end()
        self._journal.settle(self._start)

    def keep(self) -> None:
        """Hold the moves until the cycle ends, or until the statement around this one ends; nothing is decided."""
        self._end()

    def _end(self) -> None:
        if self._ended:
            raise RuntimeError("a statement ends once")
        self._ended = True
