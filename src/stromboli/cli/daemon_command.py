"""What the commands that run on a cluster share: Go's way of writing flags, logs, access, an exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from stromboli import __version__
from stromboli.cli.cli_errors import Usage, print_error
from stromboli.daemon.flags import BadFlag

if TYPE_CHECKING:
    from stromboli.kube.cluster_access import Access

FREE_FORM = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Go's way of writing flags is not typer's, so they are read here."""


class Common(Protocol):
    """Flags that all of them have."""

    @property
    def master(self) -> str: ...

    @property
    def kubeconfig(self) -> str: ...

    @property
    def log_format(self) -> str: ...

    @property
    def v(self) -> int: ...


Options = TypeVar("Options")


def serve(
    context: typer.Context,
    about: str | None,
    usage: Callable[[], str],
    parse: Callable[[Sequence[str]], Options],
    run: Callable[[Options], int],
) -> None:
    """Do what the command line says: help, version, or run with the flags it gives."""
    arguments = context.args
    if {"-h", "--help"} & set(arguments):
        typer.echo(f"Usage: stromboli {context.info_name} [FLAG]...\n\n{about}\n\n{usage()}")
        raise typer.Exit
    if "--version" in arguments:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit
    try:
        status = run(parse(arguments))
    except BadFlag as error:
        raise Usage(str(error)) from None
    raise typer.Exit(status)


def set_up_logs(options: Common) -> None:
    """Log as the flags say."""
    from stromboli.daemon import log_format

    if options.log_format not in ("text", "json"):
        raise BadFlag(f"--log-format: {options.log_format!r} is neither text nor json")
    log_format.set_up(options.log_format == "json", options.v)


def access_of(options: Common) -> Access:
    """The way to the API server that the flags name."""
    from stromboli.kube.cluster_access import find_access
    from stromboli.kube.credentials import BadConfig

    try:
        return find_access(options.kubeconfig, options.master)
    except BadConfig as error:
        raise BadFlag(str(error)) from None


def to_its_end(process: Callable[[], Awaitable[int]]) -> int:
    """Run a process on a loop of its own; the exit status."""

    async def main() -> int:
        return await process()

    try:
        return asyncio.run(main())
    except OSError as error:
        print_error(f"cannot listen: {error.strerror or error}")
        return 1
