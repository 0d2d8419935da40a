"""The last words of a container: what it wrote to its `terminationMessagePath`, or the end of its log."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.real.container_logs import generations

DEFAULT_PATH = "/dev/termination-log"
MAX_MESSAGE = 4096
"""Bytes of a container's message."""
MAX_POD_MESSAGES = 12 * 1024
"""Bytes of all messages of a pod: with many containers each has less."""
MAX_LOG_LINES = 80
MAX_LOG_BYTES = 2048
"""Of the log, if that is the message."""
_LONGEST_READ = 64 * 1024
"""Bytes at the end of a log in which these are looked for: its lines have times."""


def message_path(spec: Content) -> str:
    """Where a container writes its message, as it sees it."""
    return str(spec.get("terminationMessagePath") or DEFAULT_PATH)


def clear_message(path: Path) -> None:
    """Make the file of the message, empty; what cannot be made, a container has to make."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            path.unlink(missing_ok=True)
            path.touch(0o666)


def read_message(spec: Content, path: Path, log: Path, failed: bool, containers: int) -> str:
    """The message of a container that terminated; `containers` is how many its pod has."""
    most = min(MAX_MESSAGE, MAX_POD_MESSAGES // max(1, containers))
    message = _end(path, most)
    if not message and failed and spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = _end_of_log(log)[-most:]
    return message.decode(errors="replace")


def _end_of_log(log: Path) -> bytes:
    last = [_end(path, _LONGEST_READ) for path in generations(log)[-2:]]
    lines = b"".join(last).splitlines(keepends=True)
    texts = [line.partition(b" ")[2] for line in lines[-MAX_LOG_LINES:]]
    return b"".join(texts)[-MAX_LOG_BYTES:]


def _end(path: Path, most: int) -> bytes:
    """The last bytes of a file; none if it is no file."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode):
                return os.pread(descriptor, most, max(0, found.st_size - most))
        finally:
            os.close(descriptor)
    return b""
