"""An API server with scripted responses, and a clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from stromboli.kube.request import ApiError, NoResponse, Request

Answer = bytes | Exception


class FakeApi:
    """Records every request; responses are taken from `answers`, then made by `answer`."""

    def __init__(self, answers: Iterable[Answer] = (), answer: Callable[[Request], Answer] = lambda _: b"{}"):
        self.requests: list[Request] = []
        self.timeouts: list[float] = []
        self.most_at_once = 0
        self.delay = 0.0
        self._answers = list(answers)
        self.answer = answer
        self._now = 0

    async def send(self, request: Request, timeout: float) -> bytes:
        self.requests.append(request)
        self.timeouts.append(timeout)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self._now -= 1
        response = self._answers.pop(0) if self._answers else self.answer(request)
        if isinstance(response, Exception):
            raise response
        return response

    @property
    def writes(self) -> list[Request]:
        """All but events."""
        return [request for request in self.requests if "/events" not in request.path]

    @property
    def events(self) -> list[Any]:
        return [body(request) for request in self.requests if "/events" in request.path]


class Clock:
    """Time as the test sets it."""

    def __init__(self, now: float = 1000.0):
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def body(request: Request) -> Any:
    return msgspec.json.decode(request.body or b"null")


def pod(uid: str, node: str = "") -> bytes:
    spec = {"nodeName": node} if node else {}
    return msgspec.json.encode({"metadata": {"name": "web-0", "uid": uid}, "spec": spec})


LOST = NoResponse("the connection broke")
CONFLICT = ApiError(409, "Conflict", "already assigned")
GONE = ApiError(404, "NotFound", "not found")
BROKEN = ApiError(500, "InternalError", "etcd is on fire")
