"""What a pod asks of GPUs by `volcano.sh/gpu-memory` or `volcano.sh/gpu-number`, and which it gets (spec 04 10.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.api import card_names
from stromboli.api import card_reasons as reasons
from stromboli.model.cards.card_grants import CardShare
from stromboli.plugins.deviceshare.card_fit import Fit, Order, RulesOf, Shares, Shortage

if TYPE_CHECKING:
    from stromboli.model.cards.node_cards import CardColumns, NodeCards


@dataclass(frozen=True, slots=True)
class GpuShareRequest:
    """Memory on one card, or so many cards that nobody else has."""

    memory: int = 0
    number: int = 0

    @property
    def model(self) -> str:
        return card_names.GPU_SHARE

    @property
    def lock(self) -> str:
        return card_names.GPU_LOCK if self.memory else ""

    def fit(
        self, cards: NodeCards, taken: CardColumns, rules_of: RulesOf, order: Order = None
    ) -> Fit | Shortage:
        ordered = cards.cards if order is None else [cards.cards[index] for index in order]
        healthy = [card for card in ordered if card.healthy]
        if not healthy:
            return Shortage(reasons.UNHEALTHY)
        if self.number:
            return self._idle_cards([card.index for card in healthy if not taken.sharers[card.index]])
        for card in healthy:
            if card.memory - taken.memory[card.index] >= self.memory:
                return Fit(((CardShare(card.uuid, self.memory),),))
        return Shortage(reasons.MEMORY, f"{self.memory} of {card_names.GPU_MEMORY}")

    def _idle_cards(self, idle: list[int]) -> Fit | Shortage:
        if len(idle) < self.number:
            return Shortage(reasons.IDLE_CARDS, f"{self.number} of {card_names.GPU_NUMBER}")
        return Fit((tuple(CardShare(str(index)) for index in idle[: self.number]),))

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | Shortage | None:
        return None

    def annotations(self, shares: Shares, node: str, now: float) -> dict[str, str]:
        indices = ",".join(share.card for container in shares for share in container)
        return {card_names.PREDICATE_TIME: str(int(now * 10**9)), card_names.GPU_INDEX: indices}
