"""Which requests a browser may send, and what its responses let a page do.

A browser sends our cookie with every request to our host, whoever made it send that. So a request that changes anything
must come from a page of ours; nobody may show us in a frame; and who reaches us by a name that is not ours (DNS
rebinding) is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from aiohttp import web

from stromboli.cli.dashboard.server.listening_address import LOOPBACK_HOSTS
from stromboli.cli.dashboard.server.peer_users import PeerUsers

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "stromboli",
}
LOOPBACK_NAMES = tuple(f"[{host}]" if ":" in host else host for host in LOOPBACK_HOSTS)
_PORT = re.compile(r":[0-9]{1,5}$")
SAFE_METHODS = ("GET", "HEAD")


class RequestGuard:
    """Knows the names under which this server may be asked for: those of loopback, and those that it was given.

    On loopback any port will do, as a forwarded one differs from ours; a name that somebody else's DNS leads here is
    none of these.
    """

    def __init__(self, hosts: Iterable[str], users: PeerUsers | None = None) -> None:
        """`hosts` are the names besides those of loopback, each with its port unless that is the usual one.

        With `users`, only theirs are answered of those who connect on this machine.
        """
        self._hosts = {host.lower() for host in hosts}
        self._users = users
        self._strangers: WeakKeyDictionary[asyncio.BaseTransport, bool] = WeakKeyDictionary()
        """Whether a connection is another user's."""

    def _is_ours(self, host: str) -> bool:
        return host in self._hosts or _PORT.sub("", host) in LOOPBACK_NAMES

    def refusal(self, request: web.Request) -> web.Response | None:
        """The response to a request that is not let through; None if it is."""
        host = request.headers.get("Host", "").lower()
        if not self._is_ours(host):
            return web.Response(
                status=421,
                text=f"This dashboard is not called {host[:100]!r}. If it is, start it with --allowed-host.\n",
            )
        is_safe = request.method in SAFE_METHODS
        if not (self._is_reading(request) if is_safe else self._is_from_here(request, host)):
            return web.Response(status=403, text="This request does not come from a page of the dashboard.\n")
        if self._is_stranger(request):
            return web.Response(status=403, text="This dashboard is another user's.\n")
        return None

    def _is_reading(self, request: web.Request) -> bool:
        """Whether it opens a page, or comes from one of ours; not what another site makes a browser load."""
        site = request.headers.get("Sec-Fetch-Site", "none")
        return site in ("same-origin", "none") or request.headers.get("Sec-Fetch-Mode") == "navigate"

    def _is_stranger(self, request: web.Request) -> bool:
        transport = request.transport
        if self._users is None or transport is None:
            return False
        known = self._strangers.get(transport)
        if known is None:
            peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            known = self._strangers[transport] = self._users.refuses(peer[:2], own[:2])
        return known

    def _is_from_here(self, request: web.Request, host: str) -> bool:
        """Whether a page of ours made the browser send it, by what the browser says and no page can change."""
        site = request.headers.get("Sec-Fetch-Site")
        if site is not None:
            return site == "same-origin"
        origin = request.headers.get("Origin", "").lower()
        return origin in (f"http://{host}", f"https://{host}")
