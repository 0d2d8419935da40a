"""What a server tells the connection of a request, which keeps the time."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from aiohttp import web

from stromboli.daemon.connection_limits import MOST_CONNECTIONS
from stromboli.daemon.guarded_connection import Connection


def connection_of(request: web.BaseRequest) -> Connection | None:
    """The connection of a request, if it is still there."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    return protocol if isinstance(protocol, Connection) else None


def is_local(request: web.BaseRequest) -> bool:
    """Whether a request comes over loopback."""
    try:
        return ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        return False


def prove(request: web.BaseRequest, owner: str = "", most: int = MOST_CONNECTIONS) -> bool:
    """The client of a request is known, so its connection is kept when many unknown ones come.

    If the client has more than `most` connections, the longest idle is closed. If none is idle the result is False, and
    this connection is closed after the answer.
    """
    connection = connection_of(request)
    return connection is None or connection.prove(owner, most)


def stream(request: web.BaseRequest, left: Callable[[], None] | None = None) -> None:
    """The response to a request has no end of its own: its client is not cut off for reading slowly.

    `left` is called when the client leaves: aiohttp tells that to nobody who waits for something to send.
    """
    if (connection := connection_of(request)) is not None:
        connection.stream(left)


def finish(request: web.BaseRequest) -> None:
    """A response without an end of its own is to end now: a client that does not read the rest is cut off."""
    if (connection := connection_of(request)) is not None:
        connection.finish()
