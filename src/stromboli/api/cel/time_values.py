"""Times and durations as the library takes them: as messages of protobuf, known by name and attributes."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Timestamp:
    """A `google.protobuf.Timestamp`."""

    DESCRIPTOR = SimpleNamespace(full_name="google.protobuf.Timestamp")

    def __init__(self, moment: datetime, nanos: int) -> None:
        self.seconds = int((moment - _EPOCH).total_seconds())
        self.nanos = nanos


class Duration:
    """A `google.protobuf.Duration`."""

    DESCRIPTOR = SimpleNamespace(full_name="google.protobuf.Duration")

    def __init__(self, nanoseconds: int) -> None:
        sign = -1 if nanoseconds < 0 else 1
        seconds, nanos = divmod(abs(nanoseconds), 10**9)
        self.seconds, self.nanos = sign * seconds, sign * nanos
