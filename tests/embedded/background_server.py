"""A server beside the test, for clients that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stromboli.embedded.http.api_server import ApiServer


@contextmanager
def background_server(folder: Path, **options: Any) -> Iterator[ApiServer]:
    """In a thread with a loop of its own; its kubeconfig is `folder/kubeconfig`."""
    ready = threading.Event()
    servers: list[ApiServer] = []
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        end = asyncio.Event()
        stop.append((asyncio.get_running_loop(), end))
        async with ApiServer(folder, **options) as server:
            server.write_kubeconfig(folder / "kubeconfig")
            servers.append(server)
            ready.set()
            await end.wait()

    def work() -> None:
        try:
            asyncio.run(serve())
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        ready.wait()
        yield servers[0]
    finally:
        loop, end = stop[0]
        loop.call_soon_threadsafe(end.set)
        thread.join()
