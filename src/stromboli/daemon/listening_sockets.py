"""Sockets that listen on an address; whoever connects waits there until somebody serves."""

from __future__ import annotations

import asyncio
import errno
import socket

from stromboli.daemon.flags import BadFlag

BACKLOG = 1024
"""Connections that the system keeps until we accept them."""


def split_address(address: str) -> tuple[str | None, int]:
    """`:8080` is every address; `[::1]:8080` one of IPv6."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadFlag(f"{address!r} is no address such as :8080 or 127.0.0.1:8080")
    return host.strip("[]") or None, int(port)


async def open_sockets(host: str | None, port: int) -> list[socket.socket]:
    """A socket for each address of a host, all on one port; a family that this machine does not have is left out."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            chosen = sockets[0].getsockname()[1] if sockets else port
            place = (address[0], chosen, *address[2:])
            try:
                sockets.append(socket.create_server(place, family=family, backlog=BACKLOG))
            except OSError as error:
                if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                    raise
                missing = error
        if missing is not None and not sockets:
            raise missing
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    for opened in sockets:
        opened.setblocking(False)
    return sockets
