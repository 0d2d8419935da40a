"""Ports for servers that tests start in processes of their own."""

from __future__ import annotations

import random
import socket

CANDIDATES = range(16384, 30000)
"""Below the node ports and below the ports that Linux gives to clients, so that no client takes one meanwhile."""


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens."""
    candidates = random.SystemRandom().sample(CANDIDATES, len(CANDIDATES))
    free = (port for port in candidates if _is_free(port))
    return [next(free) for _ in range(count)]


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
