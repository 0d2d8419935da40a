"""What only tells never ends the work: its errors are counted, and logged once in a while."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import pytest

from stromboli.daemon.log_format import Lines
from stromboli.daemon.telemetry_guard import REST, TelemetryGuard


class Unprintable(Exception):
    def __str__(self) -> NoReturn:
        raise ValueError("no words")


@pytest.mark.parametrize("error", [OverflowError("inf"), RecursionError(), MemoryError(), Unprintable()])
def test_no_error_gets_out_and_each_is_counted(error: Exception) -> None:
    counted: list[str] = []
    guard = TelemetryGuard(counted.append)
    for _ in range(2):
        with guard("metrics"):
            raise error
    assert counted == ["metrics", "metrics"]


def test_a_part_that_keeps_failing_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    guard = TelemetryGuard(clock=lambda: now)

    def fail(part: str) -> None:
        with guard(part):
            raise ValueError("odd")

    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            fail("metrics")
        fail("dump")
        now = REST
        fail("metrics")
    lines = [(record.getMessage(), vars(record)["fields"]) for record in caplog.records]
    text = "telemetry failed, the work goes on: {}: ValueError: odd"
    assert lines == [
        (text.format("metrics"), {"part": "metrics", "failures_since_last_line": 1}),
        (text.format("dump"), {"part": "dump", "failures_since_last_line": 1}),
        (text.format("metrics"), {"part": "metrics", "failures_since_last_line": 100}),
    ]
    assert 'trace="Traceback' in Lines(as_json=False).format(caplog.records[0])


def test_whoever_is_told_to_stop_does_so() -> None:
    for end in (KeyboardInterrupt, asyncio.CancelledError):
        with pytest.raises(end), TelemetryGuard()("metrics"):
            raise end
