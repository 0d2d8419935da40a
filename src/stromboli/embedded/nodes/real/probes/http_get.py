"""An HTTP request as kubelets make it for probes and hooks: certificates are not verified, local redirects followed."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

import aiohttp
from yarl import URL

USER_AGENT = "kube-probe/1.34"
MAX_REDIRECTS = 10
_DEFAULTS = {"User-Agent": USER_AGENT, "Accept": "*/*"}
"""Headers unless they are given; an empty value leaves them out."""
_HOST = re.compile(r"[-.:_a-zA-Z0-9]+")
_URL_CHARACTERS = "%/:?#[]@!$&'()*+,;="
_REDIRECTS = (301, 302, 303, 307, 308)


class RequestFailed(Exception):
    """There is no response."""


class Response(NamedTuple):
    """A status, and the beginning of the body."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class HttpGet:
    """A request to be sent."""

    url: URL
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def to(cls, scheme: str, host: str, port: int, path: str, headers: Sequence[tuple[str, str]]) -> HttpGet:
        """`ValueError` if there is no such URL."""
        if scheme not in ("http", "https"):
            raise ValueError(f"scheme {scheme!r} is neither HTTP nor HTTPS")
        if not _HOST.fullmatch(host):
            raise ValueError(f"host {host!r} is neither a name nor an address")
        bracketed = f"[{host}]" if ":" in host else host
        encoded = quote(path.removeprefix("/"), safe=_URL_CHARACTERS)
        url = URL(f"{scheme}://{bracketed}:{port}/{encoded}", encoded=True)
        given = {name.lower() for name, _ in headers}
        defaults = [(name, value) for name, value in _DEFAULTS.items() if name.lower() not in given]
        others = [(name, value) for name, value in headers if value or name.title() not in _DEFAULTS]
        return cls(url, (*defaults, *others))

    async def send(self, timeout: float, most_bytes: int) -> Response:
        """`RequestFailed` says why there is no response."""
        try:
            async with (
                asyncio.timeout(timeout),
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=_unverified(), force_close=True),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
                    auto_decompress=False,
                ) as session,
            ):
                return await self._follow(session, most_bytes)
        except TimeoutError:
            raise RequestFailed(
                f'Get "{self.url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise RequestFailed(f'Get "{self.url}": {_reason(error)}') from None

    async def _follow(self, session: aiohttp.ClientSession, most_bytes: int) -> Response:
        """The response after redirects to the same host."""
        url = self.url
        for _ in range(MAX_REDIRECTS):
            async with session.get(url, headers=self.headers, allow_redirects=False) as response:
                target = _redirect(url, response)
                if target is None or target.host != self.url.host:
                    return Response(response.status, await _beginning(response, most_bytes))
                url = target
        raise RequestFailed(f'Get "{url}": stopped after {MAX_REDIRECTS} redirects')


def _redirect(url: URL, response: aiohttp.ClientResponse) -> URL | None:
    location = response.headers.get("Location")
    return url.join(URL(location)) if response.status in _REDIRECTS and location else None


async def _beginning(response: aiohttp.ClientResponse, most_bytes: int) -> str:
    """Not all: a body need not end."""
    body = bytearray()
    while len(body) < most_bytes and (piece := await response.content.read(most_bytes - len(body))):
        body.extend(piece)
    return body.decode(errors="replace")


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return f"dial tcp {error.host}:{error.port}: {connect_error(error.os_error)}"
    return str(error) or type(error).__name__


def connect_error(error: Exception) -> str:
    """Why a connection failed, without what Python adds to it."""
    number = getattr(error, "errno", None)
    return f"connect: {os.strerror(number).lower()}" if number and number > 0 else str(error)


@cache
def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
