"""Arguments that name queues, and what is read of a queue in several commands."""

from __future__ import annotations

from typing import Any

import typer

from stromboli.api import names
from stromboli.cli.cluster.cluster_kinds import QUEUES, Manifest, name_of
from stromboli.cli.cluster.name_completion import completes

QUEUE_NAME = typer.Argument(
    ..., metavar="NAME", show_default=False, help="The queue.", autocompletion=completes(QUEUES)
)
QUEUE_NAMES = typer.Argument(
    ..., metavar="NAME...", show_default=False, help="The queues.", autocompletion=completes(QUEUES)
)


def spec_of_queue(queue: Manifest) -> dict[str, Any]:
    spec = queue.get("spec")
    return spec if isinstance(spec, dict) else {}


def state_of_queue(queue: Manifest | None) -> str:
    """A queue without a state is open."""
    return str(((queue or {}).get("status") or {}).get("state") or names.QUEUE_OPEN)


def parent_of(queue: Manifest) -> str:
    """The queue above it; empty for the root."""
    if name_of(queue) == names.ROOT_QUEUE:
        return ""
    return str(spec_of_queue(queue).get("parent") or names.ROOT_QUEUE)


def below(queues: list[Manifest], name: str) -> list[str]:
    """The names of all queues below one, nearest first; each once, also where parents form a circle."""
    children: dict[str, list[str]] = {}
    for queue in queues:
        children.setdefault(parent_of(queue), []).append(name_of(queue))
    reached: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for child in sorted(children.get(waiting.pop(0), ())):
            if child not in reached and child != name:
                reached[child] = None
                waiting.append(child)
    return list(reached)
