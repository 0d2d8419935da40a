"""What changed, in order, for those who follow it."""

from __future__ import annotations

from stromboli.model.feed import MAX_LOG, ChangeLog, Feed


def test_who_is_too_far_behind_in_the_log_looks_at_everything() -> None:
    log: ChangeLog[str] = ChangeLog()
    begin = log.position
    log.note("a")
    assert log.since(begin) == {"a"}
    for _ in range(2 * MAX_LOG):
        log.note("b")
    assert log.since(begin) is None
    assert log.since(log.position - 1) == {"b"}


def test_when_all_is_different_everybody_looks_at_everything() -> None:
    log: ChangeLog[str] = ChangeLog()
    begin = log.position
    log.note_everything()
    assert log.since(begin) is None
    assert log.since(log.position) == set()


def test_every_change_has_a_generation_of_its_own() -> None:
    feed = Feed()
    cards, cpus = feed.topic(), feed.topic()
    cards.note("n0")
    first = cards.generation
    cpus.note("n0")
    assert cards.generation == first
    assert first < cpus.generation == feed.generation
    cards.note_everything()
    assert cards.generation == feed.generation


def test_a_further_topic_begins_with_the_generation_of_its_feed() -> None:
    feed = Feed()
    feed.note_nodes()
    assert feed.topic().generation == feed.generation == 1
