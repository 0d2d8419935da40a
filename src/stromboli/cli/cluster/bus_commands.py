"""Commands to controllers: objects of bus.volcano.sh that a controller carries out once and deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.cli.cluster.cluster_kinds import COMMANDS, Manifest, name_of
from stromboli.kube.api_resources import Resource

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


def bus_command(action: str, resource: Resource, target: Manifest) -> Manifest:
    """A command to the controller of a job or queue; it goes with its target."""
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(target),
        "uid": target["metadata"].get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{name_of(target)}-{action.lower()}-",
            "ownerReferences": [reference],
        },
        "target": reference,
        "action": action,
    }


async def send_command(
    session: ClusterSession,
    action: str,
    resource: Resource,
    target: Manifest,
    namespace: str,
    dry_run: bool = False,
) -> None:
    """Ask the controller for an action; with `dry_run` the API server only checks the command."""
    await session.create(COMMANDS, bus_command(action, resource, target), namespace, dry_run)
