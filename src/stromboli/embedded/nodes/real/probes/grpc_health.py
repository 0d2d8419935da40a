"""The gRPC health check of probes: one unary call of `grpc.health.v1.Health/Check` over plain HTTP/2.

It takes little of HTTP/2: the request is three frames, and of the response only the message and the header
`grpc-status` count.
"""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

from stromboli.embedded.nodes.real.probes.hpack import FieldError, grpc_status, literal_fields, varint
from stromboli.embedded.nodes.real.probes.http_get import USER_AGENT, connect_error

MAX_RESPONSE = 64 * 1024
"""Bytes of all frames of a response."""
MAX_SERVICE = 8 * 1024
"""Bytes of the name of a service: a request is to fit into a frame."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _CONTINUATION = 0, 1, 3, 4, 6, 7, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_OUR_SETTINGS = struct.pack(">HIHI", 1, 0, 2, 0)
"""No table of earlier headers that the server could refer to, and no push."""
_STREAM = 1
_STATUSES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_CODES = (
    "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists",
    "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented",
    "Internal", "Unavailable", "DataLoss", "Unauthenticated",
)  # fmt: skip
_UNIMPLEMENTED = 12


class _CallFailed(Exception):
    """The server's response is none, or too large."""


class _Frame(NamedTuple):
    type: int
    flags: int
    stream: int
    content: bytes


async def check(host: str, port: int, service: str, timeout: float) -> tuple[bool, str]:
    """Whether the service is healthy, and in Kubernetes' words what it responded."""
    connected = False
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host, port)
            connected = True
            try:
                writer.write(_request(f"{host}:{port}", service))
                return _verdict(*await _Call(reader, writer).response())
            finally:
                writer.close()
    except TimeoutError:
        if connected:
            return False, f"timeout: health rpc did not complete within {timeout:g}s"
        return False, f'timeout: failed to connect service "{host}:{port}" within {timeout:g}s'
    except (OSError, EOFError, FieldError, _CallFailed) as error:
        if connected:
            return False, f"error: health rpc probe failed: {error}"
        return False, f'error: failed to connect service "{host}:{port}": {connect_error(error)}'


def _verdict(code: int, message: bytes) -> tuple[bool, str]:
    if code == _UNIMPLEMENTED:
        return False, "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
    if code:
        name = _CODES[code] if code < len(_CODES) else str(code)
        return False, f"error: health rpc probe failed: rpc error: code = {name}"
    status = _serving_status(message)
    if status == "SERVING":
        return True, "service healthy"
    return False, f'service unhealthy (responded with "{status}")'


def _request(authority: str, service: str) -> bytes:
    """The whole connection, as far as it is ours to begin it."""
    name = service.encode()
    if len(name) > MAX_SERVICE:
        raise _CallFailed(f"the name of the service has {len(name)} bytes, the limit is {MAX_SERVICE}")
    fields = literal_fields(
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.health.v1.Health/Check"),
        (":authority", authority),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", USER_AGENT),
    )
    message = b"\x0a" + varint(len(name)) + name if name else b""
    return b"".join(
        (
            _PREFACE,
            _encoded(_Frame(_SETTINGS, 0, 0, _OUR_SETTINGS)),
            _encoded(_Frame(_HEADERS, _END_HEADERS, _STREAM, fields)),
            _encoded(_Frame(_DATA, _END_STREAM, _STREAM, struct.pack(">BI", 0, len(message)) + message)),
        )
    )


def _serving_status(body: bytes) -> str:
    """Field 1 of the message, behind five bytes: whether it is compressed, and its length."""
    if len(body) < 5 or body[0]:
        raise _CallFailed("the response has no message that can be read")
    message = body[5:]
    value = message[1] if len(message) >= 2 and message[0] == 0x08 else 0
    return _STATUSES[value] if value < len(_STATUSES) else str(value)


def _encoded(frame: _Frame) -> bytes:
    header = struct.pack(">I", len(frame.content))[1:] + bytes([frame.type, frame.flags])
    return header + struct.pack(">I", frame.stream) + frame.content


def _payload(frame: _Frame) -> bytes:
    """The content without padding and priority."""
    content = frame.content
    if frame.flags & _PADDED:
        content = content[1 : len(content) - content[0]] if content else content
    return content[5:] if frame.type == _HEADERS and frame.flags & _PRIORITY else content


class _Call:
    """Reads the response of the only call of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._body = bytearray()
        self._headers = bytearray()
        self._status: int | None = None

    async def response(self) -> tuple[int, bytes]:
        """The status of the call, and its message."""
        size, ends = 0, False
        while True:
            frame = await self._read()
            size += len(frame.content) + 9
            if size > MAX_RESPONSE:
                raise _CallFailed(f"the response is larger than {MAX_RESPONSE} bytes")
            self._take(frame)
            ends = ends or (frame.stream == _STREAM and bool(frame.flags & _END_STREAM) and frame.type <= 1)
            if ends and (frame.type == _DATA or frame.flags & _END_HEADERS):
                break
        if self._status is None:
            raise _CallFailed("the server does not speak gRPC: the response has no grpc-status")
        return self._status, bytes(self._body)

    def _take(self, frame: _Frame) -> None:
        if frame.type in (_SETTINGS, _PING) and not frame.flags & _ACK:
            content = frame.content if frame.type == _PING else b""
            self._writer.write(_encoded(_Frame(frame.type, _ACK, 0, content)))
        elif frame.type == _GOAWAY or (frame.type == _RST_STREAM and frame.stream == _STREAM):
            raise _CallFailed("the server ended the call")
        elif frame.stream == _STREAM and frame.type == _DATA:
            self._body += _payload(frame)
        elif frame.stream == _STREAM and frame.type in (_HEADERS, _CONTINUATION):
            self._headers += _payload(frame)
            if frame.flags & _END_HEADERS:
                status = grpc_status(bytes(self._headers))
                self._status = self._status if status is None else status
                self._headers.clear()

    async def _read(self) -> _Frame:
        header = await self._reader.readexactly(9)
        length = int.from_bytes(header[:3], "big")
        if length > MAX_RESPONSE or header.startswith(b"HTTP/"):
            raise _CallFailed("the server does not speak HTTP/2")
        stream = int.from_bytes(header[5:], "big") & 0x7FFFFFFF
        return _Frame(header[3], header[4], stream, await self._reader.readexactly(length))
