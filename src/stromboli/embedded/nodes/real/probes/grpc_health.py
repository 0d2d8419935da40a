"""The gRPC health check of probes: one unary call of `grpc.health.v1.Health/Check` over plain HTTP/2."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING

from stromboli.embedded.nodes.real.probes.http_get import USER_AGENT, connect_error

if TYPE_CHECKING:
    from h2.events import Event

MAX_RESPONSE = 64 * 1024
"""Bytes of a response, frames and headers included."""
MAX_SERVICE = 8 * 1024
"""Bytes of the name of a service: a request is to fit into a frame."""
_READ = 16 * 1024
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


async def check(host: str, port: int, service: str, timeout: float) -> tuple[bool, str]:
    """Whether the service is healthy, and in Kubernetes' words what it responded."""
    connected = False
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(host, port)
            connected = True
            try:
                return _verdict(*await _Call(reader, writer).response(f"{host}:{port}", service))
            finally:
                writer.close()
    except TimeoutError:
        if connected:
            return False, f"timeout: health rpc did not complete within {timeout:g}s"
        return False, f'timeout: failed to connect service "{host}:{port}" within {timeout:g}s'
    except (OSError, _CallFailed) as error:
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


def _serving_status(body: bytes) -> str:
    """Field 1 of the message, behind five bytes: whether it is compressed, and its length."""
    if len(body) < 5 or body[0]:
        raise _CallFailed("the response has no message that can be read")
    message = body[5:]
    value = message[1] if len(message) >= 2 and message[0] == 0x08 else 0
    return _STATUSES[value] if value < len(_STATUSES) else str(value)


def _message(service: str) -> bytes:
    """The request: five bytes before the message, whose field 1 is the name of the service."""
    name = service.encode()
    if len(name) > MAX_SERVICE:
        raise _CallFailed(f"the name of the service has {len(name)} bytes, the limit is {MAX_SERVICE}")
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return struct.pack(">BI", 0, len(message)) + message


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _varint(number >> 7)


class _Call:
    """The only call of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from h2.config import H2Configuration  # 30 ms, which only pods with such probes pay
        from h2.connection import H2Connection

        self._reader = reader
        self._writer = writer
        self._connection = H2Connection(H2Configuration(header_encoding=None))
        self._body = bytearray()
        self._status: int | None = None
        self._ended = False

    async def response(self, authority: str, service: str) -> tuple[int, bytes]:
        """The status of the call, and its message."""
        from h2.exceptions import ProtocolError

        self._send(authority, service)
        size = 0
        while not self._ended:
            data = await self._reader.read(_READ)
            if not size and data.startswith(b"HTTP/"):
                raise _CallFailed("the server does not speak HTTP/2")
            size += len(data)
            if size > MAX_RESPONSE:
                raise _CallFailed(f"the response is larger than {MAX_RESPONSE} bytes")
            if not data:
                raise _CallFailed("the server closed the connection")
            try:
                for event in self._connection.receive_data(data):
                    self._take(event)
            except ProtocolError as error:
                raise _CallFailed(f"the server broke HTTP/2: {str(error)[:200]}") from None
            self._writer.write(self._connection.data_to_send())
        if self._status is None:
            raise _CallFailed("the server does not speak gRPC: the response has no grpc-status")
        return self._status, bytes(self._body)

    def _send(self, authority: str, service: str) -> None:
        message = _message(service)
        self._connection.initiate_connection()
        self._connection.send_headers(
            _STREAM,
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", "/grpc.health.v1.Health/Check"),
                (":authority", authority),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", USER_AGENT),
            ],
        )
        self._connection.send_data(_STREAM, message, end_stream=True)
        self._writer.write(self._connection.data_to_send())

    def _take(self, event: Event) -> None:
        from h2 import events

        match event:
            case events.StreamReset() | events.ConnectionTerminated():
                raise _CallFailed("the server ended the call")
            case events.ResponseReceived() | events.TrailersReceived():
                status = _status_of(event.headers)
                self._status = self._status if status is None else status
            case events.DataReceived():
                self._body += event.data or b""
            case events.StreamEnded():
                self._ended = True


def _status_of(headers: list[tuple[bytes, bytes]]) -> int | None:
    """The value of `grpc-status`; None if there is none."""
    text = dict(headers).get(b"grpc-status")
    if text is None:
        return None
    if not text.isdigit() or len(text) > 9:
        raise _CallFailed(f"grpc-status {text!r} is no number")
    return int(text)
