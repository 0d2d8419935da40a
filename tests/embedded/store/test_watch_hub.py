"""Watches: from where they begin, what they show, and when they end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store import watch_hub
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.query_selectors import Selector
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.watch import Watch
from stromboli.embedded.store.watch_hub import WatchHub
from tests.embedded.api_requests import PODS, config_map, pod, running

MAPS = "/api/v1/namespaces/default/configmaps"


def test_a_watch_begins_with_what_is_there_and_goes_on_with_what_happens(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, pod("a"))
            async with api.watch(PODS) as following:
                assert (await following())["type"] == "ADDED"
                await api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
                event = await following()
                assert (event["type"], event["object"]["status"]["phase"]) == ("MODIFIED", "Running")
                await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
                assert (await following())["type"] == "DELETED"

    asyncio.run(scenario())


def test_a_watch_resumes_where_a_list_was_even_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            listed = await api.get(MAPS)
            for number in range(3):
                await api.post(MAPS, config_map(f"m{number}"))
            await api.delete(f"{MAPS}/m1")
        version = listed["metadata"]["resourceVersion"]
        async with running(tmp_path) as api, api.watch(f"{MAPS}?resourceVersion={version}") as following:
            events = [await following() for _ in range(4)]
            shown = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
            assert shown == [("ADDED", "m0"), ("ADDED", "m1"), ("ADDED", "m2"), ("DELETED", "m1")]
            versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
            assert versions == sorted(versions)
            assert versions[0] > int(version)
            created = await api.post(MAPS, config_map("later"))
            assert int(created["metadata"]["resourceVersion"]) > versions[-1]
            assert (await following())["object"] == created

    asyncio.run(scenario())


def test_what_begins_or_ceases_to_be_meant_is_added_or_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(MAPS, config_map("a"))
            async with api.watch(f"{MAPS}?labelSelector=x%3D1&resourceVersion=0") as following:
                await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"x": "1"}}})
                assert (await following())["type"] == "ADDED"
                await api.patch(f"{MAPS}/a", {"data": {"n": "1"}})
                assert (await following())["type"] == "MODIFIED"
                changed = await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"x": "2"}}})
                gone = await following()
                assert gone["type"] == "DELETED"
                assert gone["object"]["metadata"]["labels"] == {"x": "1"}
                assert gone["object"]["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]

    asyncio.run(scenario())


def test_a_watch_from_before_all_history_is_told_to_list_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, history=5) as api:
            for number in range(20):
                await api.post(MAPS, config_map(f"m{number}"))
            async with api.watch(f"{MAPS}?resourceVersion=1") as following:
                event = await following()
                assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
                assert event["object"]["reason"] == "Expired"
                assert await following() is None
            first = await api.get(f"{MAPS}?limit=2")
            token = first["metadata"]["continue"]
            for number in range(20):
                await api.delete(f"{MAPS}/m{number}")
            assert (await api.request("GET", f"{MAPS}?limit=2&continue={token}"))[0] == 410

    asyncio.run(scenario())


def test_initial_events_end_with_a_bookmark_and_so_does_a_watch_with_a_time_limit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            created = await api.post(MAPS, config_map("a"))
            query = (
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
                "&timeoutSeconds=1"
            )
            async with api.watch(f"{MAPS}?{query}") as following:
                assert await following() == {"type": "ADDED", "object": created}
                event = await following()
                assert event["type"] == "BOOKMARK"
                assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
                event = await following()
                assert (event["type"], "annotations" in event["object"]["metadata"]) == ("BOOKMARK", False)
                assert await following() is None
            assert (await api.request("GET", f"{MAPS}?watch=true&sendInitialEvents=true"))[0] == 400

    asyncio.run(scenario())


def test_a_watch_that_cannot_show_a_change_ends_and_the_others_go_on() -> None:
    def fragile(record: Record, first: bool) -> bytes:
        raise ValueError("I cannot show that")

    async def scenario() -> None:
        kind = Kind("", "v1", "things", "Thing")
        hub = WatchHub()
        broken = Watch(kind, "", Selector(), "alice", fragile)
        whole = Watch(kind, "", Selector(), "bob")
        hub.add(broken)
        hub.add(whole)
        record = Record(Key("things", "default", "a"), 1, b'{"metadata":{}}')
        hub.publish([Change(1, record.key, None, record)])
        assert await broken.next_lines() == b""
        assert b'"ADDED"' in await whole.next_lines()

    asyncio.run(scenario())


def test_writes_wait_for_changes_to_be_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_hub, "SLICE", -1.0)  # a pause after every change

    async def scenario() -> None:
        store, hub, behind = Store(tmp_path / "db"), WatchHub(), list[int]()
        store.on_commit(lambda batch: behind.append(len(hub._pending)))
        store.on_commit(hub.publish)
        store.wait_for(hub.caught_up)
        watch = Watch(Kind("", "v1", "things", "Thing"), "", Selector(), "alice")
        hub.add(watch)
        for number in range(20):
            for name in "abcde":
                store.put(Key("things", "default", name), {"metadata": {}, "number": number})
            await store.wait_committed()
        await hub.caught_up()
        assert behind == [0] * 20
        assert hub.revision == watch.revision == 100
        await store.close()

    asyncio.run(scenario())
