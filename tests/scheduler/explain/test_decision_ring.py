"""A ring of entries keeps its bounds, drops the oldest first, and counts what it drops."""

from __future__ import annotations

import pytest
from msgspec import Struct

from stromboli.scheduler.explain.decision_ring import DecisionRing, RingBounds


class Note(Struct, frozen=True):
    """An entry of so many bytes, of which equal ones in a row are one."""

    text: str
    bytes: int = 10
    count: int = 1


def joined(last: Note, note: Note) -> Note | None:
    return Note(last.text, last.bytes, last.count + 1) if last.text == note.text else None


def ring_of(*notes: Note, bounds: RingBounds) -> DecisionRing[Note]:
    ring: DecisionRing[Note] = DecisionRing(lambda note: note.bytes, joined)
    grown = sum(ring.add(note, bounds) for note in notes)
    assert grown == ring.bytes == sum(note.bytes for note in ring.entries)
    return ring


@pytest.mark.parametrize(
    ("notes", "kept", "dropped"),
    [
        ([Note("a"), Note("b")], ["a", "b"], 0),
        ([Note("a"), Note("b"), Note("c"), Note("d")], ["b", "c", "d"], 1),
        ([Note("a"), Note("b", 80), Note("c")], ["b", "c"], 1),
        ([Note("a"), Note("b", 500)], [], 2),
    ],
)
def test_the_oldest_entries_are_dropped(notes: list[Note], kept: list[str], dropped: int) -> None:
    ring = ring_of(*notes, bounds=RingBounds(3, 90))
    assert ([note.text for note in ring.entries], ring.dropped) == (kept, dropped)


def test_entries_that_go_on_are_one() -> None:
    ring = ring_of(*[Note("a")] * 5, Note("b"), Note("a"), bounds=RingBounds(3, 90))
    assert [(note.text, note.count) for note in ring.entries] == [("a", 5), ("b", 1), ("a", 1)]
