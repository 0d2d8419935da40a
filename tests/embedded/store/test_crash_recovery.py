"""Killed at any point under load, a server has everything that it acknowledged."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.embedded.store.object_store import Store
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import Request
from tests.embedded.store_writer import HISTORY
from tests.number_of_examples import scaled

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def killed_writer(path: Path, seed: int, after: float) -> list[tuple[str, int, int]]:
    """Let somebody write, kill them in the middle of it: name, count and revision of what was acknowledged."""
    process = subprocess.Popen(
        (sys.executable, "-m", "tests.embedded.store_writer", str(path), str(seed)),
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    with process.stdout as pipe:
        first = pipe.readline()
        time.sleep(after)
        process.kill()
        output = first + pipe.read()
    assert process.wait(10) == -signal.SIGKILL
    lines = output.decode().split("\n")[:-1]  # the last may be torn
    return [(name, int(count), int(revision)) for name, count, revision in map(str.split, lines)]


@pytest.mark.slow
@settings(max_examples=scaled(8), deadline=None)
@given(kills=st.lists(st.floats(0, 0.1), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_every_acknowledged_write_survives_kills_at_any_moment(kills: list[float], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects.db"
        highest = 0
        for round, after in enumerate(kills):
            acknowledged = killed_writer(path, seed + round, after)
            assert min(revision for *_, revision in acknowledged) > highest
            store = Store(path, HISTORY)
            assert store.revision >= max(revision for *_, revision in acknowledged)
            check_counts(store, acknowledged)
            check_history(store)
            highest = store.revision
            asyncio.run(store.close())


def check_counts(store: Store, acknowledged: list[tuple[str, int, int]]) -> None:
    """What was acknowledged is there, unless somebody has written over it since."""
    last: dict[str, tuple[int, int]] = {}
    for name, count, revision in acknowledged:
        last[name] = max(last.get(name, (0, 0)), (revision, count))
    versions = {change.key.name: change for change in store.changes_since(store.compacted_revision, "things")}
    for name, (revision, count) in last.items():
        record = store.get("things", "default", name)
        if record is not None:
            assert record.object()["count"] >= count
            assert record.revision >= revision
        elif revision > store.compacted_revision:
            assert versions[name].tombstone is not None
            assert versions[name].revision >= revision


def check_history(store: Store) -> None:
    """Watching from the oldest moment on leads to the present, in order."""
    past = store.versions_at(store.compacted_revision, "things")
    state = {record.key[1:]: record.revision for record in store.list("things")}
    state |= {key: record.revision for key, record in past.items() if record is not None}
    for key, record in past.items():
        if record is None:
            state.pop(key, None)
    before = store.compacted_revision
    for change in store.changes_since(store.compacted_revision, "things"):
        assert change.revision > before
        before = change.revision
        known = state.get(change.key[1:])
        assert known == (change.before.revision if change.before is not None else None)
        if change.after is not None:
            state[change.key[1:]] = change.revision
        else:
            del state[change.key[1:]]
    assert state == {record.key[1:]: record.revision for record in store.list("things")}


# -- the same with HTTP in between


def start(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        (sys.executable, "-m", "stromboli.embedded", str(folder)), stdout=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"ready")
    return process


async def load(kubeconfig: Path, done: list[str], number: int) -> None:
    """Create until the server is gone; the names that it acknowledged."""
    async with Client(find_access(str(kubeconfig))) as client:

        async def worker(index: int) -> None:
            for count in range(10_000):
                name = f"m{number}-{index}-{count}"
                body: Any = {"metadata": {"name": name}, "data": {"n": str(count)}}
                answer = await client.send(_post(body), timeout=5)
                done.append(json.loads(answer)["metadata"]["resourceVersion"] + " " + name)

        await asyncio.gather(*(worker(index) for index in range(10)), return_exceptions=True)


def _post(body: Any) -> Request:
    return Request("POST", MAPS.path("default"), json.dumps(body).encode())


async def resumed(kubeconfig: Path, since: str, until: int) -> set[str]:
    """Names that a watch from a version on tells of."""
    seen: set[str] = set()
    async with Client(find_access(str(kubeconfig))) as client:
        path = f"{MAPS.path('default')}?watch=true&timeoutSeconds=1&resourceVersion={since}"
        async with client.stream(path, 10) as pieces:
            text = b"".join([piece async for piece in pieces])
    for line in text.splitlines():
        event = json.loads(line)
        assert event["type"] == "ADDED", event
        seen.add(event["object"]["metadata"]["name"])
    return seen


@pytest.mark.slow
def test_a_server_killed_under_load_goes_on_where_it_was(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    chance = random.Random(2)
    everything: set[str] = set()
    for round in range(3):
        server = start(tmp_path)
        try:
            listed = asyncio.run(whole_list(config))
            assert everything <= set(listed["names"])
            done: list[str] = []

            async def scenario(server: Any = server, done: list[str] = done, round: int = round) -> None:
                task = asyncio.create_task(load(config, done, round))
                while not done:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(chance.uniform(0.3, 0.8))
                server.kill()
                await task

            asyncio.run(scenario())
        finally:
            server.kill()
            server.wait(10)
            assert server.stdout is not None
            server.stdout.close()
        assert done
        everything |= {line.split()[1] for line in done}
        server = start(tmp_path)
        try:
            after = asyncio.run(whole_list(config))
            assert {line.split()[1] for line in done} <= set(after["names"])
            assert int(after["version"]) >= max(int(line.split()[0]) for line in done)
            resumed_names = asyncio.run(resumed(config, listed["version"], int(after["version"])))
            assert resumed_names == set(after["names"]) - set(listed["names"])
        finally:
            server.terminate()
            assert server.wait(10) == 0
            assert server.stdout is not None
            server.stdout.close()


async def whole_list(kubeconfig: Path) -> dict[str, Any]:
    async with Client(find_access(str(kubeconfig))) as client:
        listing = json.loads(await client.list(MAPS, "default"))
    names = [line["metadata"]["name"] for line in listing["items"]]
    return {"names": names, "version": listing["metadata"]["resourceVersion"]}
