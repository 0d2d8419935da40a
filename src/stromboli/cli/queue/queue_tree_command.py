"""`stromboli queue tree`: queues below each other, with bars of what they use of what they deserve."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from stromboli.api import names
from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.chosen_objects import plain_name
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import QUEUES, Manifest, full_name, name_of
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat, table_lines, write_document
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.cluster.tree_branches import DEEPEST, Branch, branches
from stromboli.cli.cluster.usage_bar import BORROWED, USED, usage_bar
from stromboli.cli.output import has_colours
from stromboli.cli.queue.queue_names import parent_of, spec_of_queue, state_of_queue
from stromboli.cli.queue.queue_shares import PARTS, Share, amount_of, read_shares
from stromboli.cli.status.resource_columns import NONE, short_bytes

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

BAR = 20
GREEN, YELLOW = 32, 33
TITLES = ("QUEUE", "STATE", "WEIGHT", "RESOURCE", "USED OF DESERVED", *(part.upper() for part in PARTS))


@on_cluster(namespaced=False)
async def tree(
    session: ClusterSession,
    root: str = typer.Argument(
        names.ROOT_QUEUE,
        metavar="[NAME]",
        help="Only what is below that queue.",
        autocompletion=completes(QUEUES),
    ),
    output: ObjectFormat = OUTPUT,
) -> None:
    """Draw the tree of queues: used, deserved, guaranteed and largest amounts of each, with bars.

    A bar is as long as what the queue deserves, or else may use at most; what it has borrowed beyond that is marked.

    Exit status 0, 1 if the queue does not exist or the cluster refuses, 2 for a wrong command line.
    """
    root = plain_name(QUEUES, root)
    queues = {name_of(queue): queue for queue in (await session.list(QUEUES)).items}
    if root not in queues and root != names.ROOT_QUEUE:
        await session.get(QUEUES, root)
    branches = list(branches_of(queues, root))
    if output is ObjectFormat.NAME:
        for branch in branches:
            typer.echo(shown(full_name(QUEUES, branch.node)))
        return
    parts = ReadableParts()
    shares = await read_shares(session, list(queues.values()), parts)
    if output in (ObjectFormat.JSON, ObjectFormat.YAML):
        write_document(tree_content(queues, shares, root), output)
    else:
        for line in tree_text(branches, queues, shares):
            typer.echo(coloured(line))
        if root == names.ROOT_QUEUE:
            _tell_lost(queues, branches)
    parts.tell()


def branches_of(queues: Mapping[str, Manifest], root: str) -> Iterator[Branch[str]]:
    """A queue and all below it, in order; a circle is drawn once."""
    children = _children(queues, root)
    return branches([root], lambda name: children.get(name, []))


def _children(queues: Mapping[str, Manifest], root: str) -> dict[str, list[str]]:
    """The queues right below each, by name; the root is below none, also where parents form a circle."""
    children: dict[str, list[str]] = {}
    for name in sorted(queues):
        if name != root:
            children.setdefault(parent_of(queues[name]), []).append(name)
    return children


def tree_text(
    branches: list[Branch[str]], queues: Mapping[str, Manifest], shares: Mapping[str, Share]
) -> list[str]:
    """A line for each resource of each queue."""
    rows: list[list[object]] = []
    for branch in branches:
        queue, share = queues.get(branch.node), shares.get(branch.node, {})
        head = [f"{branch.first}{branch.node}", state_of_queue(queue), _weight(queue)]
        for position, resource in enumerate(resources_in(share)):
            rows.append(
                [
                    *(head if not position else [branch.rest.rstrip(), "", ""]),
                    resource,
                    *_cells(share, resource),
                ]
            )
    return table_lines(TITLES, rows)


def _weight(queue: Manifest | None) -> object:
    return spec_of_queue(queue).get("weight") or 1 if queue is not None else ""


def resources_in(share: Share) -> list[str]:
    """CPU and memory, and what else is in any of the lists."""
    lists = [share.get(part) or {} for part in PARTS]
    others = {name for amounts in lists for name, amount in amounts.items() if _number(amount)}
    return [names.CPU, names.MEMORY, *sorted(others - {names.CPU, names.MEMORY})]


def _cells(share: Share, resource: str) -> list[str]:
    amounts = [_amount(share, part, resource) for part in PARTS]
    used, deserved, _, capability = amounts
    whole = deserved or capability
    bar = usage_bar(used or 0, whole, BAR) if whole is not None else ""
    return [bar, *(_text(resource, amount) for amount in amounts)]


def _amount(share: Share, part: str, resource: str) -> float | None:
    """What a list says of a resource; what it does not name is nothing, and no limit."""
    amounts = share.get(part) or {}
    if resource not in amounts:
        return 0 if part == "used" else None
    return _number(amounts[resource])


def _number(amount: object) -> float:
    return float(amount_of(amount))


def _text(resource: str, amount: float | None) -> str:
    if amount is None:
        return NONE
    return short_bytes(amount) if resource == names.MEMORY else f"{amount:.12g}"


def coloured(line: str) -> str:
    """On a terminal, what is borrowed stands out."""
    if not has_colours():
        return line
    line = re.sub(f"{USED}+", lambda match: f"\x1b[{GREEN}m{match[0]}\x1b[0m", line)
    return re.sub(f"{BORROWED}+", lambda match: f"\x1b[{YELLOW}m{match[0]}\x1b[0m", line)


def tree_content(queues: Mapping[str, Manifest], shares: Mapping[str, Share], root: str) -> dict[str, Any]:
    """The same as nested data."""
    children = _children(queues, root)

    def content(name: str, level: int) -> dict[str, Any]:
        queue, share = queues.get(name), shares.get(name, {})
        below = children.get(name, []) if level < DEEPEST else []
        return {
            "name": name,
            "state": state_of_queue(queue),
            "weight": _weight(queue) or 1,
            **{part: share.get(part) for part in PARTS if share.get(part)},
            "queues": [content(child, level + 1) for child in below],
        }

    return content(root, 0)


def _tell_lost(queues: Mapping[str, Manifest], branches: list[Branch[str]]) -> None:
    """Queues whose parents do not lead to the root."""
    drawn = {branch.node for branch in branches}
    for name in sorted(set(queues) - drawn):
        parent = parent_of(queues[name])
        why = f"its parent {parent} does not exist" if parent not in queues else f"its parent is {parent}"
        print_note(shown(f"queue {name} is not below root: {why}; `stromboli queue set {name} parent=NAME`"))
