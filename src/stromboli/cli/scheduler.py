"""`stromboli scheduler`: schedule a real cluster, with the flags of Volcano's scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from stromboli.cli.daemon_command import run_daemon
from stromboli.daemon.flags import BadFlag
from stromboli.scheduler.options import Options, parse, usage

if TYPE_CHECKING:
    from stromboli.engine.catalog import Catalog
    from stromboli.kube.cluster_access import Access
    from stromboli.policy.policy import Policy
    from stromboli.policy.policy_file import PolicyFile
    from stromboli.scheduler.process import Process


def scheduler(context: typer.Context) -> None:
    """Schedule a real cluster in Volcano's place: same flags, same policy file, same metrics."""
    run_daemon(context, scheduler.__doc__, usage, parse, _prepare)


def _prepare(options: Options) -> Callable[[Access], Process]:
    from stromboli.scheduler.process import Process

    if options.scheduler_conf is None and options.disable_default_scheduler_config:
        raise BadFlag("--disable-default-scheduler-config needs --scheduler-conf")
    return lambda access: Process(options, access, lambda: _load_policy(options))


def _load_policy(options: Options) -> tuple[Catalog, Policy | PolicyFile]:
    """The policy file; unless forbidden, the built-in policy where there is none or it is wrong."""
    from stromboli.extensions import load_catalog
    from stromboli.policy.policy import default_policy
    from stromboli.policy.policy_file import PolicyFile

    catalog = load_catalog(options.plugins_dir)
    if options.scheduler_conf is None:
        return catalog, default_policy(catalog)
    fallback = None if options.disable_default_scheduler_config else default_policy(catalog)
    return catalog, PolicyFile(options.scheduler_conf, catalog, options.lenient_policy, fallback)
