"""Stores: the newest state of every object, indexed, recorded once."""

from __future__ import annotations

import pytest

from stromboli.api.types.meta import ObjectMeta, OwnerReference
from stromboli.controllers.owner_references import controller_uid
from stromboli.controllers.store import Store
from stromboli.controllers.watched_kinds import Pod
from stromboli.controllers.watched_resources import WATCHED_RESOURCES


def pod(name: str, version: int = 1, uid: str = "", owner: str = "", space: str = "ns") -> Pod:
    owners = (OwnerReference(kind="Job", name=owner, uid=owner, controller=True),) if owner else ()
    meta = ObjectMeta(
        name, namespace=space, uid=uid or f"u-{name}", resource_version=str(version), owner_references=owners
    )
    return Pod(metadata=meta)


@pytest.fixture
def store() -> Store[Pod]:
    return Store(Pod, WATCHED_RESOURCES[Pod])


def changes_of(store: Store[Pod]) -> list[str]:
    recorded: list[str] = []

    def name(obj: Pod | None) -> str:
        return f"{obj.name}@{obj.metadata.resource_version}" if obj else "-"

    store.add_event_handler(lambda before, now: recorded.append(f"{name(before)} {name(now)}"))
    return recorded


def test_changes_are_told_with_what_was_and_what_is(store: Store[Pod]) -> None:
    recorded = changes_of(store)
    store.put(pod("a", 1))
    store.put(pod("a", 2))
    store.drop(pod("a"))
    assert recorded == ["- a@1", "a@1 a@2", "a@2 -"]


def test_what_is_there_is_told_to_whoever_comes_late(store: Store[Pod]) -> None:
    store.put(pod("a", 1))
    assert changes_of(store) == ["- a@1"]


def test_what_is_older_than_what_we_know_is_no_news(store: Store[Pod]) -> None:
    store.put(pod("a", 10))
    recorded = changes_of(store)
    store.put(pod("a", 9))
    store.put(pod("a", 10))
    assert recorded == ["- a@10"]
    store.put(pod("a", 3, uid="another"))
    assert recorded[1:] == ["a@10 a@3"]


def test_what_was_written_is_learnt_only_of_the_object_that_is_there(store: Store[Pod]) -> None:
    store.mutated(pod("a", 5))
    assert store.get("a", "ns") is None
    store.put(pod("a", 1))
    store.mutated(pod("a", 5))
    store.put(pod("a", 4))
    stored = store.get("a", "ns")
    assert stored is not None
    assert stored.metadata.resource_version == "5"
    store.mutated(pod("a", 9, uid="another"))
    assert store.get("ns/a") is stored


def test_the_end_of_another_object_of_that_name_is_no_end(store: Store[Pod]) -> None:
    store.put(pod("a", 1))
    store.drop(pod("a", uid="earlier"))
    assert len(store) == 1


def test_indexes_follow_every_change(store: Store[Pod]) -> None:
    store.put(pod("early", owner="job"))
    owned, spaces = store.index(controller_uid), store.index(lambda pod: (pod.namespace,))
    assert store.index(controller_uid) is owned
    store.put(pod("b", owner="job"))
    store.put(pod("a", owner="job"))
    store.put(pod("c", space="elsewhere"))
    assert [pod.name for pod in owned["job"]] == ["a", "b", "early"]
    assert spaces.count("ns") == 3
    store.put(pod("b", 2, owner="other"))
    store.drop(pod("early"))
    assert [pod.name for pod in owned["job"]] == ["a"]
    store.drop(pod("a"))
    assert owned["job"] == []
    assert set(owned._objects) == {"other"}


def test_a_listener_that_fails_keeps_nobody_from_hearing(
    store: Store[Pod], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(before: Pod | None, now: Pod | None) -> None:
        raise ZeroDivisionError

    store.add_event_handler(broken)
    recorded = changes_of(store)
    store.put(pod("a"))
    assert recorded == ["- a@1"]
    assert "Pod ns/a could not be handled" in caplog.text
