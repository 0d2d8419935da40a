"""Shares that do not fit into each other: said in the log, and otherwise of no consequence (spec 03 8.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.amounts import Vector, total_of
from stromboli.model.dimensions import Dimensions
from stromboli.model.queue import ROOT, Queue


class Oddity(NamedTuple):
    """Something of a queue that exceeds what should hold it."""

    queue: Queue
    what: str
    amounts: Vector
    against: str
    limit: Vector
    remedy: str

    def text(self, dims: Dimensions) -> str:
        """`queue "eng": its guarantee of cpu 12 exceeds its capability of 8; lower the one or raise the other`."""
        over = dims.ordered(self.over)
        high = resource_list(dims.named({dim: int(self.amounts[dim]) for dim in over}))
        low = resource_list(dims.named({dim: int(self.limit[dim]) for dim in over}))
        found = ", ".join(
            f"{self.what} of {name} {high[name]} exceeds {self.against} of {low[name]}"
            for name in (dims.names[dim] for dim in over)
        )
        return f'queue "{self.queue.name}": {found}; {self.remedy}'

    @property
    def over(self) -> list[int]:
        """Resources that both sides name, in which the one is above the other."""
        return [dim for dim, amount in self.amounts.items() if amount > self.limit.get(dim, amount)]


def oddities_of(queue: Queue, capability: Vector, children: Sequence[Queue]) -> Iterator[Oddity]:
    """A guarantee that can never be used, and children that do not fit into their parent."""
    for odd in _possible(queue, capability, children):
        if odd.over:
            yield odd


def _possible(queue: Queue, capability: Vector, children: Sequence[Queue]) -> Iterator[Oddity]:
    lower = "lower the one or raise the other"
    own = {dim: most for dim, most in capability.items() if most > 0}
    yield Oddity(queue, "its guarantee", queue.guarantee, "its capability", own, lower)
    for child in children:
        yield Oddity(
            child, "its capability", child.capability, f'that of its parent "{queue.name}"', own, lower
        )
    if queue.name != ROOT:
        for what, sum, mine in (
            ("guarantee", total_of(child.guarantee for child in children), queue.guarantee),
            ("deserved", total_of(child.deserved for child in children), queue.deserved),
        ):
            yield Oddity(queue, f"its children's {what} together", sum, f"its own {what}", mine, lower)
