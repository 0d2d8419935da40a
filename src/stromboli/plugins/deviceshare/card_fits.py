"""The fit of a request on the cards of each node, as columns: a node that changed is evaluated again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from stromboli.api import card_reasons as reasons
from stromboli.api.card_reasons import NO_CARDS
from stromboli.engine.placement.node_functions import Check
from stromboli.model.cards.node_cards import CardColumns
from stromboli.model.cards.pod_cards import CardShare
from stromboli.model.remedy import Rank, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stromboli.api.card_reasons import CardReason
    from stromboli.engine.placement.node_functions import Floats, Nodes
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.task import Task


# -- the shares of a pod on a node, or why it gets none


Shares = tuple[tuple[CardShare, ...], ...]
Order = Sequence[int] | None
"""Cards by index in the order of preference; none: by the arguments of the plugin."""


class Fit(NamedTuple):
    """The shares of each container, and their score."""

    shares: Shares
    score: float = 0.0


class CardShortage(NamedTuple):
    """Why a pod gets no shares of cards, with its request."""

    reason: CardReason
    asked: str = ""

    @property
    def text(self) -> str:
        return self.reason.of(self.asked)

    @property
    def remedy(self) -> Remedy:
        """The remedy; that of a node without such cards ranks lower."""
        return Remedy(self.reason.remedy, rank=Rank.ABSENCE if self.reason == NO_CARDS else Rank.CAUSE)


class CardRequest(Protocol):
    """The request of a pod for the cards of one model: hashable, so that pods with equal requests share results."""

    @property
    def model(self) -> str: ...

    @property
    def lock(self) -> str:
        """The lock of a node under which its device plugin serves such pods."""

    def fit(self, cards: NodeCards, taken: CardColumns, order: Order = None) -> Fit | CardShortage:
        """The shares that a pod gets beside what is in use: of the first cards that serve, in this order."""

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | CardShortage | None:
        """As `fit` of cards that would serve if they were empty, without shares; none if that needs a full search."""

    def annotations(self, shares: Shares, node: str, now: float) -> dict[str, str]:
        """What its device plugin reads about the shares."""


# -- cards reserved for pending tasks (`holdFor`)
#
# A reservation holds amounts of a node. The cards of its owner are searched again each time: the request stays the
# same, and cards are released meanwhile.


class HeldCards:
    """Tasks with reservations that request shares of cards."""

    def __init__(self, cluster: Cluster, requests_of: Callable[[Task], tuple[CardRequest, ...]]):
        self._reservations = cluster.reservations
        self._requests_of = requests_of
        self._owners: dict[Node, tuple[Task, ...]] = {}
        self._version = -1

    def owners(self) -> Mapping[Node, tuple[Task, ...]]:
        """The tasks with reservations by node; a new mapping after every change."""
        if self._version != self._reservations.version:
            self._version, self._owners = self._reservations.version, {}
            for task, node in self._reservations.owners():
                if self._requests_of(task):
                    self._owners[node] = (*self._owners.get(node, ()), task)
        return self._owners

    def beside(self, node: Node, cards: NodeCards, taken: CardColumns, task: Task | None) -> CardColumns:
        """What is in use of cards, including the shares of other tasks with reservations on the node."""
        owners = [owner for owner in self.owners().get(node, ()) if owner is not task]
        if not owners:
            return taken
        later, taken = cards.later.copy(), taken.copy()
        for owner in owners:
            for request in self._requests_of(owner):
                answer = request.fit(cards, later) if request.model == cards.model else None
                if isinstance(answer, Fit):
                    shares = [share for container in answer.shares for share in container]
                    for placed in cards.placed_shares(shares):
                        later.add(owner, placed, 1)
                        taken.add(owner, placed, 1)
        return taken


# -- columns


FITS = 0


class CardFits:
    """A request against the cards of all nodes: the reasons of nodes by number, and the scores of the others."""

    def __init__(self, cluster: Cluster, request: CardRequest, held: HeldCards):
        self._cluster = cluster
        self._request = request
        self._held = held
        self._owners: Mapping[Node, tuple[Task, ...]] = {}
        self._shortages: list[CardShortage | None] = [None]
        """The reasons by their numbers; the first stands for a fit."""
        self._numbers: dict[CardShortage, int] = {}
        self._on_empty: dict[NodeCards, Fit | CardShortage] = {}
        self._layout = self._version = -1
        self.now: Ints = np.zeros(0, dtype=np.int64)
        """The number of the reason why each node does not fit now; 0 if it fits."""
        self.later: Ints = self.now
        """The same once leaving tasks have left."""
        self.scores: Floats = np.zeros(0)

    def update(self) -> None:
        """Evaluate the nodes again that changed since the last call."""
        columns, ledger = self._cluster.columns, self._cluster.cards
        changed = ledger.changes.since(self._version) if columns.layout == self._layout else None
        if changed is None:
            count = len(columns)
            self._on_empty.clear()
            self.now, self.later = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
            self.scores = np.zeros(count)
            for node in columns.nodes:
                self._fit(node)
        else:
            known = self._cluster.nodes
            nodes = {known[name] for name in changed if name in known} | self._nodes_held_otherwise()
            for node in sorted(nodes, key=lambda node: node.row):
                if node.row >= 0:
                    self._fit(node)
        self._layout, self._version = columns.layout, ledger.changes.position
        self._owners = self._held.owners()

    def _nodes_held_otherwise(self) -> set[Node]:
        """The nodes whose reservations changed since the last call."""
        before, owners = self._owners, self._held.owners()
        if before is owners:
            return set()
        return {node for node in before.keys() | owners.keys() if before.get(node) != owners.get(node)}

    def _fit(self, node: Node) -> None:
        if (plain := self._plain_answer(node)) is not None:
            self.now[node.row] = self.later[node.row] = self._number(plain)
            self.scores[node.row] = 0
            return
        now, later = self._answers(node)
        best = now if isinstance(now, Fit) else later
        self.now[node.row], self.later[node.row] = self._number(now), self._number(later)
        self.scores[node.row] = best.score if isinstance(best, Fit) else 0

    def _plain_answer(self, node: Node) -> Fit | CardShortage | None:
        """The result of a node without leaving tasks and reservations, if no search is needed."""
        cards = self._cluster.cards.nodes.get(node.name, {}).get(self._request.model)
        if cards is None or cards.leaving or node in self._held.owners():
            return None
        return self._request.plain_answer(cards, cards.now)

    def _answers(self, node: Node, task: Task | None = None) -> tuple[Fit | CardShortage, Fit | CardShortage]:
        """The results of a node: now, and once leaving tasks have left."""
        ledger = self._cluster.cards
        cards = ledger.nodes.get(node.name, {}).get(self._request.model)
        if cards is None:
            reason = reasons.UNREADABLE if node.name in ledger.problems else reasons.NO_CARDS
            shortage = CardShortage(reason, self._request.model)
            return shortage, shortage
        later = self.answer(node, cards, False, task)
        return (self.answer(node, cards, True, task) if cards.leaving else later), later

    def answer(
        self, node: Node, cards: NodeCards, now: bool, task: Task | None = None, order: Order = None
    ) -> Fit | CardShortage:
        """The shares that a pod gets on a node: now, or once leaving tasks have left.

        Shares of other tasks with reservations count as in use, those of the task itself do not.
        """
        first = self._answer_beside(node, cards, cards.now if now else cards.later, task, order)
        if isinstance(first, Fit) or now or not cards.leaving:
            return first
        second = self._answer_beside(node, cards, cards.now, task, order)
        return second if isinstance(second, Fit) else first

    def _answer_beside(
        self, node: Node, cards: NodeCards, taken: CardColumns, task: Task | None, order: Order
    ) -> Fit | CardShortage:
        """The shares that a pod gets beside what is in use, and beside reservations of other tasks."""
        beside = self._held.beside(node, cards, taken, task)
        answer = self._fit_or_never(cards, beside, order)
        if isinstance(answer, Fit) or beside is taken:
            return answer
        alone = self._request.fit(cards, taken)
        return CardShortage(reasons.HELD) if isinstance(alone, Fit) else answer

    def _fit_or_never(self, cards: NodeCards, taken: CardColumns, order: Order) -> Fit | CardShortage:
        """As `fit`, in any order if not in this; if even empty cards do not suffice, the reason is not curable."""
        answer = self._request.fit(cards, taken, order)
        if order is not None and isinstance(answer, CardShortage):
            answer = self._request.fit(cards, taken)
        if isinstance(answer, CardShortage) and answer.reason.curable:
            empty = self._fit_on_empty(cards)
            if isinstance(empty, CardShortage):
                return CardShortage(empty.reason._replace(curable=False), empty.asked)
        return answer

    def _fit_on_empty(self, cards: NodeCards) -> Fit | CardShortage:
        """The result of empty cards: always the same for the same cards."""
        known = self._on_empty.get(cards)
        if known is None:
            known = self._on_empty[cards] = self._request.fit(cards, CardColumns(len(cards.cards)))
        return known

    def _number(self, answer: Fit | CardShortage) -> int:
        if isinstance(answer, Fit):
            return FITS
        number = self._numbers.get(answer)
        if number is None:
            number = self._numbers[answer] = len(self._shortages)
            self._shortages.append(answer)
        return number

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """A check for each reason of a node, and one for nodes that fit only once tasks have left."""
        self.update()
        now, later = map(nodes.pick, self._seen_by(task))
        for number in np.flatnonzero(np.bincount(later)).tolist():
            shortage = self._shortages[number]
            if shortage is not None:
                passes, reason = later != number, shortage.reason
                yield Check(passes, shortage.text, reason.curable, remedy=shortage.remedy)
        if (now != later).any():
            yield Check(nodes.all(), reasons.MEMORY.of("enough"), True, now=now == FITS)

    def _seen_by(self, task: Task) -> tuple[Ints, Ints]:
        """The reasons of nodes for a task now and later; its own reservation is available to it."""
        own = self._cluster.reservations.own_reservation(task)
        if own is None:
            return self.now, self.later
        now, later = self.now.copy(), self.later.copy()
        answers = self._answers(self._cluster.columns.nodes[own.row], task)
        now[own.row], later[own.row] = map(self._number, answers)
        return now, later
