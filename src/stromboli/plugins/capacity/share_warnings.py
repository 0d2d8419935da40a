"""Inconsistent shares of queues: logged, and otherwise without effect (spec 03 8.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.amounts import Vector, total_of
from stromboli.model.dimensions import Dimensions
from stromboli.model.queue import ROOT, Queue


class ShareWarning(NamedTuple):
    """An amount of a queue that exceeds its limit."""

    queue: Queue
    amount_name: str
    amounts: Vector
    limit_name: str
    limit: Vector
    remedy: str

    def text(self, dims: Dimensions) -> str:
        """`queue "eng": its guarantee of cpu 12 exceeds its capability of 8; lower the one or raise the other`."""
        over = dims.ordered(self.over)
        high = resource_list(dims.named({dim: int(self.amounts[dim]) for dim in over}))
        low = resource_list(dims.named({dim: int(self.limit[dim]) for dim in over}))
        problems = ", ".join(
            f"{self.amount_name} of {name} {high[name]} exceeds {self.limit_name} of {low[name]}"
            for name in (dims.names[dim] for dim in over)
        )
        return f'queue "{self.queue.name}": {problems}; {self.remedy}'

    @property
    def over(self) -> list[int]:
        """Resources that both name, of which the amount is above the limit."""
        return [dim for dim, amount in self.amounts.items() if amount > self.limit.get(dim, amount)]


def share_warnings(queue: Queue, capability: Vector, children: Sequence[Queue]) -> Iterator[ShareWarning]:
    """A guarantee that can never be used, and children that do not fit into their parent."""
    for warning in _possible_warnings(queue, capability, children):
        if warning.over:
            yield warning


def _possible_warnings(queue: Queue, capability: Vector, children: Sequence[Queue]) -> Iterator[ShareWarning]:
    remedy = "lower the one or raise the other"
    own = {dim: most for dim, most in capability.items() if most > 0}
    yield ShareWarning(queue, "its guarantee", queue.guarantee, "its capability", own, remedy)
    for child in children:
        yield ShareWarning(
            child, "its capability", child.capability, f'that of its parent "{queue.name}"', own, remedy
        )
    if queue.name != ROOT:
        for name, total, own_amount in (
            ("guarantee", total_of(child.guarantee for child in children), queue.guarantee),
            ("deserved", total_of(child.deserved for child in children), queue.deserved),
        ):
            yield ShareWarning(
                queue, f"its children's {name} together", total, f"its own {name}", own_amount, remedy
            )
