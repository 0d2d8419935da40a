"""Events are deleted an hour after their last version."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from stromboli.embedded.kube_controllers import event_expiry
from stromboli.embedded.kube_controllers.event_expiry import EventExpiry
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key


def key(name: str) -> Key:
    return Key("events", "default", name)


def test_an_event_expires_after_its_last_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(event_expiry, "time", SimpleNamespace(monotonic=lambda: now))

    async def scenario() -> None:
        nonlocal now
        store = Store(tmp_path / "db")
        expiry = EventExpiry(store)
        store.on_commit(expiry.on_commit)
        for name, at in (("a", 0), ("b", 100), ("a", 200), ("c", 300)):
            now = at
            store.put(key(name), {"metadata": {}})
            await store.wait_committed()
        for at, left in ((3650, "abc"), (3750, "ac"), (3850, "c"), (3950, "")):
            now = at
            await expiry.expire()
            assert [record.key.name for record in store.list("events")] == list(left)
        await store.close()

    asyncio.run(scenario())


def test_expiry_keeps_one_entry_for_an_event_however_often_it_is_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        expiry = EventExpiry(store)
        store.on_commit(expiry.on_commit)
        for name in ("a", "b") * 50:
            store.put(key(name), {"metadata": {}})
        await store.wait_committed()
        assert len(expiry) == 2
        for name in ("a", "b"):
            store.remove(key(name), {"metadata": {}})
        await store.wait_committed()
        assert len(expiry) == 0
        await store.close()

    asyncio.run(scenario())
