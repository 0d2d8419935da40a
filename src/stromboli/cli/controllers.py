"""`stromboli controllers`: look after jobs, groups, queues and flows, with Volcano's flags."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

from stromboli.cli.daemon_command import run_daemon
from stromboli.controllers.options import Options, parse, usage

if TYPE_CHECKING:
    from stromboli.controllers.process import Process
    from stromboli.kube.cluster_access import Access


def controllers(context: typer.Context) -> None:
    """Look after jobs, PodGroups, queues, flows and cron jobs in Volcano's place: same flags, same objects."""
    run_daemon(context, controllers.__doc__, usage, parse, _prepare)


def _prepare(options: Options) -> Callable[[Access], Process]:
    from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins
    from stromboli.controllers.process import Process

    load_job_plugins(options.plugins_dir)  # so that a mistake in one ends the process at once
    return partial(Process, options)
