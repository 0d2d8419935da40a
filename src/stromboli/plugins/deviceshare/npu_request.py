"""The request of a pod for Ascend NPUs that HAMi shares, and the cards that it gets (spec 04 10.6)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from stromboli.api import card_names
from stromboli.api import card_reasons as reasons
from stromboli.model.cards.card import ALL_CORES, Card
from stromboli.model.cards.device_config import NpuConfig
from stromboli.model.cards.pod_cards import CardShare, encoded_shares, whole_amount
from stromboli.plugins.deviceshare.card_fits import CardShortage, Fit, Order, Shares

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.cards.node_cards import CardColumns, NodeCards

NETWORKED = "Ascend910"
"""Prefixes of models whose cards should be taken from one network."""
NETWORK_WEIGHT = 10


class NpuContainer(msgspec.Struct, frozen=True):
    """The request of a container on each of its NPUs; no memory means all of it."""

    cards: int
    memory: int
    cores: int


def npu_containers(spec: PodSpec, npu: NpuConfig) -> tuple[NpuContainer, ...]:
    """The requests of the regular containers that have a limit of NPUs or of their memory."""
    containers = []
    for container in spec.containers:
        limits, requests = container.resources.limits, container.resources.requests
        if npu.resource_name in limits or npu.memory_name in limits:
            memory = limits.get(npu.memory_name, requests.get(npu.memory_name))
            cores = limits.get(npu.cores_name, requests.get(npu.cores_name))
            count = whole_amount(limits[npu.resource_name]) if npu.resource_name in limits else 1
            containers.append(NpuContainer(count, whole_amount(memory), whole_amount(cores)))
    return tuple(containers)


class _RuntimeInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The JSON of a share for the device plugin."""

    UUID: str = ""
    temp: str = ""
    memory: int = 0
    core: int = 0


@dataclass(frozen=True, slots=True)
class NpuRequest:
    """All inputs to the choice of NPUs for a pod."""

    npu: NpuConfig
    containers: tuple[NpuContainer, ...]
    hami_core: bool
    """Whether the pod shares cores and memory by software, in any amounts, instead of by templates."""
    policy: str

    @property
    def model(self) -> str:
        return self.npu.word

    @property
    def lock(self) -> str:
        return card_names.NPU_LOCK

    def fit(self, cards: NodeCards, taken: CardColumns, order: Order = None) -> Fit | CardShortage:
        if self.hami_core and cards.mode != card_names.HAMI_CORE:
            return CardShortage(reasons.OTHER_MODE, card_names.HAMI_CORE)
        healthy = [card for card in cards.cards if card.healthy]
        if not healthy:
            return CardShortage(reasons.UNHEALTHY)
        best_first = (
            sorted(healthy, key=lambda card: -self._worth(card, taken))
            if order is None
            else [cards.cards[index] for index in order if cards.cards[index].healthy] or healthy
        )
        chosen: list[list[Card]] = []
        shares = []
        for container in self.containers:
            memory = self._memory(container, best_first[0])
            if isinstance(memory, CardShortage):
                return memory
            left = [card for card in best_first if not any(card in others for others in chosen)]
            picked = self._pick(container, memory, left, taken)
            if isinstance(picked, CardShortage):
                return picked
            chosen.append(picked)
            shares.append(tuple(CardShare(card.uuid, memory, container.cores) for card in picked))
        return Fit(tuple(shares), self._score([cards[0] for cards in chosen if cards], taken))

    def _memory(self, container: NpuContainer, card: Card) -> int | CardShortage:
        """The memory that a container gets of a card: rounded up to a template, unless shared by software."""
        memory = container.memory or card.memory
        if self.hami_core:
            return memory
        template = self.npu.template(memory)
        if template is None:
            return CardShortage(reasons.CARD_TOO_SMALL, f"{memory} of {self.npu.memory_name}")
        if container.cards > 1 and template.memory != self.npu.memory_allocatable:
            return CardShortage(reasons.PARTS_OF_SEVERAL)
        return template.memory

    def _pick(
        self, container: NpuContainer, memory: int, cards: list[Card], taken: CardColumns
    ) -> list[Card] | CardShortage:
        serving = [card for card in cards if self._serves(card, container, memory, taken)]
        if len(serving) < container.cards:
            return CardShortage(
                reasons.IDLE_CARDS, f"{container.cards} of {self.model} with {memory} of memory"
            )
        if self._by_network(cards):
            sizes = Counter(card.network for card in serving)
            serving.sort(key=lambda card: (-sizes[card.network], card.network or 0))
        return serving[: container.cards]

    def _serves(self, card: Card, container: NpuContainer, memory: int, taken: CardColumns) -> bool:
        sharers, used = taken.sharers[card.index], taken.cores[card.index]
        cores = ALL_CORES if self.hami_core else card.cores
        alone = cores == ALL_CORES and container.cores == ALL_CORES and sharers > 0
        full = cores != 0 and used == cores and container.cores == 0
        return (
            sharers < card.count
            and card.memory - taken.memory[card.index] >= memory
            and cores - used >= container.cores
            and not alone
            and not full
        )

    def _by_network(self, cards: list[Card]) -> bool:
        return self.model.startswith(NETWORKED) and all(card.network is not None for card in cards)

    def _worth(self, card: Card, taken: CardColumns) -> float:
        if self.policy == card_names.BINPACK and card.memory:
            return 100 * (taken.memory[card.index] / card.memory)
        return 100.0 if self.policy == card_names.SPREAD and not taken.sharers[card.index] else 0.0

    def _score(self, cards: list[Card], taken: CardColumns) -> float:
        """The score by the first card of each container, as in Volcano; cards of one network score higher."""
        score = sum(self._worth(card, taken) for card in cards)
        if cards and self._by_network(cards):
            score += NETWORK_WEIGHT * max(Counter(card.network for card in cards).values()) / len(cards)
        return score

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | CardShortage | None:
        return None

    def annotations(self, shares: Shares, node: str, now: float) -> dict[str, str]:
        ids = "".join(f"{encoded_shares(container, self.model)};" for container in shares)
        runtime = [self._runtime_info(share) for container in shares for share in container]
        seconds = str(int(now))
        return {
            card_names.NPU_TO_ALLOCATE.format(self.model): ids,
            card_names.NPU_ALLOCATED.format(self.model): ids,
            card_names.NPU_PREDICATE_TIME: seconds,
            card_names.NPU_RUNTIME.format(self.model): msgspec.json.encode(runtime).decode(),
            card_names.NPU_NODE: node,
            card_names.NPU_TIME: seconds,
            card_names.NPU_BIND_PHASE: card_names.ALLOCATING,
            card_names.NPU_BIND_TIME: seconds,
        }

    def _runtime_info(self, share: CardShare) -> _RuntimeInfo:
        if self.hami_core:
            return _RuntimeInfo(share.card, "", share.memory, share.cores)
        template = self.npu.template(share.memory)
        return _RuntimeInfo(share.card, template.name if template else "")
