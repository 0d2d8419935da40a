"""A dump has whatever can be encoded."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.node import Node
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.reflector import EVERYTHING
from stromboli.model.cluster import Cluster
from stromboli.model.lookup_objects import LookupObjects
from stromboli.scheduler import state_dump
from stromboli.scheduler.granted_objects import GrantedObjects
from stromboli.scheduler.state_dump import write_dump

NOTHING = GrantedObjects(Cluster(LookupObjects()))


def test_a_plugin_whose_memory_cannot_be_encoded_is_left_out_of_the_dump(tmp_path: Path) -> None:
    failed: list[str] = []
    memory = {"object": object(), "infinite": math.inf, "fine": {"a": 1}}
    cyclic: list[object] = []
    cyclic.append(cyclic)
    dump = write_dump(
        None,  # type: ignore[arg-type]  # nothing is listed
        {},
        NOTHING,
        ["volcano"],
        "actions: allocate",
        {**memory, "cyclic": cyclic},
        tmp_path,
        1000.0,
        TelemetryGuard(failed.append),
    )
    content = json.loads(asyncio.run(dump).read_text())
    assert content["memory"] == {"infinite": None, "fine": {"a": 1}}
    assert content["objects"] == []
    assert len(failed) == 2


def test_a_dump_that_grows_too_large_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nodes(*_: object) -> AsyncIterator[Node]:
        for number in range(10):
            yield Node(ObjectMeta(name=f"node-{number}"))

    monkeypatch.setattr(state_dump, "_all", nodes)
    monkeypatch.setattr(state_dump, "LARGEST_DUMP", 200)
    kinds = {Node: (RESOURCES[Node], EVERYTHING)}
    dump = write_dump(None, kinds, NOTHING, [], "", {}, tmp_path, 1000.0, TelemetryGuard())  # type: ignore[arg-type]
    with pytest.raises(OSError, match="larger than 200 bytes"):
        asyncio.run(dump)
    assert list(tmp_path.iterdir()) == []
