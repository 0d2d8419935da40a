"""The HTTP client of an extender: bounded calls, and none for the rest of a cycle if it fails or is slow."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from stromboli.transport import CallFailed, shown_url

log = logging.getLogger(__name__)

T = TypeVar("T")
Post = Callable[[str, bytes, float], bytes]
"""Posts JSON to a URL within some seconds; raises `CallFailed` without a response."""
MAX_FAILURES = 3
"""Failed calls in a row after which no more calls are made in this cycle."""
BUDGET = 30.0
"""Seconds that the calls of one cycle may take together."""
_encoder = msgspec.json.Encoder()


class ExtenderFailed(Exception):
    """The extender gave no valid response; says why."""


class ExtenderClient:
    """Calls one server, through the `post` and the clock of the session's services."""

    def __init__(self, prefix: str, timeout: float):
        self._prefix = prefix.rstrip("/")
        self._timeout = timeout

    def begin(self, post: Post, clock: Callable[[], float]) -> None:
        """A new cycle: earlier failures do not count."""
        self._post, self._clock = post, clock
        self._failures = 0
        self._left = BUDGET

    def call(self, verb: str, request: Any, kind: type[T]) -> T:
        """Send a request and decode the response; `ExtenderFailed` if there is none of this type."""
        body = self._send(verb, request)
        try:
            response = msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._failed(f"{verb}: not an answer: {error}"[:300]) from None
        self._failures = 0
        return response

    def notify(self, verb: str, message: Any) -> None:
        """Send something whose response does not matter."""
        self._send(verb, message)
        self._failures = 0

    def _send(self, verb: str, request: Any) -> bytes:
        url = f"{self._prefix}/{verb}"
        if self._failures >= MAX_FAILURES or self._left <= 0:
            raise ExtenderFailed(
                f"{shown_url(self._prefix)} is not asked again in this cycle: it failed or was too slow"
            )
        begin = self._clock()
        try:
            return self._post(url, _encoder.encode(request), min(self._timeout, self._left))
        except CallFailed as error:
            text = f"failed {verb} with extender at URL {shown_url(url)}, code {error.status}"
            raise self._failed(text if error.status else str(error)) from None
        finally:
            self._left -= self._clock() - begin

    def _failed(self, problem: str) -> ExtenderFailed:
        self._failures += 1
        log.warning("extender: %s", problem)
        return ExtenderFailed(problem)
