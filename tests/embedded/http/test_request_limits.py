"""What is too much is refused, and the rest goes on."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.store.version_log import StoreInUse
from tests.embedded.api_requests import PODS, config_map, pod, running

MAPS = "/api/v1/namespaces/default/configmaps"


def test_pages_are_bounded_and_numbers_are_numbers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for query in (
                "limit=x",
                "limit=-1",
                "resourceVersion=x",
                "continue=x",
                "watch=1&timeoutSeconds=x",
            ):
                assert (await api.request("GET", f"{PODS}?{query}"))[0] == 400, query
            assert (await api.request("GET", f"{PODS}?resourceVersion=999999"))[0] == 504
            await api.get(f"{PODS}?limit=999999999999")
            initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            for query in ("", "&allowWatchBookmarks=true", initial):
                status, answer = await api.request("GET", f"{PODS}?watch=true&resourceVersion=999999{query}")
                assert (status, answer["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
            for options in (
                {"gracePeriodSeconds": -1},
                {"propagationPolicy": "Maybe"},
                {"preconditions": 1},
                [],
            ):
                await api.post(MAPS, config_map("a"))
                status, _ = await api.request("DELETE", f"{MAPS}/a", options)
                assert status == (200 if not options else 422 if "propagationPolicy" in options else 400), (
                    options
                )
                await api.request("DELETE", f"{MAPS}/a")

    asyncio.run(scenario())


class Endless:
    """A log that goes on until its reader leaves; says when that was noticed."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.queries: list[tuple[str, str, LogQuery]] = []

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncIterator[bytes] | None:
        self.queries.append((namespace, pod, query))
        return None if query.container == "silent" else self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"again\n"
                await asyncio.sleep(0)
        finally:
            self.left.set()


def test_logs_are_passed_on_as_long_as_somebody_reads(tmp_path: Path) -> None:
    async def scenario() -> None:
        source = Endless()
        async with running(tmp_path, logs=source) as api:
            both = [{"name": "main", "image": "i"}, {"name": "silent", "image": "i"}]
            await api.post(PODS, pod("a", containers=both))
            assert await api.request("GET", f"{PODS}/a/log") == (204, ""), "it has no node yet"
            await api.post(f"{PODS}/a/binding", {"target": {"name": "n"}})
            status, answer = await api.request("GET", f"{PODS}/a/log")
            assert (status, "choose one of: [main silent]" in answer["message"]) == (400, True)
            assert (await api.request("GET", f"{PODS}/a/log?container=none"))[0] == 400
            status, answer = await api.request("GET", f"{PODS}/a/log?container=silent")
            assert (status, "is waiting to start: ContainerCreating" in answer["message"]) == (400, True)
            crashed = {"name": "silent", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            fields = {"ready": False, "restartCount": 1, "image": "i", "imageID": ""}
            patch = {"status": {"containerStatuses": [{**crashed, **fields}]}}
            await api.patch(f"{PODS}/a/status", patch)
            _, answer = await api.request("GET", f"{PODS}/a/log?container=silent")
            assert "is waiting to start: CrashLoopBackOff" in answer["message"]
            terminated = {"terminated": {"exitCode": 128, "reason": "StartError"}}
            patch["status"]["containerStatuses"][0]["state"] = {"waiting": None, **terminated}
            await api.patch(f"{PODS}/a/status", patch)
            _, answer = await api.request("GET", f"{PODS}/a/log?container=silent")
            assert answer["message"].endswith('container "silent" in pod "a" is terminated')
            path = f"{PODS}/a/log?container=main&tailLines=5&sinceSeconds=10&limitBytes=15&timestamps=true"
            assert await api.request("GET", path) == (200, "again\nagain\naga")
            await asyncio.wait_for(source.left.wait(), 5)
            namespace, name, query = source.queries[-1]
            assert (namespace, name, query.since is not None) == ("default", "a", True)
            assert replace(query, since=None) == LogQuery("main", timestamps=True, tail=5)

    asyncio.run(scenario())


def test_yaml_that_stands_for_billions_of_values_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            lines = ["data:", "  a0: &a0 [x, x, x, x, x, x, x, x, x]"]
            lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
            bomb = "\n".join(["metadata: {name: bomb}", *lines]).encode()
            for method, path, media in (
                ("POST", MAPS, "application/yaml"),
                ("PATCH", f"{MAPS}/bomb?fieldManager=me", "application/apply-patch+yaml"),
            ):
                async with asyncio.timeout(20):
                    status, answer = await api.request(method, path, bomb, media)
                assert (status, answer["reason"]) == (400, "BadRequest")
            plain = b"metadata: {name: plain}\ndata: {a: b}\n"
            assert (await api.request("POST", MAPS, plain, "application/yaml"))[0] == 201
            assert (await api.request("POST", MAPS, plain + b"---\n" + plain, "application/yaml"))[0] == 400

    asyncio.run(scenario())


def test_a_folder_has_one_server_at_a_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            with pytest.raises(StoreInUse, match="in use by another server"):
                async with running(tmp_path):
                    pass
            await api.get(PODS)
        async with running(tmp_path) as api:
            await api.get(PODS)

    asyncio.run(scenario())


def test_a_full_disk_refuses_writes_and_readiness_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            database = api.server.store._log._db
            (pages,) = database.execute("PRAGMA page_count").fetchone()
            database.execute(f"PRAGMA max_page_count = {pages}")
            with monkeypatch.context() as patch:
                patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
                status, refusal = await api.request("POST", MAPS, config_map("a", {"n": "x" * 200_000}))
                assert (status, refusal["code"]) == (507, 507)
                assert "the disk is full: 0 MiB are free; make room" in refusal["message"]
                assert (await api.request("GET", "/readyz"))[0] == 503
                assert (await api.request("GET", "/livez"))[0] == 200
                assert (await api.request("GET", MAPS))[0] == 200
            database.execute("PRAGMA max_page_count = 1000000")
            await api.post(MAPS, config_map("a", {"n": "x" * 200_000}))
            assert (await api.request("GET", "/readyz"))[0] == 200

    asyncio.run(scenario())
