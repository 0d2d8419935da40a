"""What `kubectl logs` shows: asked by the API server, answered by the nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from stromboli.embedded.nodes.real.container_logs import LogQuery


class Speaker(Protocol):
    """Who knows what pods said."""

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncIterator[bytes] | None: ...


class PodLogs:
    """Logs from whoever runs the pods, once somebody does; an API server starts before its nodes."""

    def __init__(self) -> None:
        self._speaker: Speaker | None = None

    def serve(self, speaker: Speaker) -> None:
        self._speaker = speaker

    async def logs(
        self,
        namespace: str,
        pod: str,
        container: str,
        follow: bool,
        tail: int | None,
        since: float | None,
        previous: bool,
        timestamps: bool,
    ) -> AsyncIterator[bytes] | None:
        """Pieces of a log; nothing if there is no such container, or it said nothing yet."""
        if self._speaker is None:
            return None
        query = LogQuery(container, follow, previous, timestamps, tail, since)
        return self._speaker.log(namespace, pod, query)
