"""Signals while a job is followed: Ctrl-C asks whether to cancel the job or to leave it running."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import Any, NamedTuple, TypeVar

from stromboli.cli.following.follow_screen import FollowScreen

Result = TypeVar("Result")
QUESTION = "Cancel the job (c), detach (d), or keep watching (Enter)? "
DETACHING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end the command and leave the job alone."""


class Wish(Enum):
    """What the user wants with a job that is not over."""

    CANCEL = auto()
    DETACH = auto()


class Interrupted(NamedTuple):
    """The command is to end before the job."""

    wish: Wish
    exit_code: int


async def until_interrupted(work: Coroutine[Any, Any, Result], screen: FollowScreen) -> Result | Interrupted:
    """The result of following a job, or what the user wants instead."""
    loop = asyncio.get_running_loop()
    following = asyncio.ensure_future(work)
    interrupted: asyncio.Future[Interrupted] = loop.create_future()
    question = _Question(screen, lambda wish: _settle(interrupted, wish, signal.SIGINT))

    def on_interrupt() -> None:
        if not question.can_ask or question.is_open:
            _settle(interrupted, Wish.DETACH, signal.SIGINT)
        else:
            question.open(loop)

    handled = [signal.SIGINT, *DETACHING]
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    for number in DETACHING:
        loop.add_signal_handler(number, _settle, interrupted, Wish.DETACH, number)
    screen.reader_gone = lambda: _settle(interrupted, Wish.DETACH, signal.SIGPIPE)
    try:
        ends: list[asyncio.Future[Any]] = [following, interrupted]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        question.close(loop)
        if not following.done():
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    return interrupted.result() if interrupted.done() else following.result()


def _settle(interrupted: asyncio.Future[Interrupted], wish: Wish, number: signal.Signals) -> None:
    if not interrupted.done():
        interrupted.set_result(Interrupted(wish, 128 + number))


class _Question:
    """Asks on the terminal while lines of logs wait."""

    def __init__(self, screen: FollowScreen, answered: Callable[[Wish], None]) -> None:
        self._screen = screen
        self._answered = answered
        self.is_open = False
        self.can_ask = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_open = True
        self._screen.hold()
        sys.stderr.write(f"\n{QUESTION}")
        sys.stderr.flush()
        loop.add_reader(sys.stdin.fileno(), self._answer, loop)

    def _answer(self, loop: asyncio.AbstractEventLoop) -> None:
        line = sys.stdin.readline()
        answer = line.strip().lower()
        self.close(loop, is_answered=True)
        if answer in ("c", "cancel"):
            self._answered(Wish.CANCEL)
        elif not line or answer in ("d", "detach"):
            self._answered(Wish.DETACH)
        elif answer:
            self.open(loop)

    def close(self, loop: asyncio.AbstractEventLoop, is_answered: bool = False) -> None:
        if self.is_open:
            self.is_open = False
            if not is_answered:
                sys.stderr.write("\n")  # what follows does not belong to the question
            loop.remove_reader(sys.stdin.fileno())
            self._screen.go_on()
