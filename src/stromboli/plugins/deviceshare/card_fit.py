"""What it means that a pod fits the cards of a node: the shares it would get, or why it gets none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from stromboli.api.card_reasons import NO_CARDS
from stromboli.model.cards.node_cards import CardColumns
from stromboli.model.cards.pod_cards import CardShare
from stromboli.model.remedy import Rank, Remedy

if TYPE_CHECKING:
    from stromboli.api.card_reasons import CardReason
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.task import Task

Shares = tuple[tuple[CardShare, ...], ...]
RulesOf = Callable[["Task"], frozenset[int]]
"""The exclusive rules that a task matches."""
Order = Sequence[int] | None
"""Cards by index in the order in which they are taken; none: as the arguments of the plugin say."""


class Fit(NamedTuple):
    """The shares of each container, and what that is worth."""

    shares: Shares
    score: float = 0.0


class CardShortage(NamedTuple):
    """Why cards do not serve a pod, with what it asked for."""

    reason: CardReason
    asked: str = ""

    @property
    def text(self) -> str:
        return self.reason.of(self.asked)

    @property
    def remedy(self) -> Remedy:
        """What would help; a node without such cards explains less than one that has some."""
        return Remedy(self.reason.remedy, rank=Rank.ABSENCE if self.reason == NO_CARDS else Rank.CAUSE)


class CardRequest(Protocol):
    """What a pod asks of the cards of one model: hashable, so that pods that ask for the same share the answers."""

    @property
    def model(self) -> str: ...

    @property
    def lock(self) -> str:
        """The lock of a node under which its device plugin serves such pods."""

    def fit(
        self, cards: NodeCards, taken: CardColumns, rules_of: RulesOf, order: Order = None
    ) -> Fit | CardShortage:
        """The shares that a pod gets where so much is taken: of the first cards that serve, in this order."""

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | CardShortage | None:
        """As `fit` of cards that would serve if they were empty, without shares; none where it takes more to tell."""

    def annotations(self, shares: Shares, node: str, now: float) -> dict[str, str]:
        """What its device plugin has to know of the shares."""
