"""Browsers that were let in, known by a cookie that scripts cannot read and other sites cannot send along."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from aiohttp import web

from stromboli.daemon.request_connection import is_local

MOST_SESSIONS = 512
"""Browsers that are remembered; the one that was used least recently goes for a new one."""
MOST_OWN_SESSIONS = 16
"""Of one owner; his oldest goes for a new one."""
HOST_PREFIX = "__Host-"
"""Of the names of cookies over TLS: nobody but this very host can set them."""
SESSION_SECONDS = 12 * 3600.0
"""After which a browser that asked for nothing has to be let in again."""
SECRET_SIZE = 32
"""Random bytes of a cookie."""

Holder = TypeVar("Holder", bound=Hashable)


@dataclass(slots=True)
class _Session(Generic[Holder]):
    holder: Holder
    owner: str
    is_local: bool
    used: float


class BrowserSessions(Generic[Holder]):
    """Who was let in with which cookie; forgotten when the process ends."""

    def __init__(self, cookie: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._cookie = cookie
        self._clock = clock
        self._sessions: dict[str, _Session[Holder]] = {}
        """The one that was used least recently first."""

    def find(self, request: web.Request) -> Holder | None:
        """Whose cookie a request has; None if it is not known, or no longer.

        One that was given over loopback, as through a forwarded port, is worth nothing over a network: browsers send it
        to all ports of a host, and who listens on another one might pass it on.
        """
        self.sweep()
        identity = self._identity(request)
        session = self._sessions.get(identity)
        if session is None or (session.is_local and not is_local(request)):
            return None
        del self._sessions[identity]
        session.used = self._clock()
        self._sessions[identity] = session
        return session.holder

    def begin(
        self, request: web.Request, owner: str, holder: Holder, response: web.StreamResponse, secure: bool
    ) -> None:
        """Let a browser of an owner in: its cookie goes with the response."""
        own = [identity for identity, session in self._sessions.items() if session.owner == owner]
        if len(own) >= MOST_OWN_SESSIONS:
            del self._sessions[own[0]]
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        identity = secrets.token_urlsafe(SECRET_SIZE)
        self._sessions[identity] = _Session(holder, owner, is_local(request), self._clock())
        name = HOST_PREFIX + self._cookie if secure else self._cookie
        response.set_cookie(name, identity, path="/", httponly=True, samesite="Lax", secure=secure)

    def end(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let a browser out."""
        self._sessions.pop(self._identity(request), None)
        response.del_cookie(self._cookie, path="/", httponly=True, samesite="Lax")
        response.del_cookie(HOST_PREFIX + self._cookie, path="/", httponly=True, samesite="Lax", secure=True)

    def _identity(self, request: web.Request) -> str:
        return request.cookies.get(HOST_PREFIX + self._cookie) or request.cookies.get(self._cookie, "")

    def sweep(self) -> None:
        """Forget those that have not been used for long."""
        oldest = self._clock() - SESSION_SECONDS
        while self._sessions and next(iter(self._sessions.values())).used < oldest:
            self._sessions.pop(next(iter(self._sessions)))

    @property
    def holders(self) -> set[Holder]:
        """Who is in."""
        return {session.holder for session in self._sessions.values()}
