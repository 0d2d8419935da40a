"""A dashboard that listens, on the embedded API server, and browsers that ask it whatever they like."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.server.dashboard_server import DashboardServer
from stromboli.cli.dashboard.server.listening_address import listen, one_time_code
from stromboli.cli.dashboard.viewers.one_time_code import OneTimeCode
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from tests.embedded.api_requests import ApiCaller, running

CATALOG = load_catalog()
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PATIENCE = 20.0


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    text: str
    cookies: dict[str, str]
    """Each as the server set it, with its attributes."""


class Browser:
    """Somebody with cookies, who follows no redirect by himself and sends what he is told to."""

    def __init__(self, session: aiohttp.ClientSession, url: str, cookies: str = "") -> None:
        self._session = session
        self.url = url
        self.cookies = cookies
        """The header."""

    async def request(
        self, method: str, address: str, headers: dict[str, str] | None = None, body: bytes = b""
    ) -> Response:
        sent = {"Cookie": self.cookies} if self.cookies else {}
        async with self._session.request(
            method,
            URL(self.url + address, encoded=True),
            headers={**sent, **(headers or {})},
            data=body or None,
            allow_redirects=False,
            ssl=False,
        ) as answer:
            text = (await answer.read()).decode()
            cookies = {name: each.OutputString() for name, each in answer.cookies.items()}
            return Response(answer.status, dict(answer.headers), text, cookies)

    async def get(self, address: str, **headers: str) -> Response:
        return await self.request("GET", address, {name.replace("_", "-"): headers[name] for name in headers})

    async def post(self, address: str, body: str = "", **headers: str) -> Response:
        """As a form of the dashboard's own pages sends it, unless headers say otherwise."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.request("POST", address, {**SAME_ORIGIN, **FORM, **given}, body.encode())

    def accept(self, response: Response) -> None:
        """Keep the cookies of a response."""
        self.cookies = "; ".join(each.partition(";")[0] for each in response.cookies.values())

    @asynccontextmanager
    async def events(self, view: str, digest: str = "", **headers: str) -> AsyncIterator[Events]:
        """The live updates of a page."""
        query = f"/live?view={URL.build(query={'v': view}).raw_query_string[2:]}&digest={digest}"
        sent = {"Cookie": self.cookies, **{name.replace("_", "-"): headers[name] for name in headers}}
        address = URL(self.url + query, encoded=True)
        async with self._session.get(address, headers=sent, ssl=False) as answer:
            yield Events(answer)
            answer.close()


class Events:
    """A stream of server-sent events."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = dict(answer.headers)

    async def message(self) -> str:
        """The next one, comments too; empty at the end of the stream."""
        async with asyncio.timeout(PATIENCE):
            lines = []
            while line := (await self._answer.content.readline()).decode():
                if line == "\n":
                    break
                lines.append(line)
            return "".join(lines)

    async def event(self) -> Any:
        """The next that has data; None at the end of the stream."""
        while message := await self.message():
            if data := re.search(r"^data: (.*)", message, re.M):
                return json.loads(data[1])
        return None


@dataclass
class Dashboard:
    """A dashboard and the API server behind it."""

    api: ApiCaller
    server: DashboardServer
    url: str
    port: int
    code: OneTimeCode | None
    _session: aiohttp.ClientSession

    def browser(self, cookies: str = "") -> Browser:
        return Browser(self._session, self.url, cookies)

    async def admitted(self) -> Browser:
        """One that came with the code."""
        assert self.code is not None
        browser = self.browser()
        response = await browser.get(f"/?code={self.code.current}")
        assert response.status == 303, response
        browser.accept(response)
        return browser

    async def logged_in(self, token: str) -> Browser:
        """One whose user gave his token."""
        browser = self.browser()
        response = await browser.post("/login", f"token={token}")
        assert response.status == 303, response.text
        browser.accept(response)
        return browser


@asynccontextmanager
async def dashboard(
    folder: Path, by_token: bool = False, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[Dashboard]:
    """Of a new embedded cluster; options are those of the dashboard's server."""
    async with running(folder / "cluster", crds=True) as api:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(api.server.kubeconfig("")))
        listening = await listen("127.0.0.1", 0, tls)
        code = None if by_token else one_time_code(listening, lambda _: None)
        async with (
            Client(find_access(str(kubeconfig))) as client,
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        ):
            server = DashboardServer(
                ClusterSession(client, None, "default"), CATALOG, listening, code, **options
            )
            await server.start()
            try:
                yield Dashboard(api, server, listening.address().rstrip("/"), listening.port, code, session)
            finally:
                await server.stop()
