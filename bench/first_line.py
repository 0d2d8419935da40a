"""From the return key to the first line: `stromboli run` on real nodes of `stromboli up`, and the parts of it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

STROMBOLI = (sys.executable, "-m", "stromboli")
PARTS = (
    ("Python and the list of commands", ("--version",)),
    ("the command, its options and imports", ("run", "--help")),
    ("the Job, checked by the API server", ("run", "--quiet", "--dry-run=server", "--", "true")),
    ("the Job, created", ("run", "--quiet", "--detach", "--", "true")),
)
"""Each goes a step further than the one before."""
PROMISED = 1.5
"""Seconds to the first line."""


def report(repeat: int) -> int:
    """Print the best and the median of each part; 1 if the first line takes longer than is promised."""
    with cluster() as environment:
        first_line(environment)
        for title, arguments in PARTS:
            _show(title, [_seconds(arguments, environment) for _ in range(repeat)])
        lines = [first_line(environment) for _ in range(repeat)]
        _show("the first line of its output", lines)
    return 0 if statistics.median(lines) < PROMISED else 1


@contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """The environment in which commands find a cluster with real nodes."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        environment = os.environ | {"KUBECONFIG": str(data / "kubeconfig"), "XDG_RUNTIME_DIR": folder}
        up = [*STROMBOLI, "up", "--real", "--data", str(data)]
        with subprocess.Popen(up, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            while process.stdout.readline() not in ("ready\n", ""):
                pass
            try:
                yield environment
            finally:
                process.terminate()


def _seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    begin = time.monotonic()
    subprocess.run([*STROMBOLI, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def first_line(environment: dict[str, str]) -> float:
    """Seconds from the start of the command to the first line."""
    begin = time.monotonic()
    command = [*STROMBOLI, "run", "--quiet", "--", "echo", "hello"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.monotonic() - begin
        assert line == b"hello\n"
    return seconds


def _show(title: str, seconds: list[float]) -> None:
    print(f"{title:40} {min(seconds):6.2f} s best {statistics.median(seconds):6.2f} s median")
