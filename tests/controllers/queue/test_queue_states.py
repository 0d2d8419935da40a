"""The table of queue states, transition by transition, and what a parent brings."""

from __future__ import annotations

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import Queue, QueueSpec, QueueStatus
from stromboli.controllers.queue.queue_states import StateChange, next_state

OPEN, CLOSED, CLOSING, UNKNOWN = "Open", "Closed", "Closing", "Unknown"
SYNC, DO_OPEN, DO_CLOSE = "SyncQueue", "OpenQueue", "CloseQueue"
MARK = "volcano.sh/closed-by-parent"


def queue(state: str, name: str = "q", parent: str = "root", mark: str = "") -> Queue:
    marks = {MARK: mark} if mark else {}
    return Queue(
        metadata=ObjectMeta(name, annotations=marks),
        spec=QueueSpec(parent=parent),
        status=QueueStatus(state=state),  # type: ignore[arg-type]
    )


ROOT = queue(OPEN, "root", parent="")


@pytest.mark.parametrize(
    ("state", "action", "empty", "busy"),
    [
        (OPEN, DO_OPEN, OPEN, OPEN),
        (OPEN, DO_CLOSE, CLOSED, CLOSING),
        (OPEN, SYNC, OPEN, OPEN),
        ("", DO_OPEN, OPEN, OPEN),
        ("", DO_CLOSE, CLOSED, CLOSING),
        ("", SYNC, OPEN, OPEN),
        (CLOSED, DO_OPEN, OPEN, OPEN),
        (CLOSED, DO_CLOSE, CLOSED, CLOSED),
        (CLOSED, SYNC, CLOSED, CLOSED),
        (CLOSING, DO_OPEN, OPEN, OPEN),
        (CLOSING, DO_CLOSE, CLOSED, CLOSING),
        (CLOSING, SYNC, CLOSED, CLOSING),
        (UNKNOWN, DO_OPEN, OPEN, OPEN),
        (UNKNOWN, DO_CLOSE, CLOSED, CLOSING),
        (UNKNOWN, SYNC, UNKNOWN, UNKNOWN),
        (UNKNOWN, "RestartJob", UNKNOWN, UNKNOWN),
    ],
)
def test_every_row_of_the_table(state: str, action: str, empty: str, busy: str) -> None:
    assert next_state(queue(state), ROOT, False, action).state == empty
    assert next_state(queue(state), ROOT, True, action).state == busy


@pytest.mark.parametrize("above", [CLOSED, CLOSING])
def test_a_queue_is_shut_with_its_parent_and_marked(above: str) -> None:
    parent = queue(above, "team")
    assert next_state(queue(OPEN, parent="team"), parent, False) == StateChange(CLOSED, "true")
    assert next_state(queue(OPEN, parent="team"), parent, True) == StateChange(CLOSING, "true")
    assert next_state(queue(CLOSED, parent="team"), parent, False) == StateChange(CLOSED)


def test_a_queue_that_was_shut_with_its_parent_opens_with_it() -> None:
    parent = queue(OPEN, "team")
    assert next_state(queue(CLOSED, parent="team", mark="true"), parent, False) == StateChange(OPEN, "false")
    assert next_state(queue(CLOSING, parent="team", mark="true"), parent, True) == StateChange(OPEN, "false")


@pytest.mark.parametrize("mark", ["", "false"])
def test_a_queue_that_was_shut_by_itself_stays_shut(mark: str) -> None:
    assert next_state(queue(CLOSED, parent="team", mark=mark), queue(OPEN, "team"), False) == StateChange(
        CLOSED
    )


def test_a_queue_does_not_open_below_a_shut_parent() -> None:
    step = next_state(queue(CLOSED, parent="team"), queue(CLOSING, "team"), False, DO_OPEN)
    assert step.state == CLOSED
    assert step.refusal == (
        "Failed to open queue q because its parent queue team is closing or closed. Open the parent queue first."
    )


def test_the_root_cannot_be_closed() -> None:
    assert next_state(ROOT, None, False, DO_CLOSE) == StateChange(OPEN)


def test_opening_takes_the_mark_off_even_if_we_stopped_half_way() -> None:
    assert next_state(queue(CLOSED, mark="true"), ROOT, False, DO_OPEN) == StateChange(OPEN, "false")
    assert next_state(queue(OPEN, mark="true"), ROOT, False) == StateChange(OPEN, "false")


def test_without_a_parent_in_sight_nothing_is_changed() -> None:
    assert next_state(queue(OPEN, parent="missing"), None, False) == StateChange(OPEN)
    assert next_state(queue(CLOSED, parent="missing", mark="true"), None, False).state == CLOSED
