"""What `stromboli scheduler`, `controllers` and `admission` have in common: from a command line to an exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from stromboli import __version__
from stromboli.cli.cli_errors import Usage, print_error
from stromboli.daemon.flags import BadFlag

if TYPE_CHECKING:
    from stromboli.daemon.common_options import CommonOptions
    from stromboli.daemon.process_shell import DaemonProcess
    from stromboli.kube.cluster_access import Access

    AnyOptions = TypeVar("AnyOptions", bound=CommonOptions)


def run_daemon(
    context: typer.Context,
    about: str | None,
    usage: Callable[[], str],
    parse: Callable[[Sequence[str]], AnyOptions],
    prepare: Callable[[AnyOptions], Callable[[Access], DaemonProcess[AnyOptions]]],
) -> None:
    """Show help or the version, or run the process that `prepare` makes of the options."""
    arguments = context.args
    if {"-h", "--help"} & set(arguments):
        typer.echo(f"Usage: stromboli {context.info_name} [FLAG]...\n\n{about}\n\n{usage()}")
        raise typer.Exit
    if "--version" in arguments:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit
    try:
        options = parse(arguments)
        _set_up_logs(options)
        _check_election(options)
        create = prepare(options)
        status = _run(create, _access(options))
    except BadFlag as error:
        raise Usage(str(error)) from None
    raise typer.Exit(status)


def _run(create: Callable[[Access], DaemonProcess[Any]], access: Access) -> int:
    async def main() -> int:
        return await create(access).run()

    try:
        return asyncio.run(main())
    except OSError as error:
        print_error(f"cannot listen: {error.strerror or error}")
        return 1


def _set_up_logs(options: CommonOptions) -> None:
    from stromboli.daemon import log_format

    if options.log_format not in ("text", "json"):
        raise BadFlag(f"--log-format: {options.log_format!r} is neither text nor json")
    log_format.set_up(options.log_format == "json", options.v)


def _check_election(options: CommonOptions) -> None:
    from stromboli.daemon.common_options import ElectedOptions

    settings = options.lease_settings("") if isinstance(options, ElectedOptions) else None
    if settings is not None and (problem := settings.problem()):
        print_error(problem)
        raise typer.Exit(1)


def _access(options: CommonOptions) -> Access:
    from stromboli.kube.cluster_access import find_access
    from stromboli.kube.credentials import BadConfig

    try:
        return find_access(options.kubeconfig, options.master)
    except BadConfig as error:
        raise BadFlag(str(error)) from None
