"""The status of a cluster as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from stromboli.api import names
from stromboli.cli.status.resource_columns import NONE, Column, Resources, is_plain_gpu, short_bytes
from stromboli.embedded.tables.age_text import duration_text

Content = dict[str, Any]
PARTS = ("memory", "cores")
"""What cards are shared by."""
TIER_RESOURCES = {"nodes": "whole nodes", "gpus": "GPUs", names.CPU: "CPUs", names.MEMORY: "memory"}
WIDEST = 10_000
"""Characters in a line of a table."""


def print_status(out: Console, status: Content, wide: bool = False) -> None:
    """Where the cluster is, what is in it, and who has what."""
    if "pid" in status:
        up = duration_text(status["upSeconds"])
        where = f"{status['url']}, up for {up}, process {status['pid']}, data in {status['data']}"
        _print(out, where)
        _print(out, f"export KUBECONFIG={status['kubeconfig']}{os.linesep}")
    else:
        _print(out, f"{status['url']} ({status['kubeconfig']}){os.linesep}")
    nodes = dict(status["nodes"])
    total = nodes.pop("total")
    _print(out, f"Nodes  {total}: {_counts(nodes)}")
    for title, key in (("Pods", "pods"), ("Jobs", "jobs")):
        _print(out, f"{title}   {sum(status[key].values())}: {_counts(status[key])}")
    if refused := status.get("policyRefused"):
        _print(out, f"{os.linesep}Policy refused: {refused}")
        _print(out, f"The last good policy, from {status['policy']}, stays in force")
    resources = _shown_resources(status)
    _print(out, f"{os.linesep}Queues, shares by {status['policy']}")
    _print_table(out, _queues(status["queues"], resources, wide))
    _print(out, f"{os.linesep}Nodes, by instance type or size")
    _print_table(out, _node_groups(status["nodeGroups"], resources))
    if limited := [queue for queue in status["queues"] if queue.get("devices")]:
        _print(out, f"{os.linesep}Devices of queues")
        _print_table(out, _queue_devices(limited))
    if "devices" in status:
        _print(out, f"{os.linesep}Devices, by class")
        _print_table(out, _devices(status["devices"]))
    if "cards" in status:
        _print(out, f"{os.linesep}Shared cards, by type")
        _print_table(out, _cards(status["cards"]))
    if "topology" in status:
        _print(out, f"{os.linesep}HyperNodes, by tier and resource, and the largest gang below one of them")
        _print_table(out, _tiers(status["topology"], wide))
    if status.get("leftOutHyperNodes"):
        _print(out, f"{os.linesep}HyperNodes that are left out")
        for name, why in sorted(status["leftOutHyperNodes"].items()):
            _print(out, f"{name}: {why}")
    if status.get("unusable"):
        _print(out, f"{os.linesep}{status['unusable']} objects cannot be used and are not counted")


def _print(out: Console, line: str) -> None:
    out.print(line, markup=False, soft_wrap=True)


def _print_table(out: Console, table: Table) -> None:
    """As wide as it has to be: a narrow terminal breaks lines, and nothing is cut off."""
    table.width = Measurement.get(out, out.options.update(max_width=WIDEST), table).maximum
    out.print(table, soft_wrap=True)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


# -- tables


def _shown_resources(status: Content) -> list[Column]:
    """CPU and memory, and GPUs where there are any."""
    gpu = Column("GPU", is_plain_gpu)
    has_gpus = any(gpu.amount(group["allocatable"]) for group in status["nodeGroups"])
    return [
        Column("CPU", lambda name: name == names.CPU),
        Column("Mem", lambda name: name == names.MEMORY, short_bytes),
        *([gpu] if has_gpus else []),
    ]


def _table(first: Iterable[str], columns: list[Column], parts: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for title in first:
        table.add_column(title, no_wrap=True)
    for column in columns:
        for number, part in enumerate(parts):
            table.add_column(f"{column.title} {part}" if number == 0 else part, justify="right", no_wrap=True)
    return table


def _queues(queues: list[Content], columns: list[Column], wide: bool) -> Table:
    """The root is the sum of the others, and shown only where jobs are in it."""
    parts = ("used", "deserved", "free", *(("limit", "waiting") if wide else ()))
    table = _table(("Queue", *(("State", "Weight", "PodGroups") if wide else ())), columns, parts)
    for queue in queues:
        if queue["name"] == names.ROOT_QUEUE and not queue["podGroups"] and not wide:
            continue
        state = queue["state"] if queue["state"] not in ("", names.QUEUE_OPEN) else ""
        head = [queue["name"] if wide or not state else f"{queue['name']} ({state})"]
        if wide:
            head += [queue["state"] or NONE, str(queue["weight"]), _counts(queue["podGroups"])]
        table.add_row(*head, *(cell for column in columns for cell in _queue_cells(queue, column, wide)))
    return table


def _queue_cells(queue: Content, column: Column, wide: bool) -> Iterator[str]:
    """What is not named is none of what a queue has, and no limit of what it may have."""
    yield from (column.cell(queue.get(key)) for key in ("used", "deserved", "free"))
    if wide:
        yield column.cell(queue.get("capability"), unnamed=NONE)
        yield column.cell(queue.get("pending"))


def _node_groups(groups: list[Content], columns: list[Column]) -> Table:
    table = _table(("Type", "Nodes"), columns, ("used", "of", "free"))
    for group in groups:
        cells = [
            column.cell(_listed_by_nodes(group, key) or {"cpu": "0"})
            for column in columns
            for key in ("used", "allocatable", "free")
        ]
        ready = "" if group["usable"] == group["nodes"] else f", {group['usable']} usable"
        table.add_row(group["name"], f"{group['nodes']}{ready}", *cells)
    return table


def _listed_by_nodes(group: Content, key: str) -> Resources:
    """What nodes list themselves: other extended resources are served by devices, which are shown by class."""
    has = group["allocatable"]
    return {name: amount for name, amount in group[key].items() if has.get(name, "0") != "0"}


def _queue_devices(queues: list[Content]) -> Table:
    table = _table(("Queue", "Devices"), [], ())
    for title in ("used", "limit"):
        table.add_column(title, justify="right", no_wrap=True)
    for queue in queues:
        for key, amounts in queue["devices"].items():
            table.add_row(queue["name"], key, amounts["used"], amounts.get("limit", NONE))
    return table


def _devices(classes: list[Content]) -> Table:
    table = _table(("Class",), [], ())
    for title in ("used", "of", "free"):
        table.add_column(title, justify="right", no_wrap=True)
    for entry in classes:
        table.add_row(entry["class"], *(str(entry[key]) for key in ("used", "total", "free")))
    return table


def _cards(cards: list[Content]) -> Table:
    table = _table(("Type",), [], ())
    for title in ("Cards in use", "of", "Mem used", "of", "Cores used", "of"):
        table.add_column(title, justify="right", no_wrap=True)
    for kind in sorted({card["type"] for card in cards}):
        listed = [card for card in cards if card["type"] == kind]
        amounts = [
            str(sum(card[part][key] for card in listed)) for part in PARTS for key in ("used", "total")
        ]
        table.add_row(
            kind or NONE, str(sum(card["shares"] > 0 for card in listed)), str(len(listed)), *amounts
        )
    return table


def _tiers(tiers: list[Content], wide: bool) -> Table:
    """A row for each resource of each tier; `wide` adds what is in use and how scattered the free part is."""
    table = _table(("Tier", "Name", "HyperNodes", "Resource"), [], ())
    for title in ("Free", "of", "Full", "Largest gang", *(("In use", "Fragmented") if wide else ())):
        table.add_column(title, justify="right", no_wrap=True)
    for tier in tiers:
        head = [str(tier["tier"]), tier["name"] or NONE, str(tier["hyperNodes"])]
        for resource, title in TIER_RESOURCES.items():
            if room := tier["rooms"].get(resource):
                table.add_row(*head, title, *_room_cells(room, resource, wide))
                head = [""] * len(head)
    return table


def _room_cells(room: Content, resource: str, wide: bool) -> Iterator[str]:
    amount = short_bytes if resource == names.MEMORY else "{:.12g}".format
    yield from (amount(room["free"]), amount(room["total"]), str(room["full"]), amount(room["largestGang"]))
    if wide:
        yield from (f"{room[key]:.0%}" for key in ("occupancy", "fragmentation"))
