"""What tables show of queues: state, place, and the four amounts of each resource side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from stromboli.api import names
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.cli.cluster.object_output import NAME_COLUMN, NONE, Column
from stromboli.cli.queue.queue_names import parent_of, spec_of_queue, state_of_queue
from stromboli.cli.queue.queue_shares import PARTS, Share
from stromboli.cli.status import resource_columns as amounts
from stromboli.embedded.tables.age_text import age

ALWAYS = ("used", "deserved")
"""Amounts that are shown even if no queue has any."""


def resources_of(shares: Iterable[Share]) -> list[amounts.Column]:
    """CPU and memory, and GPUs where a queue has any."""
    lists = [share.get(part) or {} for share in shares for part in PARTS]
    gpu = amounts.Column("GPU", amounts.is_plain_gpu)
    return [
        amounts.Column("CPU", lambda name: name == names.CPU),
        amounts.Column("MEM", lambda name: name == names.MEMORY, amounts.short_bytes),
        *([gpu] if any(map(amounts.is_plain_gpu, (name for each in lists for name in each))) else []),
    ]


def queue_columns(
    shares: Mapping[str, Share], share_of: Callable[[Manifest], Share] | None = None
) -> tuple[Column, ...]:
    """The columns of a list of queues; amounts that no queue states are for -o wide."""
    current = share_of or (lambda queue: shares.get(name_of(queue), {}))
    columns = [
        NAME_COLUMN,
        Column("STATE", state_of_queue),
        Column("PARENT", lambda queue: parent_of(queue) or NONE),
        Column("WEIGHT", lambda queue: spec_of_queue(queue).get("weight") or 1),
    ]
    for resource in resources_of(shares.values()):
        for part in PARTS:
            title = f"{resource.title} USED" if part == "used" else part.upper()
            stated = any(
                resource.cell(share.get(part), amounts.NONE) != amounts.NONE for share in shares.values()
            )
            columns.append(
                Column(title, _amount(current, resource, part), wide=part not in ALWAYS and not stated)
            )
    return (
        *columns,
        Column("PRIORITY", lambda queue: spec_of_queue(queue).get("priority") or 0, wide=True),
        Column("RECLAIMABLE", lambda queue: _yes_or_no(spec_of_queue(queue).get("reclaimable")), wide=True),
        Column("PODGROUPS", lambda queue: _groups(current(queue)), wide=True),
        Column("AGE", lambda queue: age(queue, time.time()), wide=True),
    )


def _amount(
    share_of: Callable[[Manifest], Share], resource: amounts.Column, part: str
) -> Callable[[Manifest], object]:
    """An amount of a queue; what a list does not name is none of what a queue has, and no limit."""
    unnamed = amounts.NONE if part == "capability" else "0"
    return lambda queue: resource.cell(share_of(queue).get(part), unnamed)


def _yes_or_no(value: object) -> str:
    return "false" if value is False else "true"


def _groups(share: Share) -> str:
    counts = share.get("podGroups")
    if counts is None:
        return NONE
    return ", ".join(f"{count} {phase}" for phase, count in sorted(counts.items())) or "0"
