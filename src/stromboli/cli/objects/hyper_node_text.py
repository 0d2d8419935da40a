"""The tree of HyperNodes as text."""

from __future__ import annotations

from typing import Any

import typer

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.object_output import table_lines
from stromboli.cli.cluster.tree_branches import branches
from stromboli.cli.cluster.usage_bar import usage_bar
from stromboli.cli.status.resource_columns import short_bytes

Content = dict[str, Any]
BAR_WIDTH = 5
UNITS = {"nodes": "NODES", "gpus": "GPUS", "cpu": "CPU", "memory": "MEMORY"}


def print_tree(content: Content, wide: bool) -> None:
    """A row per HyperNode, as a tree; what is left out of it below."""
    roots = content["hyperNodes"]
    if not roots and not content.get("leftOutHyperNodes"):
        typer.echo("No hypernodes found.", err=True)
        return
    resources = _resources(roots)
    titles = ["NAME", "TIER", "NODES FREE", "LARGEST GANG", *_titles(resources, wide)]
    rows = [
        [f"{branch.first}{branch.node['title']}", *_row(branch.node, resources, wide)]
        for branch in branches(roots, lambda each: each["hyperNodes"])
    ]
    for line in table_lines(titles, rows):
        typer.echo(line)
    for name, why in sorted(content.get("leftOutHyperNodes", {}).items()):
        typer.echo(shown(f"left out: {name}: {why}"))


def _resources(roots: list[Content]) -> list[str]:
    return [unit for unit in UNITS if unit != "nodes" and any(unit in each["rooms"] for each in roots)]


def _titles(resources: list[str], wide: bool) -> list[str]:
    titles = [f"{UNITS[unit]} FREE" for unit in resources]
    return titles + ([f"LARGEST {UNITS[unit]}" for unit in resources] if wide else [])


def _row(hyper_node: Content, resources: list[str], wide: bool) -> list[object]:
    rooms = hyper_node["rooms"]
    nodes = rooms.get("nodes", {"total": 0, "free": 0, "largestGang": 0})
    largest = [_amount(rooms.get(unit, {}).get("largestGang", 0), unit) for unit in resources]
    return [
        f"{hyper_node['tier']} {hyper_node['tierName']}".rstrip(),
        f"{nodes['free']:g}/{nodes['total']:g}",
        f"{nodes['largestGang']:g}",
        *(_free(rooms.get(unit), unit) for unit in resources),
        *(largest if wide else ()),
    ]


def _free(room: Content | None, unit: str) -> str:
    """`12/16 ██░░░░░░`: what is free of what there is, and a bar of what is in use."""
    if room is None:
        return "-"
    bar = usage_bar(room["total"] - room["free"], room["total"], BAR_WIDTH)
    return f"{_amount(room['free'], unit)}/{_amount(room['total'], unit)} {bar}"


def _amount(amount: float, unit: str) -> str:
    return short_bytes(amount) if unit == "memory" else f"{amount:g}"
