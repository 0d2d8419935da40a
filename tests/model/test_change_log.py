"""What changed, in order, for those who follow it."""

from __future__ import annotations

from stromboli.model.change_log import LONGEST_LOG, ChangeLog


def test_who_is_too_far_behind_in_the_log_looks_at_everything() -> None:
    log: ChangeLog[str] = ChangeLog()
    begin = log.position
    log.note("a")
    assert log.since(begin) == {"a"}
    for _ in range(2 * LONGEST_LOG):
        log.note("b")
    assert log.since(begin) is None
    assert log.since(log.position - 1) == {"b"}


def test_when_all_is_different_everybody_looks_at_everything() -> None:
    log: ChangeLog[str] = ChangeLog()
    begin = log.position
    log.note_everything()
    assert log.since(begin) is None
    assert log.since(log.position) == set()
