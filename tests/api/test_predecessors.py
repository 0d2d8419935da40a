"""Jobs that a job waits for: how they are written, and what their phases mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.predecessors import (
    After,
    BadPredecessors,
    Predecessor,
    Verdict,
    format_predecessors,
    parse_predecessors,
)

PHASES = (
    "",
    "Pending",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Failed",
    "Terminated",
    "Aborting",
    "Aborted",
)
ENDS = {"Completed", "Failed", "Terminated"}


def test_names_and_conditions_are_read() -> None:
    assert parse_predecessors("a, afterany:b:c,a") == (
        Predecessor("a"),
        Predecessor("b", After.ANY),
        Predecessor("c", After.ANY),
    )


@pytest.mark.parametrize("after", After)
def test_what_every_phase_means(after: After) -> None:
    met = {phase for phase in PHASES if Predecessor("a", after).verdict(phase) is Verdict.MET}
    never = {phase for phase in PHASES if Predecessor("a", after).verdict(phase) is Verdict.NEVER}
    expected = {
        After.OK: ({"Completed"}, ENDS - {"Completed"}),
        After.ANY: (ENDS, set()),
        After.NOT_OK: (ENDS - {"Completed"}, {"Completed"}),
        After.STARTED: (set(PHASES) - {"", "Pending", "Aborting", "Aborted"}, set()),
    }
    assert (met, never) == expected[after]


@given(st.text(max_size=100))
def test_what_is_read_can_be_written_and_read_again(text: str) -> None:
    try:
        predecessors = parse_predecessors(text)
    except BadPredecessors:
        return
    assert parse_predecessors(format_predecessors(predecessors)) == predecessors
