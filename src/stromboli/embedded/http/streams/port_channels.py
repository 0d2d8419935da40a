"""Forwards one connection for each port on channels of a WebSocket, as clients do that do not speak SPDY.

The first channel of a port carries its data, the second an error. Each begins with the number of the port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress

from aiohttp import WSMsgType, web

from stromboli.embedded.http.streams.port_forward import CHUNK, OpenPort, port_number, watch_progress
from stromboli.embedded.nodes.pod_streams import StreamRefused

Writer = asyncio.Future[asyncio.StreamWriter | None]
MOST_PORTS = 32
"""Ports of a request."""


def requested_ports(texts: Sequence[str]) -> list[int]:
    """Ports as a client lists them, separated by commas or one by one; `StreamRefused` if they make no sense."""
    ports = [port for text in texts for port in text.split(",")]
    if not 0 < len(ports) <= MOST_PORTS:
        raise StreamRefused(f"{len(ports)} ports: between 1 and {MOST_PORTS} may be forwarded at a time")
    return [port_number(port) for port in ports]


class PortChannels:
    """The forwarded ports of one client."""

    def __init__(self, socket: web.WebSocketResponse, ports: list[int], open_port: OpenPort) -> None:
        self._socket = socket
        self._ports = ports
        self._open_port = open_port
        self._sending = asyncio.Lock()
        futures = asyncio.get_running_loop().create_future
        self._writers: dict[int, Writer] = {2 * number: futures() for number in range(len(ports))}
        """By channel; None if nothing listens on the port."""
        self.blocked = False
        self.moved = 0
        """Bytes sent and received so far."""

    async def serve(self, left: Callable[[], bool]) -> None:
        """Until the client leaves, or all connections end."""
        tasks = [
            asyncio.create_task(work)
            for work in (self._serve_ports(), self._read_client(), watch_progress(self, left))
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve_ports(self) -> None:
        with suppress(ConnectionError):
            for number, port in enumerate(self._ports):
                for channel in (2 * number, 2 * number + 1):
                    await self._send(channel, port.to_bytes(2, "little"))
            async with AsyncExitStack() as connections:
                await asyncio.gather(
                    *(self._serve_port(connections, *numbered) for numbered in enumerate(self._ports))
                )

    async def _serve_port(self, connections: AsyncExitStack, number: int, port: int) -> None:
        try:
            reader, writer = await self._open_port(port)
        except StreamRefused as refusal:
            self._writers[2 * number].set_result(None)
            await self._send(2 * number + 1, str(refusal).encode())
            return
        connections.callback(writer.transport.abort)
        self._writers[2 * number].set_result(writer)
        with suppress(OSError):
            while piece := await reader.read(CHUNK):
                await self._send(2 * number, piece)

    async def _read_client(self) -> None:
        while True:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                return
            self.moved += len(message.data)
            opening = self._writers.get(message.data[0]) if message.data else None
            writer = await opening if opening is not None else None
            if writer is not None and not writer.is_closing():
                with suppress(ConnectionError):
                    self.blocked = True
                    writer.write(message.data[1:])
                    await writer.drain()
                self.blocked = False

    async def ping(self) -> None:
        if not self._sending.locked():
            await self._socket.ping()

    async def _send(self, channel: int, data: bytes) -> None:
        self.moved += len(data)
        async with self._sending:
            await self._socket.send_bytes(bytes((channel,)) + data)
