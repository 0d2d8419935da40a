"""The command: reads what an installation is made of, checks it, tells what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stromboli.cli.check.check_result import CheckResult, CheckState
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.output import Format, has_colours, write_as
from stromboli.cli.policy_options import PLUGINS_DIR

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

COLOURS = {
    CheckState.OK: typer.colors.GREEN,
    CheckState.WARNING: typer.colors.YELLOW,
    CheckState.FAILED: typer.colors.RED,
    CheckState.SKIPPED: typer.colors.BRIGHT_BLACK,
}


@on_cluster()
async def check(
    session: ClusterSession,
    system_namespace: str = typer.Option(
        "volcano-system", "--system-namespace", metavar="NAME", help="Where the components are installed."
    ),
    plugins_dir: Path | None = PLUGINS_DIR,
    output: Format = typer.Option(Format.TABLE, "--output", "-o", help="How to show it."),
) -> None:
    """Say whether the installation on a cluster is healthy: API server, clock, kinds, components, leases, webhooks,
    certificates, queues, nodes, the policy in force and your rights.

    Nothing is changed. Exit status 0 if nothing failed, 1 if something did or the cluster does not answer.
    """
    from stromboli.cli.check.installation_checks import check_installation
    from stromboli.cli.check.installation_facts import read_facts
    from stromboli.cli.check.policy_check import check_policy

    facts = await read_facts(session, system_namespace)
    results = [*check_installation(facts), *await check_policy(session, system_namespace, plugins_dir)]
    if output is Format.TABLE:
        _print(results)
    else:
        content = [
            {"check": each.check, "state": each.state.value, "text": each.text, "wayOut": each.remedy}
            for each in results
        ]
        write_as(output, {"schema": 1, "healthy": not _has_failed(results), "checks": content})
    if _has_failed(results):
        raise typer.Exit(1)


def _has_failed(results: list[CheckResult]) -> bool:
    return any(result.state is CheckState.FAILED for result in results)


def _print(results: list[CheckResult]) -> None:
    widest = max(len(result.check) for result in results)
    for result in results:
        state = f"{result.state.value:7}"
        if has_colours():
            state = typer.style(state, fg=COLOURS[result.state])
        typer.echo(f"{state}  {result.check:{widest}}  {shown(result.text)}")
        if result.remedy:
            typer.echo(f"{'':{widest + 11}}-> {shown(result.remedy)}")
