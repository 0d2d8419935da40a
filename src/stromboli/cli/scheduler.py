"""`stromboli scheduler`: schedule a real cluster, with the flags of Volcano's scheduler."""

import asyncio

import typer

from stromboli import __version__
from stromboli.cli.errors import Usage, complain
from stromboli.daemon.flags import BadFlag
from stromboli.engine.catalog import Catalog
from stromboli.engine.policy import Policy, default_policy
from stromboli.engine.policy_file import PolicyFile
from stromboli.service.options import Options, parse, usage

FREE_FORM = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Go's way of writing flags is not typer's, so they are read here."""


def scheduler(context: typer.Context) -> None:
    """Schedule a real cluster in Volcano's place: same flags, same policy file, same metrics."""
    arguments = context.args
    if {"-h", "--help"} & set(arguments):
        typer.echo(f"Usage: stromboli scheduler [FLAG]...\n\n{scheduler.__doc__}\n\n{usage()}")
        raise typer.Exit
    if "--version" in arguments:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit
    try:
        options = parse(arguments)
        status = _run(options)
    except BadFlag as error:
        raise Usage(str(error)) from None
    raise typer.Exit(status)


def _run(options: Options) -> int:
    from stromboli.daemon import logs
    from stromboli.extensions import load_catalog
    from stromboli.kube.config import find_access
    from stromboli.kube.credentials import BadConfig
    from stromboli.service.process import Process

    if options.log_format not in ("text", "json"):
        raise BadFlag(f"--log-format: {options.log_format!r} is neither text nor json")
    logs.set_up(options.log_format == "json", options.v)
    terms = options.terms("me")
    if terms is not None and (problem := terms.problem()):
        complain(problem)
        return 1
    catalog = load_catalog(options.plugins_dir)
    policy = _policy(options, catalog)
    try:
        access = find_access(options.kubeconfig, options.master)
    except BadConfig as error:
        raise BadFlag(str(error)) from None

    async def main() -> int:
        return await Process(options, access, catalog, policy).run()

    try:
        return asyncio.run(main())
    except OSError as error:
        complain(f"cannot listen: {error.strerror or error}")
        return 1


def _policy(options: Options, catalog: Catalog) -> Policy | PolicyFile:
    """The policy file; unless forbidden, the built-in policy where there is none or it is wrong."""
    if options.scheduler_conf is None:
        if options.disable_default_scheduler_config:
            raise BadFlag("--disable-default-scheduler-config needs --scheduler-conf")
        return default_policy(catalog)
    fallback = None if options.disable_default_scheduler_config else default_policy(catalog)
    policy = PolicyFile(options.scheduler_conf, catalog, options.lenient_policy, fallback)
    for problem in policy.problems:
        complain(problem)
    if policy.problems:
        complain("the built-in policy is in force until the file is right")
    return policy
