"""`stromboli scheduler`: schedule a real cluster, with the flags of Volcano's scheduler."""

import typer

from stromboli.cli.cli_errors import print_error
from stromboli.cli.daemon_command import access_of, serve, set_up_logs, to_its_end
from stromboli.daemon.flags import BadFlag
from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy, default_policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.options import Options, parse, usage


def scheduler(context: typer.Context) -> None:
    """Schedule a real cluster in Volcano's place: same flags, same policy file, same metrics."""
    serve(context, scheduler.__doc__, usage, parse, _run)


def _run(options: Options) -> int:
    from stromboli.extensions import load_catalog
    from stromboli.scheduler.process import Process

    set_up_logs(options)
    settings = options.lease_settings("me")
    if settings is not None and (problem := settings.problem()):
        print_error(problem)
        return 1
    catalog = load_catalog(options.plugins_dir)
    policy = _policy(options, catalog)
    access = access_of(options)
    return to_its_end(lambda: Process(options, access, catalog, policy).run())


def _policy(options: Options, catalog: Catalog) -> Policy | PolicyFile:
    """The policy file; unless forbidden, the built-in policy where there is none or it is wrong."""
    if options.scheduler_conf is None:
        if options.disable_default_scheduler_config:
            raise BadFlag("--disable-default-scheduler-config needs --scheduler-conf")
        return default_policy(catalog)
    fallback = None if options.disable_default_scheduler_config else default_policy(catalog)
    policy = PolicyFile(options.scheduler_conf, catalog, options.lenient_policy, fallback)
    for problem in policy.problems:
        print_error(problem)
    if policy.problems:
        print_error("the built-in policy is in force until the file is right")
    return policy
