"""Tells systemd, or whoever starts us likewise, that we are ready or stopping: a datagram to $NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress

VARIABLE = "NOTIFY_SOCKET"
READY, STOPPING = "READY=1", "STOPPING=1"


class ServiceNotification:
    """Without the variable, or if nobody listens there, nothing is told."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """The variable is taken out: what we start is not to speak for us."""
        address = environment.pop(VARIABLE, "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    def tell(self, *lines: str) -> None:
        if not self._address.startswith(("/", "\0")):
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.setblocking(False)
            out.sendto("\n".join(lines).encode(), self._address)
