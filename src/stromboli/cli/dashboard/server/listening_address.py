"""Where a dashboard listens, and the address that a user opens."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.dashboard.viewers.one_time_code import CODE, OneTimeCode
from stromboli.daemon.listening_sockets import open_sockets

DEFAULT_PORT = 7373
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
LOOPBACK = LOOPBACK_HOSTS[0]


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a dashboard listens: opened before anything else, so that its address is known."""

    sockets: list[socket.socket]
    host: str
    tls: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        return int(self.sockets[0].getsockname()[1])

    @property
    def name(self) -> str:
        """Host and port, as an address has them."""
        host = LOOPBACK if self.host in ("", "0.0.0.0", "::", LOOPBACK) else self.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def address(self, code: str = "") -> str:
        """What a user opens in a browser."""
        scheme = "https" if self.tls is not None else "http"
        return f"{scheme}://{self.name}/{f'?{CODE}={code}' if code else ''}"


async def listen(host: str, port: int | None, tls: ssl.SSLContext | None = None) -> Listening:
    """On a port; unless one is given on the usual one, or on any other if that is taken."""
    for wanted in (port,) if port is not None else (DEFAULT_PORT, 0):
        try:
            return Listening(await open_sockets(host or None, wanted), host, tls)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port is not None:
                reason = os.strerror(error.errno) if error.errno else str(error)
                place = f"[{host}]" if ":" in host else host
                raise ClusterError(
                    f"--listen-address {place}:{port}: {reason}; {place}:0 takes any free port"
                ) from None
    raise AssertionError("any port is free")


def one_time_code(listening: Listening, renewed: Callable[[str], None]) -> OneTimeCode:
    """A code for this address; `renewed` is called with each address that lets in next."""
    return OneTimeCode(lambda code: renewed(listening.address(code)))
