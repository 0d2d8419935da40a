"""Writes that the store does not show yet."""

from __future__ import annotations

from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.pending_writes import TIMEOUT, PendingWrites
from tests.controllers.workloads.replicated_objects import NOW, pod


def test_what_was_created_counts_until_the_store_shows_it() -> None:
    writes: PendingWrites[Pod] = PendingWrites()
    writes.created(pod("a"), NOW)
    assert [each.name for each in writes.apply([pod("b")], NOW)] == ["b", "a"]
    assert writes.observed(pod("a"))
    assert writes.apply([pod("b")], NOW) == [pod("b")]
    assert not writes


def test_a_state_of_another_object_or_of_later_is_not_what_was_created() -> None:
    writes: PendingWrites[Pod] = PendingWrites()
    writes.created(pod("a", resourceVersion="2"), NOW)
    assert not writes.observed(pod("a", uid="former"))
    assert writes.has_created("a")
    assert not writes.observed(pod("a", resourceVersion="3"))
    assert not writes


def test_a_pod_whose_deletion_failed_stays_even_if_the_store_does_not_show_it_yet() -> None:
    writes: PendingWrites[Pod] = PendingWrites()
    writes.created(pod("a"), NOW)
    writes.deleted(pod("a"), NOW)
    writes.not_deleted(pod("a"))
    assert writes.apply([], NOW) == [pod("a")]


def test_what_was_created_takes_the_place_of_what_was_deleted() -> None:
    writes: PendingWrites[Pod] = PendingWrites()
    former = pod("a", uid="former")
    writes.created(pod("a"), NOW)
    assert writes.apply([former], NOW) == [former]
    writes.deleted(former, NOW)
    writes.created(pod("a"), NOW)
    assert writes.apply([former], NOW) == [pod("a")]


def test_what_was_deleted_is_being_deleted_until_it_is_gone() -> None:
    writes: PendingWrites[Pod] = PendingWrites()
    writes.deleted(pod("a"), NOW)
    shown = writes.apply([pod("a"), pod("b")], NOW)
    assert [each.metadata.deletion_timestamp is not None for each in shown] == [True, False]
    writes.gone(pod("a"))
    assert not writes


def test_what_the_store_never_shows_is_forgotten() -> None:
    writes: PendingWrites[Pod] = PendingWrites()
    writes.created(pod("a"), NOW)
    writes.deleted(pod("b"), NOW)
    assert writes.until == NOW + TIMEOUT
    assert writes.apply([], NOW + TIMEOUT + 1) == []
    assert writes.until is None
