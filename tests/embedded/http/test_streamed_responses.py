"""Clients that do not read: they hold little, they are cut off in the end, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from stromboli.daemon.connection_limits import WRITE_TIME
from stromboli.embedded.http import representations
from stromboli.embedded.store.watch import LARGEST_WRITE, Watch
from tests.embedded.api_requests import ApiCaller, config_map, running
from tests.loop_time import forward

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@asynccontextmanager
async def unread(
    api: ApiCaller, path: str, accept: str = "application/json"
) -> AsyncIterator[asyncio.StreamReader]:
    """A request whose response nobody reads."""
    host, port = api.server.url.removeprefix("https://").split(":")
    trust = ssl.create_default_context(cafile=str(api.server.ca))
    reader, writer = await asyncio.open_connection(host, int(port), ssl=trust, limit=2**16)
    header = (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.token}\r\nAccept: {accept}\r\n"
    )
    writer.write(f"{header}\r\n".encode())
    try:
        yield reader
    finally:
        writer.transport.abort()


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def update(api: ApiCaller, number: int, size: int) -> None:
    await api.patch(f"{MAPS}/a", {"data": {"number": str(number), "x": "y" * size}})


def pending(watch: Watch) -> int:
    """Bytes that the transport of a watch has not been rid of yet."""
    transport: Any = getattr(watch.disconnect, "__self__")  # noqa: B009
    return int(transport.get_write_buffer_size())


def test_a_reader_behind_the_history_is_cut_off_and_one_that_keeps_up_sees_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, history_bytes=1_000_000) as api:
            version = (await api.post(MAPS, config_map("a")))["metadata"]["resourceVersion"]
            path = f"{MAPS}?watch=true&resourceVersion={version}"
            seen = []

            async def follow() -> None:
                async with api.watch(f"{MAPS}?resourceVersion={version}") as following:
                    while len(seen) < 200:
                        seen.append((await following())["object"]["data"]["number"])

            prompt = asyncio.create_task(follow())
            async with unread(api, path):
                await until(lambda: len(list(api.server.hub)) == 2)
                for number in range(200):
                    await update(api, number, 100_000)
                    assert api.server.store.history.bytes <= 1_000_000
                    await until(lambda number=number: len(seen) > number)
                await asyncio.wait_for(prompt, 60)
                assert seen == list(map(str, range(200)))
                await until(lambda: not list(api.server.hub))
            async with api.watch(f"{MAPS}?resourceVersion={version}") as following:
                event = await following()
                assert (event["type"], event["object"]["code"]) == ("ERROR", 410)

    asyncio.run(scenario())


def test_a_watch_ends_when_its_client_leaves_even_if_nothing_happens(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            async with api.watch(MAPS), unread(api, f"{MAPS}?watch=true"):
                await until(lambda: len(list(api.server.hub)) == 2)
            await until(lambda: not list(api.server.hub))

    asyncio.run(scenario())


def test_a_watch_that_nobody_reads_ends_soon_after_its_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for number in range(10):
                await api.post(MAPS, config_map(f"m{number}", {"x": "y" * 1_000_000}))
            async with unread(api, f"{MAPS}?watch=true&timeoutSeconds=100"):
                await until(lambda: any(pending(watch) for watch in api.server.hub))
                await forward(100)
                for _ in range(10):  # some looks, while buffers of sockets still take what nobody reads
                    await forward(WRITE_TIME)
                    await asyncio.sleep(0.05)
                await until(lambda: not list(api.server.hub))
            assert api.server.hub.buffers.bytes == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("include", ["Metadata", "Object"])
def test_many_unread_watches_of_tables_hold_what_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, include: str
) -> None:
    rows: list[int] = []
    encode = representations._encode_table

    def counted(*arguments: Any) -> bytes:
        rows.append(1)
        return encode(*arguments)

    monkeypatch.setattr(representations, "_encode_table", counted)

    async def scenario() -> None:
        async with running(tmp_path, history_bytes=20_000_000, watch_bytes=16_000_000) as api:
            hub, size = api.server.hub, 500_000
            annotations = {"a": "x" * 200_000}
            version = (await api.post(MAPS, config_map("a", annotations=annotations)))["metadata"][
                "resourceVersion"
            ]
            path = f"{MAPS}?watch=true&resourceVersion={version}&includeObject={include}"
            watches = [unread(api, path, TABLE) for _ in range(30)]
            for watch in watches:
                await watch.__aenter__()
            await until(lambda: len(list(hub)) == 30)
            largest = 0
            for number in range(60):
                await update(api, number, size)
                largest = max(largest, hub.buffers.bytes)
            assert largest <= 4_000_000, "a quarter for one user"
            assert api.server.store.history.bytes <= 20_000_000
            assert all(pending(watch) <= 2 * LARGEST_WRITE for watch in hub)
            assert len(rows) < 200, "and not 30 for each of 60 updates"
            await api.get(MAPS)
            for watch in watches:
                await watch.__aexit__(None, None, None)
            await until(lambda: not list(hub))
            assert hub.buffers.bytes == 0

    asyncio.run(scenario())


def test_a_long_list_is_encoded_as_it_is_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, history_bytes=20_000_000) as api:
            created = [
                await api.post(MAPS, config_map(f"m{number:02}", {"x": "y" * 1_000_000}))
                for number in range(15)
            ]
            async with unread(api, MAPS) as response:
                head = await response.readuntil(b"\r\n\r\n")
                assert b"chunked" in head
                buffers = api.server.hub.buffers
                await until(lambda: buffers.bytes)
                assert buffers.bytes < 1_100_000, "an object at a time"
                await api.request("PUT", f"{MAPS}/m14", config_map("m14", {"x": "later"}))
                items = json.loads(await dechunked(response))["items"]
                assert items == [{**item, "kind": "ConfigMap", "apiVersion": "v1"} for item in created]
            await until(lambda: not buffers.bytes)

    asyncio.run(scenario())


async def dechunked(response: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int(await response.readline(), 16):
        body += (await response.readexactly(size + 2))[:-2]
    return bytes(body)


def test_a_list_that_is_read_too_slowly_to_keep_its_versions_is_cut_off(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, history_bytes=2_000_000) as api:
            for name in "abcdefghijklmnopqrstuvwxyz":
                await api.post(MAPS, config_map(name, {"x": "y" * 500_000}))
            async with unread(api, MAPS) as response:
                await response.readuntil(b"\r\n\r\n")
                for number in range(10):
                    await update(api, number, 500_000)
                with pytest.raises((OSError, asyncio.IncompleteReadError, ValueError)):
                    await dechunked(response)
            assert len((await api.get(MAPS))["items"]) == 26

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "accept", [TABLE, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]
)
def test_long_and_short_lists_look_alike(tmp_path: Path, accept: str) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for number in range(300):
                await api.post(MAPS, config_map(f"m{number:03}", annotations={"a": "x" * 500}))
            whole = await listed(api, MAPS, accept)
            items = "rows" if accept == TABLE else "items"
            assert len(whole[items]) == 300
            pages, token = [], ""
            while True:
                page = await listed(api, f"{MAPS}?limit=50&continue={token}", accept)
                pages += page[items]
                token = page["metadata"].get("continue")
                if not token:
                    break
            for row in (*whole[items], *pages):
                row.pop("cells", None)  # which tell the age
            assert pages == whole[items]
            assert {**whole, items: [], "metadata": None} == {**page, items: [], "metadata": None}

    asyncio.run(scenario())


async def listed(api: ApiCaller, path: str, accept: str) -> Any:
    headers = {"Authorization": f"Bearer {api.server.token}", "Accept": accept}
    trust = ssl.create_default_context(cafile=str(api.server.ca))
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{api.server.url}{path}", ssl=trust) as response,
    ):
        return await response.json()
