"""Logs: one line per decision that matters, as `key=value` or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

_LEVELS = {"WARNING": "warn", "CRITICAL": "error"}


def about(**fields: Any) -> dict[str, Any]:
    """Fields of a line: `log.info("bound", extra=about(pod=..., node=...))`."""
    return {"fields": fields}


class Lines(logging.Formatter):
    """`time=... level=... message="..." key=value`, or the same as a JSON object."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": _LEVELS.get(record.levelname, record.levelname.lower()),
            "message": _message(record),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        if self._as_json:
            return _json(line)
        return " ".join(f"{key}={_quoted(_text(value))}" for key, value in line.items())


def _message(record: logging.LogRecord) -> str:
    """With its arguments, if they fit."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg} {_text(record.args)}"


def _json(line: dict[str, Any]) -> str:
    """As one line of valid JSON, whatever is in it."""
    try:
        return json.dumps(line, default=str, allow_nan=False)
    except Exception:  # a number that is none, a cycle, an object that cannot be printed
        return json.dumps({key: _text(value) for key, value in line.items()})


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return type(value).__name__


def _quoted(value: str) -> str:
    plain = value and value.isprintable() and not any(mark in value for mark in ' "=')
    return value if plain else json.dumps(value)


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error; where that is gone, the line is lost and nothing else."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(formatter)

    def handleError(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            super().handleError(record)


def set_up(as_json: bool, verbosity: int) -> None:
    """Write all our logs to standard error in this format."""
    ours = logging.getLogger("stromboli")
    ours.handlers[:] = [StderrHandler(Lines(as_json))]
    ours.propagate = False
    set_level(verbosity)


def set_level(verbosity: int) -> None:
    """Set the level that a `-v` stands for."""
    logging.getLogger("stromboli").setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
