"""`stromboli admission`: the webhook server, with the flags of Volcano's."""

import asyncio

import typer

from stromboli import __version__
from stromboli.cli.errors import Usage, complain
from stromboli.daemon.flags import BadFlag


def admission(context: typer.Context) -> None:
    """Complete and check what users submit, as an admission webhook of a real cluster."""
    from stromboli.admission.options import parse, usage
    from stromboli.daemon import logs
    from stromboli.kube.config import find_access
    from stromboli.kube.credentials import BadConfig

    arguments = context.args
    if {"-h", "--help"} & set(arguments):
        typer.echo(f"Usage: stromboli admission [FLAG]...\n\n{admission.__doc__}\n\n{usage()}")
        raise typer.Exit
    if "--version" in arguments:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit
    try:
        options = parse(arguments)
        access = find_access(options.kubeconfig, options.master)
    except (BadFlag, BadConfig) as error:
        raise Usage(str(error)) from None
    logs.set_up(options.log_format == "json", options.v)

    async def main() -> int:
        from stromboli.admission.process import Process

        return await Process(options, access).run()

    try:
        status = asyncio.run(main())
    except OSError as error:
        complain(f"cannot listen: {error.strerror or error}")
        status = 1
    raise typer.Exit(status)
