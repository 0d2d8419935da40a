"""Shelves: the newest state of every object, indexed, told once."""

from __future__ import annotations

import pytest

from stromboli.api.types.meta import ObjectMeta, OwnerReference
from stromboli.controllers.store import Shelf, controller_uid
from stromboli.controllers.watched_kinds import PLACES, Pod


def pod(name: str, version: int = 1, uid: str = "", owner: str = "", space: str = "ns") -> Pod:
    owners = (OwnerReference(kind="Job", name=owner, uid=owner, controller=True),) if owner else ()
    meta = ObjectMeta(
        name, namespace=space, uid=uid or f"u-{name}", resource_version=str(version), owner_references=owners
    )
    return Pod(metadata=meta)


@pytest.fixture
def shelf() -> Shelf[Pod]:
    return Shelf(Pod, PLACES[Pod])


def heard(shelf: Shelf[Pod]) -> list[str]:
    told: list[str] = []

    def name(thing: Pod | None) -> str:
        return f"{thing.name}@{thing.metadata.resource_version}" if thing else "-"

    shelf.listen(lambda before, now: told.append(f"{name(before)} {name(now)}"))
    return told


def test_changes_are_told_with_what_was_and_what_is(shelf: Shelf[Pod]) -> None:
    told = heard(shelf)
    shelf.put(pod("a", 1))
    shelf.put(pod("a", 2))
    shelf.drop(pod("a"))
    assert told == ["- a@1", "a@1 a@2", "a@2 -"]


def test_what_is_there_is_told_to_whoever_comes_late(shelf: Shelf[Pod]) -> None:
    shelf.put(pod("a", 1))
    assert heard(shelf) == ["- a@1"]


def test_what_is_older_than_what_we_know_is_no_news(shelf: Shelf[Pod]) -> None:
    shelf.put(pod("a", 10))
    told = heard(shelf)
    shelf.put(pod("a", 9))
    shelf.put(pod("a", 10))
    assert told == ["- a@10"]
    shelf.put(pod("a", 3, uid="another"))
    assert told[1:] == ["a@10 a@3"]


def test_what_was_written_is_learnt_only_of_the_object_that_is_there(shelf: Shelf[Pod]) -> None:
    shelf.learn(pod("a", 5))
    assert shelf.get("a", "ns") is None
    shelf.put(pod("a", 1))
    shelf.learn(pod("a", 5))
    shelf.put(pod("a", 4))
    found = shelf.get("a", "ns")
    assert found is not None
    assert found.metadata.resource_version == "5"
    shelf.learn(pod("a", 9, uid="another"))
    assert shelf.at("ns/a") is found


def test_the_end_of_another_object_of_that_name_is_no_end(shelf: Shelf[Pod]) -> None:
    shelf.put(pod("a", 1))
    shelf.drop(pod("a", uid="earlier"))
    assert len(shelf) == 1


def test_indexes_follow_every_change(shelf: Shelf[Pod]) -> None:
    shelf.put(pod("early", owner="job"))
    owned, spaces = shelf.index(controller_uid), shelf.index(lambda one: (one.namespace,))
    assert shelf.index(controller_uid) is owned
    shelf.put(pod("b", owner="job"))
    shelf.put(pod("a", owner="job"))
    shelf.put(pod("c", space="elsewhere"))
    assert [one.name for one in owned["job"]] == ["a", "b", "early"]
    assert spaces.count("ns") == 3
    shelf.put(pod("b", 2, owner="other"))
    shelf.drop(pod("early"))
    assert [one.name for one in owned["job"]] == ["a"]
    shelf.drop(pod("a"))
    assert owned["job"] == []
    assert set(owned._found) == {"other"}


def test_a_listener_that_fails_keeps_nobody_from_hearing(
    shelf: Shelf[Pod], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(before: Pod | None, now: Pod | None) -> None:
        raise ZeroDivisionError

    shelf.listen(broken)
    told = heard(shelf)
    shelf.put(pod("a"))
    assert told == ["- a@1"]
    assert "Pod ns/a could not be taken in" in caplog.text
