"""How many connections an HTTP server of ours keeps, and how much time it gives their clients."""

from __future__ import annotations

import asyncio.sslproto
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, replace

MOST_CONNECTIONS = 8192
"""Open at once; beyond that the connection goes that has been idle for longest."""
MOST_UNPROVEN = 512
"""Open at once without any request that was authenticated; beyond that the oldest of them goes."""
MOST_HEADER_BYTES = 64 * 1024
"""In the header of a request whose client is not known yet; aiohttp itself takes a MiB."""
HEADER_TIME = 10.0
"""Seconds from the first byte of a request to the end of its header; for the first, TLS handshake included."""
BODY_TIME = 30.0
"""Seconds from there to the end of the body; a second more for every `SLOWEST` bytes."""
IDLE_TIME = 120.0
"""Seconds between two requests; more than the 90 after which Kubernetes' own clients hang up."""
WRITE_TIME = 30.0
"""Seconds for which a client may read what was sent to it more slowly than `SLOWEST`."""
SLOWEST = 16 * 1024
"""Bytes in a second."""
TLS_BUFFER = 32 * 1024
"""Bytes that a connection reads from its socket at once, kept for as long as it is open; asyncio has 256 KiB."""
MOST_DESCRIPTORS = 1_048_576
"""To which the limit on open files is raised at most: some systems have none, and refuse to be asked for more."""
INHERITED_DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The limit that this process was started with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Of one server. Watches and logs that are followed may take as long as they like."""

    connections: int = MOST_CONNECTIONS
    unproven: int = MOST_UNPROVEN
    header_bytes: int = MOST_HEADER_BYTES
    header_time: float = HEADER_TIME
    body_time: float = BODY_TIME
    idle_time: float = IDLE_TIME
    write_time: float = WRITE_TIME
    slowest: int = SLOWEST

    def within_descriptors(self) -> ConnectionLimits:
        """At most half of the files that this process may open, and half of these for the unproven."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files == resource.RLIM_INFINITY:
            return self
        return replace(
            self, connections=min(self.connections, files // 2), unproven=min(self.unproven, files // 4)
        )


def shrink_tls_buffers() -> None:
    """Let TLS connections of this process have smaller buffers: of its memory, an idle one is little else.

    `start_tls` makes the protocol by itself, so there is no other place to say it than the class.
    """
    protocol = asyncio.sslproto.SSLProtocol
    if getattr(protocol, "max_size", 0) > TLS_BUFFER:
        protocol.max_size = TLS_BUFFER


def raise_descriptor_limit() -> None:
    """Let this process open as many files as it may: every connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with suppress(OSError, ValueError):  # there is a lower limit that nobody told us of
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def restore_descriptor_limit(pid: int) -> None:
    """Give a process that we started the limit that we had: some programs close all files that they could have."""
    if sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with suppress(OSError, ValueError):  # it has ended, or the limit has become lower
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (INHERITED_DESCRIPTORS, hard))
