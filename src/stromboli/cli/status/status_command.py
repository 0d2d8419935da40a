"""The command: finds the cluster, reads it, shows it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from stromboli.cli.cli_errors import Usage, print_error
from stromboli.cli.data_option import data_folder
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.policy_options import PLUGINS_DIR, chosen_policy, preset_names
from stromboli.cli.up.cluster_choice import find_api_server
from stromboli.embedded.running_clusters import FolderError
from stromboli.extensions import load_catalog
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse


def status(
    data: Path | None = typer.Option(
        None,
        "--data",
        parser=data_folder,
        metavar="DIR",
        help="The folder of a cluster of `stromboli up`.",
    ),
    kubeconfig: str = typer.Option(
        "", "--kubeconfig", metavar="FILE", help="Any other cluster; $KUBECONFIG unless given."
    ),
    context: str = typer.Option("", "--context", metavar="NAME", help="A context of the kubeconfig."),
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
    try:
        access, running = find_api_server(data, kubeconfig, context)
    except (FolderError, BadConfig) as error:
        raise Usage(str(error)) from None
    try:
        summary = asyncio.run(read_status(access, running, catalog, chosen))
    except (NoResponse, ApiError, BadConfig) as error:
        refused = isinstance(error, ApiError)
        print_error(f"{access.server} {'refuses' if refused else 'does not answer'}: {error}")
        raise typer.Exit(1) from None
    if output in (StatusFormat.TABLE, StatusFormat.WIDE):
        print_status(console(), summary, wide=output is StatusFormat.WIDE)
    else:
        write_as(output, summary)
