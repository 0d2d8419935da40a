"""One HTTP call with a bound on time and size, for sources of node usage and for plugins.

Whatever the server does, the result is its whole response within the time, or `CallFailed`.
Redirects are not followed, proxies are not used, and each call has a connection of its own. HTTP and TLS are imported
by the first call, as most policies never make one and importing them takes longer than a small plan.
"""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

if TYPE_CHECKING:
    import http.client
    import ssl

LARGEST = 10 * 1024 * 1024
"""Bytes of a response, at most."""
OK = 200
_CHUNK = 65536


class CallFailed(Exception):
    """Why there is no response, without secrets; `status` if the server sent another than 200."""

    def __init__(self, problem: str, status: int = 0):
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True, slots=True)
class Trust:
    """How the server's certificate is verified, if at all."""

    verify: bool = True
    ca_file: str = ""

    def context(self) -> ssl.SSLContext:
        import ssl

        context = ssl.create_default_context(cafile=self.ca_file or None)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class Call:
    """A request. A name and password in the address become a header."""

    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 10.0
    trust: Trust = Trust()
    largest: int = LARGEST


def post(url: str, body: bytes, timeout: float) -> bytes:
    """Post JSON and return the response."""
    return send(Call(url, body, {"Content-Type": "application/json"}, timeout))


def send(call: Call) -> bytes:
    """Make a call: POST where there is a body, else GET. The body of the response, or `CallFailed`."""
    import http.client

    shown = shown_url(call.url)
    try:
        parts = urlsplit(call.url)
        connection = _connection(parts, call)
    except (ValueError, OSError, http.client.HTTPException) as error:
        raise CallFailed(f"{shown}: {_cause(error)}") from None
    deadline = _Deadline(connection, call.timeout)
    try:
        return _exchange(connection, deadline, parts, call)
    except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
        # AttributeError: http.client and ssl stumble over a connection that was cut at the deadline
        late = deadline.passed or isinstance(error, TimeoutError)
        why = f"no answer within {call.timeout:g}s" if late else _cause(error)
        raise CallFailed(f"{shown}: {why}") from None
    except CallFailed as error:
        raise CallFailed(f"{shown}: {error}", error.status) from None
    finally:
        deadline.cancel()
        connection.close()


def shown_url(url: str) -> str:
    """An address as it may be printed: without name, password and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an address that cannot be read)"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def basic(name: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _connection(parts: SplitResult, call: Call) -> http.client.HTTPConnection:
    import http.client

    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not an http or https address")
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=call.timeout)
    return http.client.HTTPSConnection(
        parts.hostname, parts.port, timeout=call.timeout, context=call.trust.context()
    )


def _exchange(
    connection: http.client.HTTPConnection, deadline: _Deadline, parts: SplitResult, call: Call
) -> bytes:
    headers = {"Accept": "application/json", "Connection": "close", **call.headers}
    if parts.username is not None:
        headers["Authorization"] = basic(unquote(parts.username), unquote(parts.password or ""))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.connect()
    deadline.link = connection.sock
    connection.request("GET" if call.body is None else "POST", target, call.body, headers)
    with connection.getresponse() as response:
        if response.status != OK:
            raise CallFailed(f"answered {response.status}", response.status)
        return _body(response, deadline, call.largest)


def _body(response: http.client.HTTPResponse, deadline: _Deadline, largest: int) -> bytes:
    received = bytearray()
    while chunk := response.read1(_CHUNK):
        received += chunk
        if len(received) > largest:
            raise CallFailed(f"answered more than {largest} bytes")
    if deadline.passed:
        raise TimeoutError
    if response.length:
        raise CallFailed(f"broke off after {len(received)} bytes")
    return bytes(received)


class _Deadline:
    """Cuts a connection when its time is up: a socket's own timeout starts again with every byte."""

    def __init__(self, connection: http.client.HTTPConnection, seconds: float):
        self.link: socket.socket | None = None
        """The socket once it is connected; the connection itself lets go of it before the body is read."""
        self._connection = connection
        self._end = monotonic() + seconds
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    @property
    def passed(self) -> bool:
        return monotonic() >= self._end

    def _cut(self) -> None:
        link: socket.socket | None = self.link or self._connection.sock
        if link is not None:
            with suppress(OSError, ValueError):  # closed in the meantime
                link.shutdown(socket.SHUT_RDWR)

    def cancel(self) -> None:
        self._timer.cancel()


def _cause(error: Exception) -> str:
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return f"{type(error).__name__}: {text}"[:300]
