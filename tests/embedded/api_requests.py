"""A server for a test, and requests to it whose responses are returned whatever they are."""

from __future__ import annotations

import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from stromboli.embedded.http.api_server import ApiServer

Json = Any
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


class ApiCaller:
    """Requests as the administrator, or as whoever has another token."""

    def __init__(self, session: aiohttp.ClientSession, server: ApiServer):
        self._session = session
        self.server = server

    async def request(
        self,
        method: str,
        path: str,
        body: Json = None,
        content_type: str = "application/json",
        token: str | None = None,
        accept: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Json]:
        """Status and decoded body."""
        token = self.server.token if token is None else token
        headers = {"Content-Type": content_type, "Accept": accept, **(headers or {})}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        async with self._session.request(
            method, self.server.url + path, data=None if data is None else io.BytesIO(data), headers=headers
        ) as answer:
            text = await answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode()

    async def get(self, path: str, **how: Any) -> Json:
        """What must be there."""
        status, answer = await self.request("GET", path, **how)
        assert status == 200, answer
        return answer

    async def post(self, path: str, body: Json) -> Json:
        """What must be accepted."""
        status, answer = await self.request("POST", path, body)
        assert status in (200, 201), answer
        return answer

    async def patch(self, path: str, body: Json, content_type: str = MERGE) -> Json:
        status, answer = await self.request("PATCH", path, body, content_type)
        assert status in (200, 201), answer
        return answer

    async def delete(self, path: str, body: Json = None) -> Json:
        status, answer = await self.request("DELETE", path, body)
        assert status in (200, 202), answer
        return answer

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[Callable[[], Coroutine[Any, Any, Json]]]:
        """A stream; call for the next event, which is None at its end."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        url = f"{self.server.url}{path}{'&' if '?' in path else '?'}watch=true"
        async with self._session.get(url, headers=headers) as answer:
            assert answer.status == 200, await answer.text()

            async def following() -> Json:
                line = await answer.content.readline()
                return json.loads(line) if line else None

            yield following
            answer.close()


@asynccontextmanager
async def running(folder: Path, **how: Any) -> AsyncIterator[ApiCaller]:
    async with ApiServer(folder, **how) as server:
        trust = ssl.create_default_context(cafile=str(server.ca))
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(connector=connector, read_bufsize=2**22) as session:
            yield ApiCaller(session, server)


def pod(name: str, **more: Any) -> Json:
    meta = {"name": name, **more.pop("metadata", {})}
    spec = {"containers": [{"name": "main", "image": "none"}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def config_map(name: str, data: Json = None, **meta: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}, "data": data or {}}
