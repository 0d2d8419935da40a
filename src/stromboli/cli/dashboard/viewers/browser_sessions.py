"""Browsers that were let in, known by a cookie that scripts cannot read and other sites cannot send along."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from aiohttp import web

MOST_SESSIONS = 512
"""Browsers that are remembered; the one that was used least recently goes for a new one."""
SESSION_SECONDS = 12 * 3600.0
"""After which a browser that asked for nothing has to be let in again."""
SECRET_SIZE = 32
"""Random bytes of a cookie."""

Holder = TypeVar("Holder", bound=Hashable)


@dataclass(slots=True)
class _Session(Generic[Holder]):
    holder: Holder
    used: float


class BrowserSessions(Generic[Holder]):
    """Who was let in with which cookie; forgotten when the process ends."""

    def __init__(self, cookie: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._cookie = cookie
        self._clock = clock
        self._sessions: dict[str, _Session[Holder]] = {}
        """The one that was used least recently first."""

    def find(self, request: web.Request) -> Holder | None:
        """Whose cookie a request has; None if it is not known, or no longer."""
        self.sweep()
        identity = request.cookies.get(self._cookie, "")
        session = self._sessions.pop(identity, None)
        if session is None:
            return None
        session.used = self._clock()
        self._sessions[identity] = session
        return session.holder

    def begin(self, holder: Holder, response: web.StreamResponse, secure: bool) -> None:
        """Let a browser in: its cookie goes with the response."""
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        identity = secrets.token_urlsafe(SECRET_SIZE)
        self._sessions[identity] = _Session(holder, self._clock())
        response.set_cookie(self._cookie, identity, path="/", httponly=True, samesite="Lax", secure=secure)

    def end(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let a browser out."""
        self._sessions.pop(request.cookies.get(self._cookie, ""), None)
        response.del_cookie(self._cookie, path="/", httponly=True, samesite="Lax")

    def sweep(self) -> None:
        """Forget those that have not been used for long."""
        oldest = self._clock() - SESSION_SECONDS
        while self._sessions and next(iter(self._sessions.values())).used < oldest:
            self._sessions.pop(next(iter(self._sessions)))

    @property
    def holders(self) -> set[Holder]:
        """Who is in."""
        return {session.holder for session in self._sessions.values()}
