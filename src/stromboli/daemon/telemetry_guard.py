"""The guard around telemetry: metrics, events, dumps and endpoints tell about the work and must never end it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from stromboli.api.errors import error_text
from stromboli.daemon.log_format import about

log = logging.getLogger(__name__)

REST = 60.0
"""Seconds after which a failure of the same part is logged again; in between they are only counted."""


class GuardedPart:
    """The block of a `with`: keeps no state of its own, so that blocks may overlap, in any thread."""

    __slots__ = ("_failed", "_part")

    def __init__(self, part: str, failed: Callable[[str, Exception], None]) -> None:
        self._part = part
        self._failed = failed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._failed(self._part, error)
        return True


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
        self._parts: dict[str, GuardedPart] = {}

    def __call__(self, part: str) -> GuardedPart:
        """Guard one part, under the name that the log and the metric show.

        It is made once, as every single write is told of.
        """
        guarded = self._parts.get(part)
        if guarded is None:
            guarded = self._parts[part] = GuardedPart(part, self._failed)
        return guarded

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
