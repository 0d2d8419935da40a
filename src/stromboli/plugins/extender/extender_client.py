"""The line to an extender: one bounded call at a time; cut for the rest of a cycle when it proves dead or slow."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

import msgspec

from stromboli.transport import CallFailed, shown_url

log = logging.getLogger(__name__)

T = TypeVar("T")
Post = Callable[[str, bytes, float], bytes]
"""Posts JSON to an address within some seconds; `CallFailed` where there is no answer."""
PATIENCE = 3
"""Failed calls in a row after which nothing more is asked in this cycle."""
BUDGET = 30.0
"""Seconds that the calls of one cycle may take together."""
_encoder = msgspec.json.Encoder()


class NoAnswer(Exception):
    """The extender did not answer, or not as it should; says how."""


class Line:
    """Puts questions to one server. The clock and the way out are handed in."""

    def __init__(self, prefix: str, timeout: float, clock: Callable[[], float] = monotonic):
        self._prefix = prefix.rstrip("/")
        self._timeout = timeout
        self._clock = clock

    def begin(self, post: Post) -> None:
        """A new cycle: whatever happened before is forgiven."""
        self._post = post
        self._failures = 0
        self._left = BUDGET

    def ask(self, verb: str, question: Any, kind: type[T]) -> T:
        """Put a question and read the answer; `NoAnswer` if there is none of this kind."""
        body = self._call(verb, question)
        try:
            answer = msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._failed(f"{verb}: not an answer: {error}"[:300]) from None
        self._failures = 0
        return answer

    def tell(self, verb: str, news: Any) -> None:
        """Send something to which nothing need be answered."""
        self._call(verb, news)
        self._failures = 0

    def _call(self, verb: str, question: Any) -> bytes:
        url = f"{self._prefix}/{verb}"
        if self._failures >= PATIENCE or self._left <= 0:
            raise NoAnswer(
                f"{shown_url(self._prefix)} is not asked again in this cycle: it failed or was too slow"
            )
        begin = self._clock()
        try:
            return self._post(url, _encoder.encode(question), min(self._timeout, self._left))
        except CallFailed as error:
            text = f"failed {verb} with extender at URL {shown_url(url)}, code {error.status}"
            raise self._failed(text if error.status else str(error)) from None
        finally:
            self._left -= self._clock() - begin

    def _failed(self, problem: str) -> NoAnswer:
        self._failures += 1
        log.warning("extender: %s", problem)
        return NoAnswer(problem)
