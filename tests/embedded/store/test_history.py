"""History is bounded in number and in bytes: what is dropped is the oldest, and never what has only just come."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.embedded.store.history import CHANGE_BYTES, History, kept_bytes
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.version_log import MOST_DELETED


def content(size: int) -> dict[str, Any]:
    return {"metadata": {"uid": "u"}, "data": "x" * size}


def test_updates_of_a_large_object_are_kept_up_to_a_number_of_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db", history_bytes=1_000_000)
        key = Key("things", "default", "large")
        for _ in range(100):
            store.put(key, content(100_000))
            await store.wait_committed()
            assert store.history.bytes <= 1_000_000
        assert 8 <= len(store.history) <= 10
        assert store.revision - store.compacted_revision == len(store.history)
        (size,) = store._log._db.execute("SELECT sum(length(data)) FROM versions").fetchone()
        assert size <= 1_000_000 + 110_000, "history and the live object"
        await store.close()

    asyncio.run(scenario())


def test_a_server_that_may_keep_less_than_the_file_has_drops_the_rest_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        for number in range(60):
            store.put(Key("things", "default", f"n{number % 3}"), content(50_000))
        await store.wait_committed()
        assert len(store.history) == 60
        await store.close()
        again = Store(tmp_path / "db", history_bytes=500_000)
        assert again.history.bytes <= 500_000
        assert again.compacted_revision == 60 - len(again.history)
        (rows,) = again._log._db.execute("SELECT count(*) FROM versions").fetchone()
        assert rows == len(again.history) + 3
        await again.close()

    asyncio.run(scenario())


SIZES = st.lists(st.lists(st.integers(0, 5000), min_size=1, max_size=20), max_size=30)


@given(SIZES, st.integers(1, 40), st.integers(1, 20_000))
@example([[5000] * 5, [0]], 40, 1)
def test_history_is_within_its_bounds_but_for_the_last_batch(
    batches: list[list[int]], limit: int, byte_limit: int
) -> None:
    history, revision = History(limit, byte_limit), 0
    for sizes in batches:
        batch = []
        for size in sizes:
            key = Key("things", "", "a")
            batch.append(Change(revision + 1, key, Record(key, revision, b"x" * size), None))
            revision += 1
        compaction = history.surplus(batch)
        if compaction is not None:
            assert len(compaction.rows) <= MOST_DELETED
            history.drop(compaction.revision)
        history.extend(batch)
        assert history.bytes == sum(map(kept_bytes, reversed(history)))
        assert list(reversed(history))[: len(batch)] == batch[::-1]
        assert len(history) <= max(limit, len(batch))
        assert history.bytes <= max(byte_limit, sum(size + CHANGE_BYTES for size in sizes))
        assert history.surplus() is None
