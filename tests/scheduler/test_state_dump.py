"""A dump has whatever can be encoded."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.node import Node
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.reflector import EVERYTHING
from stromboli.model.cluster import Cluster
from stromboli.model.lookup_objects import LookupObjects
from stromboli.scheduler import introspection
from stromboli.scheduler.introspection import GrantedObjects, encoded_memory, write_dump

NOTHING = GrantedObjects(Cluster(LookupObjects()))


def test_a_plugin_whose_memory_cannot_be_encoded_is_left_out_of_the_dump(tmp_path: Path) -> None:
    failed: list[str] = []
    memory = {"object": object(), "infinite": math.inf, "fine": {"a": 1}}
    cyclic: list[object] = []
    cyclic.append(cyclic)
    guard = TelemetryGuard(failed.append)
    dump = write_dump(
        None,  # type: ignore[arg-type]  # nothing is listed
        {},
        NOTHING,
        ["volcano"],
        "actions: allocate",
        encoded_memory({**memory, "cyclic": cyclic}, guard),
        tmp_path,
        1000.0,
        guard,
    )
    content = json.loads(asyncio.run(dump).read_text())
    assert content["memory"] == {"infinite": None, "fine": {"a": 1}}
    assert content["objects"] == []
    assert len(failed) == 2


async def pages_of_nodes(*_: object) -> AsyncIterator[list[Object]]:
    for number in range(10):
        yield [Node(ObjectMeta(name=f"node-{number}-{which}")) for which in range(3)]


def test_a_dump_is_encoded_page_by_page_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_manifest, threads, turns = introspection._as_manifest, set[int](), 0

    def noted(*arguments: Any) -> Any:
        threads.add(threading.get_ident())
        return as_manifest(*arguments)

    monkeypatch.setattr(introspection, "_as_manifest", noted)
    monkeypatch.setattr(introspection, "_pages", pages_of_nodes)
    kinds = {Node: (RESOURCES[Node], EVERYTHING)}

    async def dump() -> Path:
        nonlocal turns
        writing = asyncio.ensure_future(
            write_dump(None, kinds, NOTHING, [], "", {}, tmp_path, 1.0, TelemetryGuard())  # type: ignore[arg-type]
        )
        while not writing.done():
            turns += 1
            await asyncio.sleep(0)
        return await writing

    content = json.loads(asyncio.run(dump()).read_text())
    assert [entry["metadata"]["name"] for entry in content["objects"]] == [
        f"node-{number}-{which}" for number in range(10) for which in range(3)
    ]
    assert threading.get_ident() not in threads
    assert turns >= 10


def test_a_dump_has_what_plugins_remembered_when_it_was_asked_for() -> None:
    usage = {"a": 1}
    encoded = encoded_memory({"fairshare": usage}, TelemetryGuard())
    usage["b"] = 2
    assert json.loads(bytes(encoded["fairshare"])) == {"a": 1}


def test_a_dump_that_grows_too_large_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introspection, "_pages", pages_of_nodes)
    monkeypatch.setattr(introspection, "MAX_DUMP", 200)
    kinds = {Node: (RESOURCES[Node], EVERYTHING)}
    dump = write_dump(None, kinds, NOTHING, [], "", {}, tmp_path, 1000.0, TelemetryGuard())  # type: ignore[arg-type]
    with pytest.raises(OSError, match="larger than 200 bytes"):
        asyncio.run(dump)
    assert list(tmp_path.iterdir()) == []
