"""Errors as a sentence on standard error; a traceback only with `--debug`."""

import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

BAD_INPUT = 2
"""Exit status for wrong usage or input; 1 is for a plan that failed, 0 for the rest."""
REFUSED = 1
"""Exit status if a cluster refuses, does not answer, or does not have what is asked for."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Usage(Exception):
    """Options that exclude each other, or a bad value; the message says how to mend it."""


def is_expected(error: Exception) -> bool:
    """Whether an error is about what the user gave us, so that its message will do."""
    from stromboli.api.errors import BadInput
    from stromboli.embedded.data_files import DataError
    from stromboli.extension_loading import ExtensionError
    from stromboli.policy.policy import PolicyError
    from stromboli.simulator.reports.record_errors import RecordError
    from stromboli.simulator.workloads.workload_errors import WorkloadError

    return isinstance(
        error, BadInput | PolicyError | ExtensionError | DataError | WorkloadError | RecordError | Usage
    )


def messages_of(error: Exception) -> list[str]:
    """A sentence for each problem."""
    return list(getattr(error, "errors", ())) or [str(error)]


def print_error(message: str) -> None:
    typer.echo(f"error: {message}", err=True)


def print_warning(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)


def print_note(message: str) -> None:
    """What is good to know, and no reason to worry."""
    typer.echo(f"note: {message}", err=True)


def is_output_error(error: OSError) -> bool:
    """Whether it is standard output that could not be written: any other file has a name."""
    return error.filename is None and error.errno in _OUTPUT_ERRORS


@contextmanager
def checked_output() -> Iterator[None]:
    """What standard output does not take, as on a full disk, becomes a message and exit status 1."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        if not is_output_error(error):
            raise
        with suppress(OSError, ValueError):  # what is left in the buffer has nowhere to go
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print_error(f"standard output cannot be written: {error.strerror}; what is there is not complete")
        raise SystemExit(1) from None


class _StderrHandler(logging.Handler):
    """`error: message` on standard error, with the traceback only when debugging."""

    def __init__(self, debug: bool) -> None:
        super().__init__(logging.WARNING)
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):  # where standard error is gone, a line is lost and nothing else
            text = f"{record.levelname.lower()}: {record.getMessage()}"
            if self._debug and record.exc_info:
                text += "\n" + logging.Formatter().formatException(record.exc_info)
            typer.echo(text, err=True)


def set_up_log(debug: bool) -> None:
    """Let what the scheduler logs appear on standard error."""
    logging.getLogger("stromboli").handlers[:] = [_StderrHandler(debug)]
