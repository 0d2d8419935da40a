"""Trees as lines, as `tree` draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

Node = TypeVar("Node")
DEEPEST = 100
"""Levels of a tree that are looked at; admission allows 64 of queues."""


class Branch(NamedTuple, Generic[Node]):
    """A node of a tree, and what is drawn in front of it and of further lines of it."""

    node: Node
    first: str
    rest: str


def branches(roots: Sequence[Node], below: Callable[[Node], Sequence[Node]]) -> Iterator[Branch[Node]]:
    """All nodes, each before those below it; roots begin at the margin."""

    def draw(node: Node, first: str, rest: str, level: int) -> Iterator[Branch[Node]]:
        inner = below(node) if level < DEEPEST else ()
        yield Branch(node, first, rest + ("│  " if inner else "   "))
        for position, each in enumerate(inner):
            last = position == len(inner) - 1
            head, margin = ("└─ ", "   ") if last else ("├─ ", "│  ")
            yield from draw(each, rest + head, rest + margin, level + 1)

    for root in roots:
        yield from draw(root, "", "", 0)


def tree_lines(
    roots: Sequence[Node], below: Callable[[Node], Sequence[Node]], text: Callable[[Node], str]
) -> list[str]:
    """A line per node."""
    return [branch.first + text(branch.node) for branch in branches(roots, below)]
