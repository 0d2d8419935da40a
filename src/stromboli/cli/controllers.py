"""`stromboli controllers`: look after jobs, groups, queues and flows, with Volcano's flags."""

import asyncio

import typer

from stromboli import __version__
from stromboli.cli.errors import Usage, complain
from stromboli.controllers.options import Options, parse, usage
from stromboli.daemon.flags import BadFlag


def controllers(context: typer.Context) -> None:
    """Look after jobs, PodGroups, queues, flows and cron jobs in Volcano's place: same flags, same objects."""
    arguments = context.args
    if {"-h", "--help"} & set(arguments):
        typer.echo(f"Usage: stromboli controllers [FLAG]...\n\n{controllers.__doc__}\n\n{usage()}")
        raise typer.Exit
    if "--version" in arguments:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit
    try:
        status = _run(parse(arguments))
    except BadFlag as error:
        raise Usage(str(error)) from None
    raise typer.Exit(status)


def _run(options: Options) -> int:
    from stromboli.controllers.job.plugins.catalog import load_job_plugins
    from stromboli.controllers.process import Process, terms
    from stromboli.daemon import logs
    from stromboli.kube.config import find_access
    from stromboli.kube.credentials import BadConfig

    if options.log_format not in ("text", "json"):
        raise BadFlag(f"--log-format: {options.log_format!r} is neither text nor json")
    logs.set_up(options.log_format == "json", options.v)
    load_job_plugins(options.plugins_dir)  # a mistake in one is told at once, not when a job needs it
    if options.leader_elect and (problem := terms(options, "me").problem()):
        complain(problem)
        return 1
    try:
        access = find_access(options.kubeconfig, options.master)
    except BadConfig as error:
        raise BadFlag(str(error)) from None

    async def main() -> int:
        return await Process(options, access).run()

    try:
        return asyncio.run(main())
    except OSError as error:
        complain(f"cannot listen: {error.strerror or error}")
        return 1
