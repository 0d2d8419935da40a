"""`stromboli down`."""

from __future__ import annotations

from pathlib import Path

import typer

from stromboli.cli.cli_errors import Usage, print_error
from stromboli.cli.cluster.cluster_choice import choose_cluster
from stromboli.cli.up.up_options import CLUSTER
from stromboli.embedded.running_clusters import FolderError, stop_cluster


def down(data: Path | None = CLUSTER) -> None:
    """Stop a cluster that `stromboli up` started."""
    try:
        running = choose_cluster(data)
    except FolderError as error:
        raise Usage(str(error)) from None
    unit = running.unit
    if not stop_cluster(running):
        end = (
            f"systemctl --user kill -s KILL {unit}; systemctl --user stop {unit}"
            if unit
            else f"kill -9 {running.pid}"
        )
        print_error(
            f"process {running.pid} does not stop; `{end}` ends it, and loses nothing that was written"
        )
        raise typer.Exit(1)
    typer.echo(f"stopped {running.url} ({running.data})")
    if unit:
        typer.echo(
            f"{unit} starts it again when you log in, or `systemctl --user start {unit}`;"
            " `stromboli service remove` ends that"
        )
