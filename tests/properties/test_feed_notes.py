"""Each note of the change feed is needed: without it, some change of an object is missed.

This tests the property tests of the feed as much as the feed: if a note could be left out and nothing noticed, then
nothing would notice either that a change is not noted.
"""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.properties.feed_notes import Note, notes, without
from tests.properties.single_changes import Change, Witness, changes

WITNESSES: dict[str, Witness] = {}


def is_noticed(note: Note, change: Change) -> bool:
    """Whether a model that does not hear of a change comes to something else than one that is made after it."""
    world, fresh = change.world(after=False), change.world(after=True)
    world.probe()
    fresh.now, fresh.intake.cluster.memory = world.now, deepcopy(world.intake.cluster.memory)
    with without(note) as left_out:
        change.make(world)
        missed = world.probe()
    return bool(left_out) and missed != fresh.probe()


def test_every_note_is_known() -> None:
    assert WITNESSES.keys() == notes().keys()


@pytest.mark.parametrize("name", WITNESSES)
def test_no_note_can_be_left_out(name: str) -> None:
    assert any(is_noticed(notes()[name], change) for change in changes(WITNESSES[name]))
