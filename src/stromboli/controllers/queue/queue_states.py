"""What becomes of a queue: by a command, by its PodGroups, by its parent (spec 06 5)."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.scheduling import Queue

SHUT = frozenset({names.QUEUE_CLOSED, names.QUEUE_CLOSING})
TRUE, FALSE = "true", "false"


class Step(NamedTuple):
    """Where a queue goes from here."""

    state: str
    mark: str | None = None
    """What its annotation `closed-by-parent` becomes, None if that stays as it is."""
    refusal: str = ""
    """Why a command cannot be carried out, if so."""


def state_of(queue: Queue) -> str:
    """A queue without a state is open."""
    return queue.status.state or names.QUEUE_OPEN


def follow(queue: Queue, parent: Queue | None, busy: bool, action: str = names.SYNC_QUEUE) -> Step:
    """One step: first what a command asks for, then what the queue's PodGroups (`busy`) and its parent bring.

    A queue whose parent is shut is shut with it and marked, and opens with it again. One that was shut by itself
    stays shut.
    """
    state, shut = state_of(queue), names.QUEUE_CLOSING if busy else names.QUEUE_CLOSED
    above = _above(queue, parent)
    mark = None
    if action == names.OPEN_QUEUE and state != names.QUEUE_OPEN:
        if above in SHUT and queue.spec.parent != names.ROOT_QUEUE:
            why = names.QUEUE_PARENT_CLOSED.format(queue=queue.name, parent=queue.spec.parent)
            return Step(state, refusal=why)
        state, mark = names.QUEUE_OPEN, FALSE
    elif state == names.QUEUE_CLOSING or (
        action == names.CLOSE_QUEUE and state != names.QUEUE_CLOSED and queue.name != names.ROOT_QUEUE
    ):
        state = shut
    return _below(Step(state, mark), above, queue.metadata.annotations.get(names.CLOSED_BY_PARENT, ""), shut)


def _above(queue: Queue, parent: Queue | None) -> str:
    """The state of the parent; nothing if it is not to be seen. The root is open even where nobody made it."""
    if queue.name == names.ROOT_QUEUE or (parent is None and queue.spec.parent in ("", names.ROOT_QUEUE)):
        return names.QUEUE_OPEN
    return state_of(parent) if parent is not None else ""


def _below(step: Step, above: str, marked: str, shut: str) -> Step:
    """The same, with what the parent brings."""
    mark = step.mark if step.mark is not None else marked
    if above in SHUT and step.state not in SHUT:
        return Step(shut, TRUE if marked != TRUE else None)
    if above == names.QUEUE_OPEN and step.state in SHUT and mark == TRUE:
        return Step(names.QUEUE_OPEN, FALSE)
    if step.state == names.QUEUE_OPEN and mark == TRUE:
        return step._replace(mark=FALSE)  # it was opened, and we stopped before this was written
    return step
