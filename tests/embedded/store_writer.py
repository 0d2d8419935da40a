"""Writes to a store and prints what was acknowledged: `python -m tests.embedded.store_writer FILE SEED`."""

from __future__ import annotations

import asyncio
import os
import random
import sys

from stromboli.embedded.store import version_log
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key

KEYS = 20
WRITERS = 8
HISTORY = 200


SIZES = (0, 0, 0, 0, 2_000, 60_000, 600_000)


async def write(path: str, seed: int) -> None:
    """With so small a write-ahead log and so few free pages that the files are tidied up all the time."""
    version_log.CHECKPOINT_BYTES = version_log.FREE_BYTES = 64 * 1024
    store = Store(path, HISTORY, history_bytes=2_000_000)
    chance = random.Random(seed)
    counts = {key: _count(store, key) for key in map(_key, range(KEYS))}

    async def writer() -> None:
        while True:
            key = _key(chance.randrange(KEYS))
            counts[key] += 1
            content = {"metadata": {"name": key.name, "uid": key.name}, "count": counts[key]}
            content["data"] = "x" * chance.choice(SIZES)
            present = store.get(*key) is not None
            if present and chance.random() < 0.3:
                record = store.remove(key, content)
            else:
                record = store.put(key, content)
            count = counts[key]
            await store.wait_committed()
            os.write(1, f"{key.name} {count} {record.revision}\n".encode())
            await asyncio.sleep(0)

    await asyncio.gather(*(writer() for _ in range(WRITERS)))


def _key(number: int) -> Key:
    return Key("things", "default", f"t{number}")


def _count(store: Store, key: Key) -> int:
    """Counts only ever rise, whatever happened before; the history knows of what was deleted."""
    seen = [0]
    for change in store.changes_since(store.compacted_revision, "things"):
        record = change.after or change.tombstone
        if change.key == key and record is not None:
            seen.append(record.object()["count"])
    current = store.get(*key)
    return max([*seen, current.object()["count"] if current is not None else 0])


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], int(sys.argv[2])))
