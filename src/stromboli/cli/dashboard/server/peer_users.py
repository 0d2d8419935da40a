"""Which user of this machine is at the other end of a connection over loopback.

Browsers send the cookies of a host to all of its ports, so a server of another user on this machine can come to know
ours. It is worth nothing to him if only the browser's user is answered. Linux tells whose a connection is; where that
cannot be known, everybody on this machine is answered who has the cookie.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED = "01"
"""Only in this state does the table say whose a connection is; of one that is being closed it says 0."""
LARGEST_TABLE = 16 * 1024 * 1024
"""Bytes of a table that are read."""
Place = tuple[str, int]
"""An address and a port."""


class PeerUsers:
    """Knows the users who are answered: whoever started this process, and root."""

    def __init__(self, is_known: bool | None = None) -> None:
        """Whether the system tells whose connections are; found out unless given."""
        self._is_known = _is_told() if is_known is None else is_known
        started_by = os.environ.get("SUDO_UID", "")
        self._allowed = {0, os.getuid(), *([int(started_by)] if started_by.isdecimal() else [])}

    def refuses(self, peer: Place, own: Place) -> bool:
        """Whether a connection is another user's."""
        return self._is_known and user_of(peer, own) not in self._allowed


def user_of(peer: Place, own: Place) -> int | None:
    """The user whose connection it is, as the system has it in its tables; None if it is in none of them."""
    wanted = {(local, remote) for local in _entries(*peer) for remote in _entries(*own)}
    for table in TABLES:
        try:
            with table.open("rb") as file:
                lines = file.read(LARGEST_TABLE).decode("ascii", errors="replace").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 7 and fields[3] == ESTABLISHED and (fields[1], fields[2]) in wanted:
                return int(fields[7])
    return None


def _entries(address: str, port: int) -> set[str]:
    """An address and port as the tables write them; one of IPv4 may stand in the table of IPv6, too."""
    plain = address.removeprefix("::ffff:")
    if ":" in plain:
        return {f"{_words(socket.inet_pton(socket.AF_INET6, plain.partition('%')[0]))}:{port:04X}"}
    packed = socket.inet_aton(plain)
    mapped = bytes(10) + b"\xff\xff" + packed
    return {f"{_words(packed)}:{port:04X}", f"{_words(mapped)}:{port:04X}"}


def _words(packed: bytes) -> str:
    """In words of four bytes, each as this machine has numbers in memory."""
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, 'little'):08X}" for word in words)


def _is_told() -> bool:
    """Whether the system says of a connection of our own that it is ours."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=1.0) as client,
        ):
            return user_of(client.getsockname(), client.getpeername()) == os.getuid()
    except OSError:
        return False
