"""The files of a store stay within bounds, whatever is written, and nobody waits for the disk on the event loop."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.embedded.store import version_log
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Key
from stromboli.embedded.store.version_log import DiskFull, VersionLog, WriteFailed

KIB = 1024


def key(name: object) -> Key:
    return Key("things", "default", str(name))


def content(size: int = 0) -> dict[str, Any]:
    return {"metadata": {"uid": "u"}, "data": "x" * size}


def log_size(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


@pytest.mark.parametrize("size", [2 * KIB, 600 * KIB])
def test_the_write_ahead_log_is_emptied_between_writes_that_never_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(version_log, "CHECKPOINT_BYTES", 256 * KIB)

    async def scenario() -> None:
        path = tmp_path / "db"
        store = Store(path)
        largest = written = 0

        async def writer(name: int) -> None:
            nonlocal largest, written
            for _ in range(20 if size > 100 * KIB else 200):
                store.put(key(name), content(size))
                await store.wait_committed()
                written += size
                largest = max(largest, log_size(path))

        await asyncio.gather(*map(writer, range(4)))
        assert written > 1024 * KIB
        assert 0 < largest <= 256 * KIB + 4 * 2 * (size + 16 * KIB)
        await store.close()

    asyncio.run(scenario())


def test_a_large_batch_is_written_in_several_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        path = tmp_path / "db"
        store = Store(path)
        batches: list[int] = []
        largest = 0

        def note(batch: Any) -> None:
            nonlocal largest
            batches.append(len(batch))
            largest = max(largest, log_size(path))

        store.on_commit(note)
        for number in range(50):
            store.put(key(number), content(128 * KIB))
        await store.wait_committed()
        assert sum(batches) == 50
        assert max(batches) == 3, "the fourth would be more than 512 KiB with its pages"
        assert largest < 40 * 1024 * KIB
        await store.close()

    asyncio.run(scenario())


def test_the_loop_goes_on_while_the_log_is_emptied_and_writes_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_log, "CHECKPOINT_BYTES", 1)
    started, finish = threading.Event(), threading.Event()
    checkpoint = VersionLog._checkpoint

    def slow_disk(log: VersionLog) -> None:
        started.set()
        assert finish.wait(30)
        checkpoint(log)

    monkeypatch.setattr(VersionLog, "_checkpoint", slow_disk)

    async def scenario() -> None:
        store = Store(tmp_path / "db")
        store.put(key("a"), content())
        await asyncio.wait_for(store.wait_committed(), 10)  # acknowledged before the log is emptied
        while not started.is_set():
            await asyncio.sleep(0.001)
        store.put(key("b"), content())
        waiting = asyncio.create_task(store.wait_committed())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert store.get("things", "default", "a") is not None
        finish.set()
        await asyncio.wait_for(waiting, 10)
        await store.close()

    asyncio.run(scenario())


def test_what_was_written_on_top_of_a_write_that_fails_is_undone_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, finish = threading.Event(), threading.Event()

    def failing_disk(*_: object) -> None:
        started.set()
        assert finish.wait(30)
        raise WriteFailed("the disk is full")

    async def scenario() -> None:
        store = Store(tmp_path / "db", power_safe=True)
        store.put(key("a"), content(1))
        await store.wait_committed()
        with monkeypatch.context() as patch:
            patch.setattr(store._log, "write_now", failing_disk)
            store.put(key("a"), content(2))
            first = asyncio.create_task(store.wait_committed())
            while not started.is_set():
                await asyncio.sleep(0.001)
            store.put(key("a"), content(3))
            store.put(key("b"), content(1))
            second = asyncio.create_task(store.wait_committed())
            await asyncio.sleep(0)
            finish.set()
            for waiting in (first, second):
                with pytest.raises(WriteFailed, match="the disk is full"):
                    await asyncio.wait_for(waiting, 10)
        record = store.get("things", "default", "a")
        assert record is not None
        assert record.object()["data"] == "x"
        assert store.get("things", "default", "b") is None
        store.put(key("c"), content())
        await store.wait_committed()
        await store.close()

    asyncio.run(scenario())


def test_a_full_disk_is_named_with_the_way_out_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [3 << 20]

    def disk_usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free[0])

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)

    async def scenario() -> None:
        store = Store(tmp_path / "db")
        (pages,) = store._log._db.execute("PRAGMA page_count").fetchone()
        store._log._db.execute(f"PRAGMA max_page_count = {pages}")
        store.put(key("a"), {**content(1), "data": "x" * 100_000})
        with pytest.raises(DiskFull, match="3 MiB are free; make room on it for 64 MiB at least"):
            await store.wait_committed()
        assert store.disk_full
        free[0] = 1 << 30
        assert not store.disk_full, "whether somebody writes or not"
        free[0] = 0
        store._log._db.execute("PRAGMA max_page_count = 1000000")
        store.put(key("a"), content(1))
        await store.wait_committed()
        assert not store.disk_full
        await store.close()

    asyncio.run(scenario())


def test_a_value_that_cannot_be_stored_fails_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        store.put(key("\udc80"), content())
        with pytest.raises(WriteFailed, match="surrogates"):
            await store.wait_committed()
        store.put(key("a"), content())
        await store.wait_committed()
        await store.close()

    asyncio.run(scenario())


def test_pages_of_deleted_objects_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_log, "FREE_BYTES", 256 * KIB)
    monkeypatch.setattr(version_log, "CHECKPOINT_BYTES", 256 * KIB)

    async def scenario() -> None:
        path = tmp_path / "db"
        store = Store(path, history=10)
        for number in range(200):
            store.put(key(number), content(100 * KIB))
        await store.wait_committed()
        for number in range(199):
            store.remove(key(number), content())
        await store.compact()
        store.put(key(0), content())
        await store.compact()
        await store.close()
        assert path.stat().st_size < 800 * KIB
        again = Store(path)
        assert [record.key.name for record in again.list("things")] == ["0", "199"]
        await again.close()

    asyncio.run(scenario())


def test_a_file_of_an_older_release_learns_to_shrink(tmp_path: Path) -> None:
    path = tmp_path / "db"
    old = sqlite3.connect(path)
    old.execute("PRAGMA journal_mode=WAL")
    old.executescript(version_log._SCHEMA)
    old.execute(
        "INSERT INTO versions VALUES (7, 'things', 'default', 'a', 0, ?)",
        (b'{"metadata":{"resourceVersion":"7"}}',),
    )
    old.commit()
    old.close()

    async def scenario() -> None:
        store = Store(path)
        assert store.revision == 7
        assert store._log._pragma("auto_vacuum") == 2
        await store.close()

    asyncio.run(scenario())


def test_writes_go_on_while_another_process_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(version_log, "CHECKPOINT_BYTES", 64 * KIB)

    async def scenario() -> None:
        path = tmp_path / "db"
        store = Store(path)
        committed: list[Change] = []
        store.on_commit(committed.extend)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM versions").fetchone()
        for number in range(10):
            store.put(key(number), content(32 * KIB))
            await store.wait_committed()
        other.close()
        for number in range(10):
            store.put(key(number), content(32 * KIB))
            await store.wait_committed()
        await store.close()
        assert len(committed) == 20

    asyncio.run(scenario())
    assert "grows while another process reads the file" in caplog.text
    assert log_size(tmp_path / "db") == 0 if (tmp_path / "db-wal").exists() else True
