"""The tree of HyperNodes as text."""

from __future__ import annotations

from typing import Any

import typer

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.object_output import table_lines
from stromboli.cli.cluster.usage_bar import usage_bar
from stromboli.cli.objects.tree_lines import tree_lines
from stromboli.cli.status.resource_columns import short_bytes

Content = dict[str, Any]
UNITS = {"nodes": "NODES", "gpus": "GPUS", "cpu": "CPU", "memory": "MEMORY"}


def print_tree(content: Content, wide: bool) -> None:
    """A row per HyperNode, as a tree; what is left out of it below."""
    roots = content["hyperNodes"]
    if not roots and not content.get("leftOutHyperNodes"):
        typer.echo("No hypernodes found.", err=True)
        return
    rows = _rows(roots, wide)
    drawn = tree_lines(roots, lambda each: each["hyperNodes"], lambda each: str(each["name"]))
    titles = ["NAME", "TIER", "NODES FREE", "IN USE", "LARGEST GANG", *_titles(roots, wide)]
    for line in table_lines(titles, [[name, *row] for name, row in zip(drawn, rows, strict=True)]):
        typer.echo(line)
    for name, why in sorted(content.get("leftOutHyperNodes", {}).items()):
        typer.echo(shown(f"left out: {name}: {why}"))


def _resources(roots: list[Content]) -> list[str]:
    return [unit for unit in UNITS if unit != "nodes" and any(unit in each["rooms"] for each in roots)]


def _titles(roots: list[Content], wide: bool) -> list[str]:
    titles = [f"{UNITS[unit]} FREE" for unit in _resources(roots)]
    return titles + ([f"LARGEST {UNITS[unit]}" for unit in _resources(roots)] if wide else [])


def _rows(roots: list[Content], wide: bool) -> list[list[object]]:
    resources, rows = _resources(roots), []

    def walk(each: Content) -> None:
        rooms, nodes = each["rooms"], each["rooms"].get("nodes", {"total": 0, "free": 0, "largestGang": 0})
        tier = f"{each['tier']} {each['tierName']}".rstrip()
        used = nodes["total"] - nodes["free"]
        row: list[object] = [tier, f"{nodes['free']:g}/{nodes['total']:g}", usage_bar(used, nodes["total"])]
        row.append(f"{nodes['largestGang']:g}")
        row += [_free(rooms.get(unit), unit) for unit in resources]
        row += (
            [_amount(rooms.get(unit, {}).get("largestGang", 0), unit) for unit in resources] if wide else []
        )
        rows.append(row)
        for child in each["hyperNodes"]:
            walk(child)

    for root in roots:
        walk(root)
    return rows


def _free(room: Content | None, unit: str) -> str:
    return f"{_amount(room['free'], unit)}/{_amount(room['total'], unit)}" if room else "-"


def _amount(amount: float, unit: str) -> str:
    return short_bytes(amount) if unit == "memory" else f"{amount:g}"
