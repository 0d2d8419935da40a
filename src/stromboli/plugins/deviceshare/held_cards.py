"""Room that is held for tasks that wait (`holdFor`): on the cards of that node others get what these tasks leave.

A reservation holds amounts of a node. Which cards its owner will get is found again each time: it asks for the same,
and cards come free meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stromboli.plugins.deviceshare.card_fit import CardRequest, Fit, RulesOf

if TYPE_CHECKING:
    from stromboli.model.cards.node_cards import CardColumns, NodeCards
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task


class HeldCards:
    """The tasks for which room is held, as far as they ask for shares of cards."""

    def __init__(
        self, cluster: Cluster, requests_of: Callable[[Task], tuple[CardRequest, ...]], rules_of: RulesOf
    ):
        self._reservations = cluster.reservations
        self._requests_of = requests_of
        self._rules_of = rules_of
        self._owners: dict[Node, tuple[Task, ...]] = {}
        self._version = -1

    def owners(self) -> Mapping[Node, tuple[Task, ...]]:
        """By node the tasks for which room is held there; another mapping whenever that has changed."""
        if self._version != self._reservations.version:
            self._version, self._owners = self._reservations.version, {}
            for task, node in self._reservations.owners():
                if self._requests_of(task):
                    self._owners[node] = (*self._owners.get(node, ()), task)
        return self._owners

    def beside(self, node: Node, cards: NodeCards, taken: CardColumns, task: Task | None) -> CardColumns:
        """What is taken of cards, with what others than this task will get for which room is held on the node."""
        owners = [owner for owner in self.owners().get(node, ()) if owner is not task]
        if not owners:
            return taken
        later, taken = cards.later.copy(), taken.copy()
        for owner in owners:
            for request in self._requests_of(owner):
                answer = request.fit(cards, later, self._rules_of) if request.model == cards.model else None
                if isinstance(answer, Fit):
                    shares = [share for container in answer.shares for share in container]
                    for placed in cards.placed_shares(shares):
                        later.add(owner, placed, 1)
                        taken.add(owner, placed, 1)
        return taken
