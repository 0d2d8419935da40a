"""A dump has whatever can be encoded."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.scheduler.state_dump import write_dump


def test_a_plugin_whose_memory_cannot_be_encoded_is_left_out_of_the_dump(tmp_path: Path) -> None:
    failed: list[str] = []
    memory = {"object": object(), "infinite": math.inf, "fine": {"a": 1}}
    cyclic: list[object] = []
    cyclic.append(cyclic)
    dump = write_dump(
        None,  # type: ignore[arg-type]  # nothing is listed
        {},
        {},
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
