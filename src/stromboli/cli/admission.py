"""`stromboli admission`: the webhook server, with the flags of Volcano's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

from stromboli.cli.daemon_command import run_daemon

if TYPE_CHECKING:
    from stromboli.admission.options import Options
    from stromboli.admission.process import Process
    from stromboli.kube.cluster_access import Access


def admission(context: typer.Context) -> None:
    """Complete and check what users submit, as an admission webhook of a real cluster."""
    from stromboli.admission.options import parse, usage

    run_daemon(context, admission.__doc__, usage, parse, _prepare)


def _prepare(options: Options) -> Callable[[Access], Process]:
    from stromboli.admission.process import Process

    return partial(Process, options)
