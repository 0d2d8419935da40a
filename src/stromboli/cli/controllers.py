"""`stromboli controllers`: look after jobs, groups, queues and flows, with Volcano's flags."""

import typer

from stromboli.cli.cli_errors import print_error
from stromboli.cli.daemon_command import access_of, serve, set_up_logs, to_its_end
from stromboli.controllers.options import Options, parse, usage


def controllers(context: typer.Context) -> None:
    """Look after jobs, PodGroups, queues, flows and cron jobs in Volcano's place: same flags, same objects."""
    serve(context, controllers.__doc__, usage, parse, _run)


def _run(options: Options) -> int:
    from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins
    from stromboli.controllers.process import Process, terms

    set_up_logs(options)
    load_job_plugins(options.plugins_dir)  # a mistake in one is told at once, not when a job needs it
    if options.leader_elect and (problem := terms(options, "me").problem()):
        print_error(problem)
        return 1
    access = access_of(options)
    return to_its_end(lambda: Process(options, access).run())
