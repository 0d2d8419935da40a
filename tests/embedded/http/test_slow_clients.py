"""Clients that send half of a header and wait stop nobody else."""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stromboli.daemon.connection_limits import ConnectionLimits
from tests.embedded.api_requests import PODS, config_map, running
from tests.loop_time import forward

MAPS = "/api/v1/namespaces/default/configmaps"
HALF = b"GET /readyz HTTP/1.1\r\nHost: x\r\n"
SOURCE = str(Path(__file__).parents[3] / "src")
UNVERIFIED = ssl._create_unverified_context()
PATIENCE = 20.0


@contextmanager
def server_process(folder: Path, limit: str) -> Iterator[tuple[int, str, int]]:
    """An API server with that limit on open files; its process, host and port."""
    command = f"ulimit {limit} && exec {sys.executable} -m stromboli.embedded {folder}"
    process = subprocess.Popen(
        ["sh", "-c", command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    with process:
        try:
            assert process.stdout is not None
            address = urlsplit(process.stdout.readline().split()[1])
            yield process.pid, str(address.hostname), int(address.port or 0)
        finally:
            process.terminate()


@pytest.mark.parametrize("handshake", [False, True], ids=["before TLS", "after TLS"])
def test_half_sent_headers_do_not_stop_a_server_that_may_open_few_files(
    tmp_path: Path, handshake: bool
) -> None:
    with server_process(tmp_path, "-n 100") as (_, host, port), ExitStack() as stack:
        for _ in range(150):
            with suppress(OSError):  # closed already, to make room for others
                link = stack.enter_context(socket.create_connection((host, port), PATIENCE))
                if handshake:
                    stack.enter_context(UNVERIFIED.wrap_socket(link)).sendall(HALF)
        asking = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=UNVERIFIED)
        asking.request("GET", "/readyz")
        assert asking.getresponse().read() == b"ok"
        asking.close()


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="no /proc")
def test_the_server_opens_as_many_files_as_it_may(tmp_path: Path) -> None:
    with server_process(tmp_path, "-S -n 100") as (pid, _, _):
        (line,) = (
            line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "open files" in line
        )
        _, _, _, soft, hard, _ = line.split()
        assert soft == hard or int(soft) > 1000


def test_a_watch_goes_on_while_unknown_clients_come_and_wait(tmp_path: Path) -> None:
    limits = ConnectionLimits(unproven=10)

    async def story() -> None:
        async with (
            running(tmp_path, connection_limits=limits, tls=False) as api,
            api.watch(MAPS) as following,
        ):
            port = urlsplit(api.server.url).port
            links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
            for _, writer in links:
                writer.write(HALF)
            for reader, _ in links[:20]:  # to make room for the others
                with suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            await api.get(PODS)
            for _, writer in links:
                writer.transport.abort()
            for _ in range(3):  # longer than the limits that hold for other responses
                await forward(limits.write_time)
            await api.post(MAPS, config_map("told"))
            event = await asyncio.wait_for(following(), PATIENCE)
            while event["object"]["metadata"]["name"] != "told":
                event = await asyncio.wait_for(following(), PATIENCE)

    asyncio.run(story())
