"""The connections of an HTTP server, of which some are closed when there are too many."""

from __future__ import annotations

import logging
import ssl
import time

from aiohttp import web

from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.daemon.guarded_connection import Connection, Phase
from stromboli.daemon.log_format import about

log = logging.getLogger(__name__)

REST = 60.0
"""Seconds after which connections that were closed for the same reason are logged again."""


class ConnectionGuard:
    """The connections of one server."""

    def __init__(self, server: web.Server, limits: ConnectionLimits, tls: ssl.SSLContext | None) -> None:
        self.server = server
        self.limits = limits
        self.tls = tls
        self._phases: dict[Phase, dict[Connection, object]] = {phase: {} for phase in Phase}
        """Those in each phase, the longest in it first."""
        self._owned: dict[str, dict[Connection, object]] = {}
        """Those of each user."""
        self._log = _ClosedLog()

    def __len__(self) -> int:
        return sum(map(len, self._phases.values()))

    def connection(self) -> Connection:
        """The protocol of a new connection."""
        return Connection(self)

    def add(self, connection: Connection) -> None:
        """Take in a connection; another one, or it, is closed if there are too many now."""
        phases = self._phases
        phases[connection.phase][connection] = None
        if len(phases[Phase.WAITING]) + len(phases[Phase.UNPROVEN_REQUEST]) > self.limits.unproven:
            reason = f"more than {self.limits.unproven} without an authenticated request"
            self._close_one(reason, connection, Phase.WAITING, Phase.UNPROVEN_REQUEST)
        elif len(self) > self.limits.connections:
            reason = f"more than {self.limits.connections} are open"
            self._close_one(reason, connection, Phase.WAITING, Phase.IDLE, Phase.UNPROVEN_REQUEST)

    def own(self, connection: Connection, owner: str, most: int) -> bool:
        """Count a connection as a user's, and close the longest idle if that has too many; False if none is idle."""
        if connection.owner == owner or connection not in self._phases[connection.phase]:
            return True
        owned = self._owned.get(owner, {})
        if len(owned) >= most:
            idle = [other for other in owned if other.phase is Phase.IDLE]
            if not idle:
                return False
            longest = min(idle, key=lambda other: other.since)
            longest.close(f'more than {most} of "{owner}" are open', logging.WARNING)
        self._disown(connection)
        connection.owner = owner
        self._owned.setdefault(owner, {})[connection] = None
        return True

    def _disown(self, connection: Connection) -> None:
        owned = self._owned.get(connection.owner, {})
        owned.pop(connection, None)
        if not owned:
            self._owned.pop(connection.owner, None)

    def make_room(self) -> None:
        """Close a connection that does nothing, as descriptors have run out."""
        self._close_one("no more files can be opened", None, Phase.WAITING, Phase.IDLE)

    def _close_one(self, reason: str, latest: Connection | None, *phases: Phase) -> None:
        others = (other for phase in phases for other in self._phases[phase] if other is not latest)
        victim = next(others, latest)
        if victim is not None:
            victim.close(reason, logging.WARNING)

    def move(self, connection: Connection, phase: Phase) -> None:
        """To its next phase, unless it is closed."""
        if self._phases[connection.phase].pop(connection, self) is not self:
            connection.phase = phase
            self._phases[phase][connection] = None

    def remove(self, connection: Connection) -> None:
        self._phases[connection.phase].pop(connection, None)
        self._disown(connection)

    def closed(self, reason: str, level: int) -> None:
        """Log that a connection was closed against the will of its client."""
        self._log.add(reason, level, time.monotonic())

    def abort(self) -> None:
        """Close all connections at once."""
        for connections in self._phases.values():
            for connection in list(connections):
                connection.abort()


class _ClosedLog:
    """One line a minute for each reason."""

    def __init__(self) -> None:
        self._untold: dict[str, int] = {}
        self._told: dict[str, float] = {}

    def add(self, reason: str, level: int, now: float) -> None:
        self._untold[reason] = self._untold.get(reason, 0) + 1
        if now - self._told.get(reason, -REST) >= REST:
            self._told[reason] = now
            log.log(
                level, "closed connections: %s", reason, extra=about(connections=self._untold.pop(reason))
            )
