"""Which requests a browser may send, and what its responses let a page do.

A browser sends our cookie with every request to our host, whoever made it send that. So a request that changes anything
must come from a page of ours; nobody may show us in a frame; and who reaches us by a name that is not ours (DNS
rebinding) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aiohttp import web

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
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_PORT = re.compile(r":[0-9]{1,5}$")
SAFE_METHODS = ("GET", "HEAD")


class RequestGuard:
    """Knows the names under which this server may be asked for: those of loopback, and those that it was given.

    On loopback any port will do, as a forwarded one differs from ours; a name that somebody else's DNS leads here is
    none of these.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        """`hosts` are the names besides those of loopback, each with its port unless that is the usual one."""
        self._hosts = {host.lower() for host in hosts}

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
        if request.method not in SAFE_METHODS and not self._is_from_here(request, host):
            return web.Response(status=403, text="This request does not come from a page of the dashboard.\n")
        return None

    def _is_from_here(self, request: web.Request, host: str) -> bool:
        """Whether a page of ours made the browser send it, by what the browser says and no page can change."""
        site = request.headers.get("Sec-Fetch-Site")
        if site is not None:
            return site == "same-origin"
        origin = request.headers.get("Origin", "").lower()
        return origin in (f"http://{host}", f"https://{host}")
