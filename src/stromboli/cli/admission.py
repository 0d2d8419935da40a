"""`stromboli admission`: the webhook server, with the flags of Volcano's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stromboli.cli.daemon_command import access_of, serve, set_up_logs, to_its_end

if TYPE_CHECKING:
    from stromboli.admission.options import Options


def admission(context: typer.Context) -> None:
    """Complete and check what users submit, as an admission webhook of a real cluster."""
    from stromboli.admission.options import parse, usage

    serve(context, admission.__doc__, usage, parse, _run)


def _run(options: Options) -> int:
    from stromboli.admission.process import Process

    access = access_of(options)
    set_up_logs(options)
    return to_its_end(lambda: Process(options, access).run())
