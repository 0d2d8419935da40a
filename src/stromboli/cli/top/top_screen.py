"""The live screen: drawn when something has changed, a key was pressed, or ages have grown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from stromboli.cli.live.cluster_content import ClusterContent
from stromboli.cli.live.record_watches import RecordWatches
from stromboli.cli.top.frame_text import ScreenState, draw
from stromboli.cli.top.keyboard import Keyboard
from stromboli.cli.top.top_views import TABS

REFRESH = 1.0
"""Seconds between two frames if something changes."""
QUIET_REFRESH = 5.0
"""If nothing does: ages grow."""
DRAWING_PART = 20
"""One part in so many of the time is spent on drawing, at most."""
PAGE = 10
LONGEST_FILTER = 100


class TopScreen:
    """Shows a cluster until the user quits."""

    def __init__(
        self, console: Console, content: ClusterContent, watches: RecordWatches, state: ScreenState
    ) -> None:
        self._console = console
        self._content = content
        self._watches = watches
        self.state = state
        self._drawn_version = -1
        self._drawn_at = 0.0
        self._cost = 0.0
        """Seconds that the last frame took."""
        self._resized = asyncio.Event()

    async def show(self) -> None:
        """Until `q`; the terminal is then as it was before."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, ValueError):  # not in the main thread
            loop.add_signal_handler(signal.SIGWINCH, self._resized.set)
        live = Live(console=self._console, screen=True, auto_refresh=False, transient=True)
        with Keyboard() as keyboard, live:
            self._draw(live.update)
            while True:
                keys = await self._next_keys(keyboard)
                if any(self.press(key) for key in keys):
                    return
                if keys or self._is_due():
                    self._draw(live.update)

    async def _next_keys(self, keyboard: Keyboard) -> list[str]:
        """The keys that were pressed; none after a while, or when the size of the terminal has changed."""
        key = asyncio.ensure_future(keyboard.pressed.get())
        resized = asyncio.ensure_future(self._resized.wait())
        done, pending = await asyncio.wait(
            {key, resized}, timeout=REFRESH, return_when=asyncio.FIRST_COMPLETED
        )
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        keys = [key.result()] if key in done else []
        while not keyboard.pressed.empty():
            keys.append(keyboard.pressed.get_nowait())
        return keys

    def _is_due(self) -> bool:
        if self._resized.is_set():
            return True
        if self.state.paused:
            return False
        same = self._content.records.version == self._drawn_version
        quiet = same and self._watches.is_listed and self._content.is_settled
        rest = QUIET_REFRESH if quiet else DRAWING_PART * self._cost
        return time.monotonic() - self._drawn_at >= rest

    def _draw(self, update: Callable[..., None]) -> None:
        self._resized.clear()
        self._drawn_version, self._drawn_at = self._content.records.version, time.monotonic()
        self.state.problems = self._watches.problems()
        if not self._watches.is_listed:
            self.state.problems.append(self._watches.progress())
        self._console.size = self._size()
        width, height = self._console.size
        lines = draw(self._content, self.state, width, height, time.time())
        for line in lines:
            line.no_wrap = True
        update(Group(*lines), refresh=True)
        self._cost = time.monotonic() - self._drawn_at

    def _size(self) -> ConsoleDimensions:
        """Of the terminal as it is now: $COLUMNS and $LINES tell of when they were set."""
        try:
            return ConsoleDimensions(*os.get_terminal_size(self._console.file.fileno()))
        except (OSError, ValueError):
            return self._console.size

    # -- keys

    def press(self, key: str) -> bool:
        """What a key does; whether it ends the screen."""
        state = self.state
        if state.typing:
            _type(state, key)
        elif key in ("q", "Q"):
            return True
        elif key in ("tab", "right", "l"):
            state.tab, state.offset = (state.tab + 1) % len(TABS), 0
        elif key in ("back tab", "left", "h"):
            state.tab, state.offset = (state.tab - 1) % len(TABS), 0
        elif key.isdecimal() and 0 < int(key) <= len(TABS):
            state.tab, state.offset = int(key) - 1, 0
        elif key == "/":
            state.typing, state.filter = True, ""
        elif key == "escape":
            state.filter = ""
        elif key == "s" and state.view is not None:
            state.sortings[state.view.title] = state.sorting(state.view) + 1
        elif key in ("p", " "):
            state.paused = not state.paused
            self._content.freeze(state.paused)
        elif key in _SCROLL:
            state.offset = max(0, state.offset + _SCROLL[key])
        return False


_SCROLL = {
    "up": -1,
    "k": -1,
    "down": 1,
    "j": 1,
    "page up": -PAGE,
    "page down": PAGE,
    "home": -(10**9),
    "end": 10**9,
}


def _type(state: ScreenState, key: str) -> None:
    """A key that goes into the filter."""
    if key == "enter":
        state.typing = False
    elif key == "escape":
        state.typing, state.filter = False, ""
    elif key == "backspace":
        state.filter = state.filter[:-1]
    elif len(key) == 1 and len(state.filter) < LONGEST_FILTER:
        state.filter += key
    state.offset = 0


def frame(content: ClusterContent, state: ScreenState, width: int, height: int) -> list[Text]:
    """One frame, for where there is no terminal: without keys, and without empty lines at its end."""
    lines = draw(content, state, width, height, time.time())[:-1]
    for line in lines:
        line.rstrip()
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


@asynccontextmanager
async def silent_log() -> AsyncIterator[None]:
    """While a screen is drawn, nothing else may write to the terminal."""
    logger = logging.getLogger("stromboli")
    before = logger.handlers[:]
    logger.handlers[:] = [logging.NullHandler()]
    try:
        yield
    finally:
        with suppress(ValueError):
            logger.handlers[:] = before
