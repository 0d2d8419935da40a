"""How viewers are known: what the server asks of either way."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from stromboli.cli.dashboard.viewers.viewer import Viewer


class NotAdmitted(Exception):
    """Somebody cannot be let in; the message says why and what to do."""


class ViewerAuthentication(Protocol):
    """Who sends a request, and how somebody who is not known can be let in."""

    asks_for_token: bool
    """Whether the page for those who are not known has a field for a token."""
    help: str
    """What it says besides."""

    async def viewer(self, request: web.Request) -> Viewer | None:
        """Who it is; None if he is not known. `NotAdmitted` if the API server cannot be asked."""

    async def admit(self, request: web.Request, given: str, response: web.StreamResponse) -> None:
        """Let somebody in by a code or token, with a cookie on the response; `NotAdmitted` if it does not hold."""

    async def leave(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let somebody out."""

    async def sweep(self) -> None:
        """Forget who has not been seen for long."""

    async def close(self) -> None: ...
