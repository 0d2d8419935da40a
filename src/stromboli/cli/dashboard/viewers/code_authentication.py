"""On the user's own machine: whoever has the code of the printed address looks with his rights."""

from __future__ import annotations

from aiohttp import web

from stromboli.cli.dashboard.viewers.browser_sessions import BrowserSessions
from stromboli.cli.dashboard.viewers.one_time_code import OneTimeCode
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.viewers.viewer_authentication import NotAdmitted


class CodeAuthentication:
    """One viewer, in as many browsers as there were codes."""

    asks_for_token = False
    help = (
        "Open the address that was printed when this dashboard started, or printed last: it lets one browser in."
        " On a cluster of stromboli up, the command stromboli dashboard prints the next."
    )

    def __init__(self, viewer: Viewer, code: OneTimeCode, cookie: str) -> None:
        self._viewer = viewer
        self._code = code
        self._browsers: BrowserSessions[Viewer] = BrowserSessions(cookie)

    async def viewer(self, request: web.Request) -> Viewer | None:
        return self._browsers.find(request)

    async def admit(self, request: web.Request, given: str, response: web.StreamResponse) -> None:
        if not self._code.use(given):
            raise NotAdmitted("The code in this address was used before, or is none.")
        self._browsers.begin(request, self._viewer.key, self._viewer, response, request.secure)

    async def leave(self, request: web.Request, response: web.StreamResponse) -> None:
        self._browsers.end(request, response)

    async def sweep(self) -> None:
        self._browsers.sweep()

    async def close(self) -> None:
        """There is nothing to close: the session is the command's."""
