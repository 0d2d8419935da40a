"""Where a request fits the cards of nodes, as columns that follow what changes: a node that changed is fitted again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import card_reasons as reasons
from stromboli.engine.placement.node_functions import Check
from stromboli.plugins.deviceshare.card_fit import CardRequest, Fit, RulesOf, Shortage, fit_or_never

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stromboli.engine.placement.node_functions import Floats, Nodes
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Ints, Node

FITS = 0


class CardFits:
    """A request against the cards of all nodes: the reasons of nodes by number, and the scores of the others."""

    def __init__(self, cluster: Cluster, request: CardRequest, rules_of: RulesOf):
        self._cluster = cluster
        self._request = request
        self._rules_of = rules_of
        self._shortages: list[Shortage | None] = [None]
        """The reasons by their numbers; the first stands for a fit."""
        self._numbers: dict[Shortage, int] = {}
        self._layout = self._version = -1
        self.now: Ints = np.zeros(0, dtype=np.int64)
        """Why each node does not serve now."""
        self.later: Ints = self.now
        """Why it does not even once those that are leaving have left."""
        self.scores: Floats = np.zeros(0)

    def update(self) -> None:
        """Fit the nodes again that changed since the last time."""
        columns, ledger = self._cluster.columns, self._cluster.cards
        changed = ledger.changes_since(self._version) if columns.layout == self._layout else None
        if changed is None:
            count = len(columns)
            self.now, self.later = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
            self.scores = np.zeros(count)
            for node in columns.nodes:
                self._fit(node)
        else:
            known = self._cluster.nodes
            for node in [known[name] for name in changed if name in known]:
                if node.row >= 0:
                    self._fit(node)
        self._layout, self._version = columns.layout, ledger.version

    def _fit(self, node: Node) -> None:
        ledger, row = self._cluster.cards, node.row
        cards = ledger.nodes.get(node.name, {}).get(self._request.model)
        if cards is None:
            reason = reasons.UNREADABLE if node.name in ledger.problems else reasons.NO_CARDS
            self.now[row] = self.later[row] = self._number(Shortage(reason, self._request.model))
            self.scores[row] = 0
            return
        later = now = fit_or_never(self._request, cards, cards.later, self._rules_of)
        if cards.leaving:
            now = fit_or_never(self._request, cards, cards.now, self._rules_of)
            later = now if isinstance(now, Fit) else later
        best = now if isinstance(now, Fit) else later
        self.now[row], self.later[row] = self._number(now), self._number(later)
        self.scores[row] = best.score if isinstance(best, Fit) else 0

    def _number(self, answer: Fit | Shortage) -> int:
        if isinstance(answer, Fit):
            return FITS
        number = self._numbers.get(answer)
        if number is None:
            number = self._numbers[answer] = len(self._shortages)
            self._shortages.append(answer)
        return number

    def checks(self, nodes: Nodes) -> Iterator[Check]:
        """A check for each reason that some node has, and one for where a task has to wait for what is leaving."""
        self.update()
        later, now = nodes.pick(self.later), nodes.pick(self.now)
        for number in np.unique(self.later).tolist():
            shortage = self._shortages[number]
            if shortage is not None:
                yield Check(later != number, shortage.text, shortage.reason.curable)
        if self.now is not self.later and (self.now != self.later).any():
            yield Check(nodes.all(), reasons.MEMORY.of("enough"), True, now=now == FITS)
