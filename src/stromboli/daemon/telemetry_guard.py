"""The guard around telemetry: metrics, events, dumps and endpoints tell about the work and must never end it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stromboli.api.errors import error_text
from stromboli.daemon.log_format import about

log = logging.getLogger(__name__)

REST = 60.0
"""Seconds after which a failure of the same part is logged again; in between they are only counted."""


class TelemetryGuard:
    """`with guard("metrics"): ...` lets no error out; it is counted, and logged once in a while. From any thread."""

    def __init__(
        self,
        count: Callable[[str], object] = lambda part: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`count` is called with the part that failed."""
        self.count = count
        self._clock = clock
        self._logged: dict[str, float] = {}
        """When a failure of each part was last logged."""
        self._unlogged: dict[str, int] = {}
        """Its failures since then."""

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Guard one part, under the name that the log and the metric show."""
        try:
            yield
        except Exception as error:
            self._failed(part, error)

    def _failed(self, part: str, error: Exception) -> None:
        self.count(part)
        now, last = self._clock(), self._logged.get(part)
        if last is not None and now - last < REST:
            self._unlogged[part] = self._unlogged.get(part, 0) + 1
            return
        self._logged[part] = now
        fields = about(part=part, failures_since_last_line=self._unlogged.pop(part, 0) + 1)
        log.error(
            "telemetry failed, the work goes on: %s: %s",
            part,
            error_text(error),
            exc_info=error,
            extra=fields,
        )
