"""Errors as a sentence on standard error; a traceback only with `--debug`."""

import logging
from contextlib import suppress

import typer

BAD_INPUT = 2
"""Exit status for wrong usage or input; 1 is for a plan that failed, 0 for the rest."""


class Usage(Exception):
    """Options that exclude each other, or a bad value; the message says how to mend it."""


def is_expected(error: Exception) -> bool:
    """Whether an error is about what the user gave us, so that its message will do."""
    from stromboli.api.errors import BadInput
    from stromboli.embedded.data_files import DataError
    from stromboli.extension_loading import ExtensionError
    from stromboli.policy.policy import PolicyError

    return isinstance(error, BadInput | PolicyError | ExtensionError | DataError | Usage)


def messages_of(error: Exception) -> list[str]:
    """A sentence for each problem."""
    return list(getattr(error, "errors", ())) or [str(error)]


def print_error(message: str) -> None:
    typer.echo(f"error: {message}", err=True)


def print_warning(message: str) -> None:
    typer.echo(f"warning: {message}", err=True)


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
