"""A ring of entries keeps its bounds, drops the oldest first, and counts what it drops."""

from __future__ import annotations

import pytest
from msgspec import Struct

from stromboli.scheduler.explain.decision_ring import DecisionRing


class Note(Struct, frozen=True):
    """An entry of so many bytes; equal ones in a row are merged."""

    text: str
    bytes: int = 10
    count: int = 1


class NoteRing(DecisionRing[Note]):
    def size(self, entry: Note) -> int:
        return entry.bytes

    def joined(self, last: Note, entry: Note) -> Note | None:
        return Note(last.text, last.bytes, last.count + 1) if last.text == entry.text else None


def ring_of(*notes: Note) -> NoteRing:
    ring = NoteRing(3, 90)
    grown = sum(ring.add(note) for note in notes)
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
    ring = ring_of(*notes)
    assert ([note.text for note in ring.entries], ring.dropped) == (kept, dropped)


def test_entries_that_repeat_are_merged() -> None:
    ring = ring_of(*[Note("a")] * 5, Note("b"), Note("a"))
    assert [(note.text, note.count) for note in ring.entries] == [("a", 5), ("b", 1), ("a", 1)]
