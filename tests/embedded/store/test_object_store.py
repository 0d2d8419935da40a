"""The store alone: what it keeps, what it forgets, and what it does when the disk says no."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.embedded.http.list_pages import list_page
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Key
from stromboli.embedded.store.version_log import WriteFailed
from tests.number_of_examples import scaled

KIND = Kind("", "v1", "things", "Thing")


def key(name: str, namespace: str = "default") -> Key:
    return Key("things", namespace, name)


def content(**more: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "u"}, **more}


def names(store: Store) -> list[str]:
    return [record.key.name for record in store.list("things")]


def test_nobody_hears_of_a_write_before_it_is_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        committed: list[Change] = []
        store.on_commit(committed.extend)
        store.put(key("a"), content())
        store.put(key("b"), content())
        assert names(store) == ["a", "b"]
        assert committed == []
        await store.wait_committed()
        assert [change.key.name for change in committed] == ["a", "b"]
        other = sqlite3.connect(tmp_path / "db")
        assert other.execute("SELECT count(*) FROM versions").fetchone() == (2,)
        other.close()
        await store.close()

    asyncio.run(scenario())


def test_a_write_that_the_disk_does_not_take_never_happened(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        store.put(key("a"), content(n=1))
        await store.wait_committed()
        committed: list[Change] = []
        undone: list[Change] = []
        store.on_commit(committed.extend)
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        store._log._db.execute("PRAGMA busy_timeout=0")
        store.on_apply(undone.append)
        store.put(key("a"), content(n=2))
        store.put(key("b"), content())
        with pytest.raises(WriteFailed, match="locked"):
            await store.wait_committed()
        other.execute("ROLLBACK")
        other.close()
        assert names(store) == ["a"]
        record = store.get("things", "default", "a")
        assert record is not None
        assert record.object()["n"] == 1
        assert committed == []
        assert len(undone) == 4, "each change, and its reverse"
        later = store.put(key("c"), content())
        await store.wait_committed()
        assert later.revision == 4, "numbers that somebody may have seen are not given again"
        await store.close()
        again = Store(tmp_path / "db")
        assert names(again) == ["a", "c"]
        await again.close()

    asyncio.run(scenario())


STEPS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["put", "put", "remove"])), min_size=1, max_size=60
)


@settings(max_examples=scaled(40))
@given(STEPS, st.integers(1, 30), st.integers(1, 4), st.lists(st.integers(0, 59), max_size=3))
def test_any_moment_in_the_history_can_be_listed_page_by_page_even_after_restarts(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str]],
    history: int,
    limit: int,
    restarts: list[int],
) -> None:
    path = tmp_path_factory.mktemp("store") / "db"

    async def scenario() -> None:
        store = Store(path, history)
        moments: dict[int, dict[str, int]] = {0: {}}
        state: dict[str, int] = {}
        for number, (name, verb) in enumerate(steps):
            if verb == "put":
                state[name] = store.put(key(name), content()).revision
            elif name in state:
                store.remove(key(name), content())
                del state[name]
            await store.wait_committed()
            moments[store.revision] = dict(state)
            if number in restarts:
                await store.close()
                store = Store(path, history)
        assert store.revision - store.compacted_revision <= max(history, 1) or history == 0
        for revision, expected in moments.items():
            if revision > store.compacted_revision:
                assert await listed(store, revision, limit) == expected
        await store.close()

    asyncio.run(scenario())


async def listed(store: Store, revision: int, limit: int) -> dict[str, int]:
    """All pages of a list as of a revision."""
    revisions: dict[str, int] = {}
    query = {"resourceVersion": str(revision), "resourceVersionMatch": "Exact", "limit": str(limit)}
    while True:
        got = await list_page(store, KIND, "default", query)
        assert got.meta["resourceVersion"] == str(revision)
        revisions |= {record.key.name: record.revision for record in got.records}
        if "continue" not in got.meta:
            return revisions
        query = {"continue": got.meta["continue"], "limit": str(limit)}


def test_what_is_no_longer_needed_is_dropped_from_the_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db", history=10)
        for number in range(200):
            store.put(key(f"n{number % 5}"), content(n=number))
            await store.wait_committed()
        (rows,) = store._log._db.execute("SELECT count(*) FROM versions").fetchone()
        assert rows <= 10 + 5
        await store.compact()
        (rows,) = store._log._db.execute("SELECT count(*) FROM versions").fetchone()
        assert rows == 5
        await store.close()
        again = Store(tmp_path / "db", history=10)
        assert [record.object()["n"] for record in again.list("things")] == [195, 196, 197, 198, 199]
        assert (again.revision, again.compacted_revision) == (200, 200)
        await again.close()

    asyncio.run(scenario())


def test_a_page_of_the_past_does_not_show_what_is_about_to_be_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        for name in "abc":
            store.put(key(name), content(n=1))
        await store.wait_committed()
        first = await list_page(store, KIND, "default", {"limit": "1"})
        store.put(key("b"), content(n=2))
        store.remove(key("c"), content())
        store.put(key("d"), content())
        rest = await list_page(store, KIND, "default", {"continue": first.meta["continue"]})
        assert [(record.key.name, record.object()["n"]) for record in rest.records] == [("b", 1), ("c", 1)]
        await store.close()

    asyncio.run(scenario())


def test_what_one_listener_cannot_stand_the_others_hear(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        committed: list[Change] = []

        def fragile(batch: object) -> None:
            raise ValueError("I cannot read that")

        store.on_commit(fragile)
        store.on_commit(committed.extend)
        store.put(key("a"), content())
        await store.wait_committed()
        assert [change.key.name for change in committed] == ["a"]
        await store.close()

    asyncio.run(scenario())
