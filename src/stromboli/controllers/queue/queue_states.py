"""The next state of a queue, from a command, its PodGroups and its parent (spec 06 5)."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.scheduling import Queue

CLOSED_STATES = frozenset({names.QUEUE_CLOSED, names.QUEUE_CLOSING})
TRUE, FALSE = "true", "false"


class StateChange(NamedTuple):
    """The next state of a queue."""

    state: str
    closed_by_parent: str | None = None
    """The new value of that annotation, None if it stays as it is."""
    refusal: str = ""
    """Why a command is refused, if it is."""


def state_of(queue: Queue) -> str:
    """A queue without a state is open."""
    return queue.status.state or names.QUEUE_OPEN


def next_state(queue: Queue, parent: Queue | None, busy: bool, action: str = names.SYNC_QUEUE) -> StateChange:
    """One step: first what a command asks for, then what follows from the parent; a `busy` queue has PodGroups.

    A queue is closed with its parent, which its annotation records, and opens again with it. A queue that was closed by
    itself stays closed.
    """
    state, closed = state_of(queue), names.QUEUE_CLOSING if busy else names.QUEUE_CLOSED
    parent_state = _parent_state(queue, parent)
    annotation = None
    if action == names.OPEN_QUEUE and state != names.QUEUE_OPEN:
        if parent_state in CLOSED_STATES and queue.spec.parent != names.ROOT_QUEUE:
            why = names.QUEUE_PARENT_CLOSED.format(queue=queue.name, parent=queue.spec.parent)
            return StateChange(state, refusal=why)
        state, annotation = names.QUEUE_OPEN, FALSE
    elif state == names.QUEUE_CLOSING or (
        action == names.CLOSE_QUEUE and state != names.QUEUE_CLOSED and queue.name != names.ROOT_QUEUE
    ):
        state = closed
    current = queue.metadata.annotations.get(names.CLOSED_BY_PARENT, "")
    return _follow_parent(StateChange(state, annotation), parent_state, current, closed)


def _parent_state(queue: Queue, parent: Queue | None) -> str:
    """The state of the parent, empty if it does not exist. The root is open even where it was never created."""
    if queue.name == names.ROOT_QUEUE or (parent is None and queue.spec.parent in ("", names.ROOT_QUEUE)):
        return names.QUEUE_OPEN
    return state_of(parent) if parent is not None else ""


def _follow_parent(change: StateChange, parent_state: str, current: str, closed: str) -> StateChange:
    """The same change, with what follows from the parent; `current` is the value of the annotation."""
    annotation = change.closed_by_parent if change.closed_by_parent is not None else current
    if parent_state in CLOSED_STATES and change.state not in CLOSED_STATES:
        return StateChange(closed, TRUE if current != TRUE else None)
    if parent_state == names.QUEUE_OPEN and change.state in CLOSED_STATES and annotation == TRUE:
        return StateChange(names.QUEUE_OPEN, FALSE)
    if change.state == names.QUEUE_OPEN and annotation == TRUE:
        return change._replace(
            closed_by_parent=FALSE
        )  # it was opened, but a crash kept this from being written
    return change
