"""`stromboli node`: nodes of a cluster that fail and recover."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_choice import choose_cluster
from stromboli.cli.command_group import subcommands
from stromboli.cli.up.up_options import CLUSTER
from stromboli.embedded.nodes.node_annotations import FAILED, NODE
from stromboli.embedded.nodes.write_queue import NODES
from stromboli.embedded.running_clusters import FolderError
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse

node = subcommands("Let nodes of a cluster of `stromboli up` die and come back.")


@node.command("fail")
def fail(names: list[str] = typer.Argument(..., metavar="NODE..."), data: Path | None = CLUSTER) -> None:
    """Cut a node's power: it is NotReady, and its pods are lost."""
    _set_failed(names, data, "true")
    typer.echo(f"{', '.join(names)}: failed; `stromboli node recover {' '.join(names)}` brings it back")


@node.command("recover")
def recover(names: list[str] = typer.Argument(..., metavar="NODE..."), data: Path | None = CLUSTER) -> None:
    """Bring a node back that was made to fail."""
    _set_failed(names, data, None)
    typer.echo(f"{', '.join(names)}: back")


def _set_failed(names: list[str], data: Path | None, value: str | None) -> None:
    try:
        asyncio.run(_annotate(names, data, value))
    except (FolderError, BadConfig, NoResponse) as error:
        raise Usage(str(error)) from None
    except ApiError as error:
        raise Usage(f"{error}; kubectl get nodes lists them" if error.status == 404 else str(error)) from None


async def _annotate(names: list[str], data: Path | None, value: str | None) -> None:
    async with Client(find_access(str(choose_cluster(data).kubeconfig))) as client:
        for name in names:
            labels = msgspec.json.decode(await client.get(NODES, name))["metadata"].get("labels", {})
            if NODE not in labels:
                raise Usage(f"node {name}: not one that we run; label it with {NODE}=simulated or real")
            await client.patch(NODES, name, {"metadata": {"annotations": {FAILED: value}}})
