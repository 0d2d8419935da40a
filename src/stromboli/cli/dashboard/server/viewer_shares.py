"""How much of the server one viewer may take: streams that are kept open, and pages that are rendered at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from stromboli.cli.dashboard.viewers.viewer_turns import ViewerTurns

MOST_STREAMS = 200
"""Browsers that are kept up to date at once; beyond that, the viewer who has most gives one to a newcomer."""
MOST_OWN_STREAMS = 24
"""Of one viewer."""
MOST_OWN_RENDERS = 4
"""Pages that are rendered for a viewer at once; further ones wait for their turn."""


class TooManyStreams(Exception):
    """A viewer has as many streams as he may have, or as all others have."""


class ViewerShares:
    """Who has what, by the keys of viewers."""

    def __init__(self) -> None:
        self._streams: dict[str, list[asyncio.Event]] = {}
        """Set when a stream has to end for somebody else's sake, the oldest first."""
        self.renders = ViewerTurns(MOST_OWN_RENDERS)
        """Turns of viewers' pages."""

    @contextmanager
    def stream(self, viewer: str) -> Iterator[asyncio.Event]:
        """A stream of a viewer, with what tells that it has to end."""
        own = self._streams.setdefault(viewer, [])
        try:
            if len(own) >= MOST_OWN_STREAMS or not self._has_room(len(own)):
                raise TooManyStreams
            ended = asyncio.Event()
            own.append(ended)
            try:
                yield ended
            finally:
                if ended in own:
                    own.remove(ended)
        finally:
            if not own:
                self._streams.pop(viewer, None)

    def _has_room(self, own: int) -> bool:
        """Whether there is room for a stream of a viewer who has so many; one who has more may have to make it."""
        if sum(map(len, self._streams.values())) < MOST_STREAMS:
            return True
        most = max(self._streams.values(), key=len)
        if len(most) <= own + 1:
            return False
        most.pop(0).set()
        return True
