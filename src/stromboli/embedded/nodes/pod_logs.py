"""Container logs: requested by the API server, provided by the nodes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines of a container's log are wanted (`kubectl logs`)."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: float | None = None
    """Seconds since the epoch."""


class LogSource(Protocol):
    """Reads the logs of the pods that it runs."""

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncGenerator[bytes] | None:
        """Pieces of a log; None if the container never ran."""


class PodLogs:
    """Logs from the node service, once it runs: an API server starts before its nodes."""

    def __init__(self) -> None:
        self._source: LogSource | None = None

    def connect(self, source: LogSource) -> None:
        self._source = source

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncGenerator[bytes] | None:
        return None if self._source is None else self._source.log(namespace, pod, query)
