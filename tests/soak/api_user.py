"""Requests of a user to the cluster of the soak, and what came of them."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp

from tests.soak.cluster_process import ClusterProcess
from tests.soak.limits import limits_here

Json = Any


class NoAnswer(Exception):
    """The connection broke: whether the request was carried out is unknown."""


class Outcomes:
    """Of all requests: how many had which status, and what must not happen."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.violations: list[str] = []

    def record(self, actor: str, status: int, request: str, body: str = "") -> None:
        """A 5xx is a violation, unless it says when to try again, as a resourceVersion of the future is answered."""
        self.statuses[f"{actor} {status}"] += 1
        if status >= 500 and not (status in (503, 504) and '"retryAfterSeconds"' in body):
            self.violations.append(f"{request}: {status} {body[:500]}")


class ApiUser:
    """A token, and connections that are kept."""

    def __init__(
        self, cluster: ClusterProcess, outcomes: Outcomes, up: asyncio.Event, token: str = ""
    ) -> None:
        self.cluster = cluster
        self.outcomes = outcomes
        self.up = up
        """Whether the cluster runs and the ledger is settled."""
        self.token = token or cluster.token
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> ApiUser:
        trust: ssl.SSLContext = self.cluster.trust()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=50),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=aiohttp.ClientTimeout(total=limits_here().answer),
            read_bufsize=2**22,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    def url(self, path: str) -> str:
        host, port = self.cluster.address
        return f"https://{host}:{port}{path}"

    async def request(
        self, method: str, path: str, body: Json = None, content_type: str = "application/json"
    ) -> tuple[int, Json]:
        """Status and answer, whatever they are; `NoAnswer` if there is none."""
        assert self._session is not None
        data = None if body is None else io.BytesIO(json.dumps(body).encode())
        try:
            async with self._session.request(
                method, self.url(path), data=data, headers={"Content-Type": content_type}
            ) as answer:
                text = await answer.read()
        except TimeoutError:
            if self.up.is_set():
                self.outcomes.violations.append(
                    f"{method} {path}: no answer within {limits_here().answer:g} s"
                )
            raise NoAnswer from None
        except (aiohttp.ClientError, OSError) as error:
            if self.up.is_set():
                self.outcomes.statuses[f"user {type(error).__name__}"] += 1
            raise NoAnswer from error
        self.outcomes.record("user", answer.status, f"{method} {path}", text.decode(errors="replace"))
        return answer.status, json.loads(text)

    async def must(self, method: str, path: str, body: Json = None) -> Json:
        """What has to be accepted, or to be there already."""
        status, answer = await self.request(method, path, body)
        assert status in (200, 201, 202, 409), answer
        return answer

    async def watch(self, path: str) -> AsyncIterator[Json]:
        """Events as they come; ends when the connection does."""
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(total=None)
        with suppress(aiohttp.ClientError, OSError):
            async with self._session.get(self.url(path), params={"watch": "true"}, timeout=timeout) as answer:
                self.outcomes.record("watch", answer.status, path)
                async for line in answer.content:
                    if line.endswith(b"\n"):  # else it was cut off
                        yield json.loads(line)
