"""The log of a cluster in its data folder: bounded in bytes, in a few files of which the oldest goes first."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from stromboli.daemon.log_format import Lines
from stromboli.embedded.data_files import unwritable

NAME = "stromboli.log"
LARGEST_LOG = 10 * 1024 * 1024
"""Bytes of a file of the log; then another one begins."""
MOST_LOG_FILES = 3


def keep_log(folder: Path) -> None:
    """Write all that is logged from now on to the folder, beside where it goes already."""
    path = folder / NAME
    try:
        handler = _LogFile(path, maxBytes=LARGEST_LOG, backupCount=MOST_LOG_FILES - 1, encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error) from None
    handler.setFormatter(Lines(as_json=False))
    handler.setLevel(logging.INFO)
    ours = logging.getLogger("stromboli")
    if ours.level == logging.NOTSET:
        ours.setLevel(logging.INFO)
    ours.addHandler(handler)
    ours.propagate = False
    others = logging.getLogger()
    if not others.handlers:  # as without a handler, which writes warnings
        others.addHandler(logging.lastResort or logging.NullHandler())
    others.addHandler(handler)


class _LogFile(RotatingFileHandler):
    """For its owner alone; what a full disk does not take is lost, and nothing else."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(
            os.open(self.baseFilename, flags, 0o600), "a", encoding=self.encoding, errors="replace"
        )

    def handleError(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            if self.stream is None:
                self.stream = self._open()
