"""A tree as lines, as `tree` draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Node = TypeVar("Node")
DEEPEST = 100
"""Levels that are drawn."""


def tree_lines(
    roots: Sequence[Node], below: Callable[[Node], Sequence[Node]], text: Callable[[Node], str]
) -> list[str]:
    """A line per node, behind lines to what it stands below; the text of a root begins at the margin."""
    lines: list[str] = []

    def draw(node: Node, first: str, rest: str, level: int) -> None:
        lines.append(first + text(node))
        inner = below(node) if level < DEEPEST else ()
        for position, each in enumerate(inner):
            last = position == len(inner) - 1
            draw(each, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), level + 1)

    for root in roots:
        draw(root, "", "", 0)
    return lines
