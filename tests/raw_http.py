"""Requests byte by byte, as only somebody who means harm would send them."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

PATIENCE = 20.0
"""Seconds after which a server has not answered."""
GARBAGE = (
    b"\x00\x01\x02\xff garbage\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    b"GET /healthz HTTP/1.1\r\n" + b"X: " + b"x" * 20_000 + b"\r\n\r\n",
    b"GET /healthz?" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/9.1\r\nHost: x\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
)
"""No HTTP, or too much of it."""


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: x",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


async def exchange(port: int, data: bytes, tls: bool = False) -> bytes:
    """Everything that a server answers until it closes the connection."""
    context = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(data)
    answer = b""
    try:
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                while more := await reader.read(65_536):
                    answer += more
    finally:
        writer.transport.abort()
    return answer


def status_of(answer: bytes) -> int:
    """The status of a response; 0 if there was none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0
