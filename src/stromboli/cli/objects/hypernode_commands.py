"""`stromboli hypernode`: the parts of the network, how full they are, and how large a gang still fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from stromboli.api import names
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import HYPER_NODES, Manifest
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_output import NAME_COLUMN, OUTPUT, Column, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.objects.common_columns import AGE_COLUMN, begun, items, nested, with_events
from stromboli.cli.objects.kind_commands import ObjectKind, add_showing

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

MOST_MEMBERS = 100
"""Members that a description lists."""


def _member_counts(hyper_node: Manifest) -> str:
    """`2 HyperNodes`, or `8 Nodes`: how many members it names."""
    kinds = [str(member.get("type") or "") for member in items(nested(hyper_node, "spec", "members"))]
    return ", ".join(
        f"{kinds.count(kind)} {kind}{'s' * (kinds.count(kind) != 1)}" for kind in dict.fromkeys(kinds)
    )


def _label_value(hyper_node: Manifest) -> object:
    """The value of the node label from which it was discovered, as the tree and the scheduler show it."""
    labels = nested(hyper_node, "metadata", "labels") or {}
    if labels.get(names.TOPOLOGY_SOURCE) != names.TOPOLOGY_SOURCE_LABEL:
        return None
    return labels.get(nested(hyper_node, "spec", "tierName"))


COLUMNS = (
    NAME_COLUMN,
    Column("LABEL VALUE", _label_value),
    Column("TIER", lambda hyper_node: nested(hyper_node, "spec", "tier")),
    Column("TIER NAME", lambda hyper_node: nested(hyper_node, "spec", "tierName")),
    Column("MEMBERS", _member_counts),
    Column("NODES", lambda hyper_node: nested(hyper_node, "status", "nodeCount")),
    AGE_COLUMN,
)


async def describe(session: ClusterSession, hyper_node: Manifest) -> Description:
    description = begun(hyper_node)
    description.field("Label value", _label_value(hyper_node))
    description.field("Tier", nested(hyper_node, "spec", "tier"))
    description.field("Tier name", nested(hyper_node, "spec", "tierName"))
    description.field("Nodes", nested(hyper_node, "status", "nodeCount"))
    members = items(nested(hyper_node, "spec", "members"))
    lines = [f"{member.get('type')} {_selector(member)}" for member in members[:MOST_MEMBERS]]
    more = [f"and {len(members) - MOST_MEMBERS} more"] if len(members) > MOST_MEMBERS else []
    description.section("Members", lines + more)
    return await with_events(session, description, hyper_node)


def _selector(member: Manifest) -> str:
    """By what a member is selected."""
    if name := nested(member, "selector", "exactMatch", "name"):
        return str(name)
    if pattern := nested(member, "selector", "regexMatch", "pattern"):
        return f"by name: {pattern}"
    labels = nested(member, "selector", "labelMatch", "matchLabels") or {}
    return (
        f"by labels: {','.join(f'{key}={value}' for key, value in sorted(labels.items())) or 'see -o yaml'}"
    )


KIND = ObjectKind(HYPER_NODES, lambda _: COLUMNS, describe, title=_label_value)
hypernode = subcommands("Show the parts of the network, and how full they are.")
add_showing(hypernode, KIND)


@hypernode.command("tree", cls=Command)
@on_cluster(namespaced=False)
async def tree(
    session: ClusterSession,
    root: str = typer.Argument(
        "",
        metavar="[NAME]",
        show_default=False,
        help="Show this HyperNode and those below it: its name, or what the tree shows for it.",
        autocompletion=completes(HYPER_NODES),
    ),
    output: ObjectFormat = OUTPUT,
) -> None:
    """Draw the HyperNodes as a tree: free nodes, the largest gang that still fits, and what is free of each resource.

    HyperNodes that were discovered from labels of nodes are shown by the value of the label. A node is free if new
    pods may come to it and none of this scheduler is there. The largest gang is in whole nodes, below one HyperNode
    of the next lower tier; of the lowest tier, in itself.
    """
    from stromboli.cli.objects.hyper_node_text import print_tree
    from stromboli.cli.objects.network_occupancy import network_occupancy

    content = await network_occupancy(session, root)
    if output in (ObjectFormat.JSON, ObjectFormat.YAML):
        from stromboli.cli.cluster.object_output import write_document

        write_document(content, output)
    elif output is ObjectFormat.NAME:
        for name in _names(content["hyperNodes"]):
            typer.echo(shown(f"hypernode.{HYPER_NODES.group}/{name}"))
    else:
        print_tree(content, wide=output is ObjectFormat.WIDE)


def _names(hyper_nodes: list[dict[str, Any]]) -> list[str]:
    return [name for each in hyper_nodes for name in (each["name"], *_names(each["hyperNodes"]))]
