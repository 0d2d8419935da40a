"""The command: finds the cluster, reads it, shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.policy_options import PLUGINS_DIR, chosen_policy, preset_names
from stromboli.extensions import load_catalog

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


@on_cluster(namespaced=False)
async def status(
    session: ClusterSession,
    policy: Path | None = typer.Option(
        None, "--policy", metavar="FILE", help="The policy that divides shares; the cluster's unless given."
    ),
    preset: str | None = typer.Option(
        None, "--preset", metavar="NAME", help="The same, by name.", autocompletion=preset_names
    ),
    plugins_dir: Path | None = PLUGINS_DIR,
    output: StatusFormat = typer.Option(StatusFormat.TABLE, "--output", "-o", help="How to show it."),
) -> None:
    """Show used, deserved and free CPU, memory and GPUs of a cluster, by queue and by group of nodes.

    Which cluster: --data or --kubeconfig, else $KUBECONFIG, else that of `stromboli up`, else that of kubectl.

    Exit status 0, 1 if the cluster does not answer or refuses, 2 for a wrong command line or no cluster.
    """
    from stromboli.cli.status.cluster_status import read_status
    from stromboli.cli.status.status_text import print_status

    catalog = load_catalog(plugins_dir)
    chosen = chosen_policy(policy, preset, catalog, lenient=True)
    summary = await read_status(session.client.access, session.running, catalog, chosen)
    if output in (StatusFormat.TABLE, StatusFormat.WIDE):
        print_status(console(), summary, wide=output is StatusFormat.WIDE)
    else:
        write_as(output, summary)
