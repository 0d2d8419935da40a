"""Which cards of a node the containers of a pod get, one container after the other (spec 04 10.3, 10.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.api import card_names
from stromboli.api import card_reasons as reasons
from stromboli.model.cards.card import ALL_CORES, Card, Slot
from stromboli.model.cards.pod_cards import CardShare, group_key
from stromboli.plugins.deviceshare.card_fit import CardShortage, Order, RulesOf

if TYPE_CHECKING:
    from stromboli.model.cards.node_cards import CardColumns, NodeCards
    from stromboli.plugins.deviceshare.vgpu_request import ContainerRequest, VgpuRequest


class VgpuTrial:
    """The cards of a node while the containers of a pod are given their shares, one after the other."""

    def __init__(
        self,
        request: VgpuRequest,
        cards: NodeCards,
        taken: CardColumns,
        rules_of: RulesOf,
        order: Order = None,
    ):
        self._request = request
        self._node = cards
        self._taken = taken
        self._rules_of = rules_of
        self._given_order = order
        self._sharers, self._memory, self._cores = [*taken.sharers], [*taken.memory], [*taken.cores]
        self._slots: dict[int, list[Slot]] = {}
        """The slots of MIG cards that its containers have got."""
        self.score = 0.0
        """How full its cards are, in percent, all added. # quirk: spec 04 10.3: to spread is worth nothing."""

    def take(self, container: ContainerRequest) -> tuple[CardShare, ...] | CardShortage:
        """The shares of a container: of the first cards that serve, in the order of the policy."""
        chosen: list[CardShare] = []
        never: list[CardShortage] = []
        short: list[CardShortage] = []
        for index in self._order() if container.cards else ():
            card = self._node.cards[index]
            if problem := self._request.choice.refusal(card) or self._too_small(card, container):
                never.append(problem)
            elif problem := self._shortage(index, card, container):
                short.append(problem)
            else:
                chosen.append(self._give(index, card, container))
                if len(chosen) == container.cards:
                    return tuple(chosen)
        if not container.cards:
            return ()
        if len(chosen) + len(short) < container.cards:
            return never[0] if never and not (chosen or short) else self._few(container)
        return max(short, key=lambda shortage: _CLOSENESS.index(shortage.reason))

    def _few(self, container: ContainerRequest) -> CardShortage:
        return CardShortage(reasons.FEW_CARDS, f"the {container.cards} of a container")

    def _order(self) -> Sequence[int]:
        if self._given_order is not None:
            return self._given_order
        indices = range(len(self._node.cards))
        if self._request.policy == card_names.BINPACK:
            return sorted(indices, key=lambda index: (-self._memory[index], index))
        if self._request.policy == card_names.SPREAD:
            return sorted(indices, key=lambda index: (self._sharers[index], index))
        return list(reversed(indices))

    def _too_small(self, card: Card, container: ContainerRequest) -> CardShortage | None:
        memory, cores = self._request.names
        if container.memory_of(card) > card.memory:
            return CardShortage(reasons.CARD_TOO_SMALL, f"{container.memory} of {memory}")
        if container.cores > ALL_CORES:
            return CardShortage(reasons.CARD_TOO_SMALL, f"{container.cores} of {cores}")
        return None

    def _shortage(self, index: int, card: Card, container: ContainerRequest) -> CardShortage | None:
        """What is not free on a card that would serve if it were empty."""
        memory, cores = self._request.names
        if self._reserved(index):
            return CardShortage(reasons.EXCLUSIVE)
        if self._sharers[index] >= card.count:
            return CardShortage(reasons.SHARERS)
        if self._request.choice.group and self._has_group(index):
            return CardShortage(reasons.SAME_GROUP)
        if card.memory - self._memory[index] < container.memory_of(card):
            return CardShortage(reasons.MEMORY, f"{container.memory_of(card)} of {memory}")
        used = self._cores[index]
        full = container.cores == ALL_CORES and self._sharers[index] > 0
        if used + container.cores > ALL_CORES or full or (used == ALL_CORES and not container.cores):
            return CardShortage(reasons.CORES, f"{container.cores} of {cores}")
        if self._node.mode == card_names.MIG and self._free_slot(index, card, container) is None:
            return CardShortage(reasons.SLOTS, f"{container.memory_of(card)} of {memory}")
        return None

    def _reserved(self, index: int) -> bool:
        """Whether a pod has the card with which this one shares a rule; MIG isolates pods by itself."""
        rules = self._request.rules
        if not rules or self._node.mode != card_names.HAMI_CORE:
            return False
        return any(rules & self._rules_of(holder) for holder in self._taken.holders[index])

    def _has_group(self, index: int) -> bool:
        group = self._request.choice.group
        return any(group_key(holder) == group for holder in self._taken.holders[index])

    def _give(self, index: int, card: Card, container: ContainerRequest) -> CardShare:
        name, memory = card.uuid, container.memory_of(card)
        held = memory
        if self._node.mode == card_names.MIG and (slot := self._free_slot(index, card, container)):
            name = slot.name(card.uuid)
            held = (card.slot_memory(slot) or 0) // self._node.memory_factor
            self._slots.setdefault(index, []).append(slot)
        self._sharers[index] += 1
        self._memory[index] += held
        self._cores[index] += container.cores
        if self._request.policy == card_names.BINPACK and card.memory:
            self.score += 100 * (self._memory[index] / card.memory)
        return CardShare(name, memory, container.cores)

    def _free_slot(self, index: int, card: Card, container: ContainerRequest) -> Slot | None:
        """The smallest free slot that is large enough: of the geometry in use or, on an empty card, of the first."""
        taken = {*self._taken.slots[index], *self._slots.get(index, ())}
        groups = {slot.group for slot in taken}
        need = container.memory_of(card) * self._node.memory_factor
        for geometry in card.geometries:
            if groups and geometry.group not in groups:
                continue
            sizes, position = [], 0
            for instance in geometry.instances:
                sizes.append((instance.memory, position, instance.count))
                position += instance.count
            for memory, first, count in sorted(sizes, key=lambda size: size[0]):
                free = _first_free(geometry.group, first, count, taken)
                if memory >= need and free is not None:
                    return free
        return None


def _first_free(group: str, first: int, count: int, taken: set[Slot]) -> Slot | None:
    for position in range(first, first + min(count, len(taken) + 1)):
        if (slot := Slot(group, position)) not in taken:
            return slot
    return None


_CLOSENESS = (
    reasons.EXCLUSIVE,
    reasons.SAME_GROUP,
    reasons.SHARERS,
    reasons.SLOTS,
    reasons.CORES,
    reasons.MEMORY,
)
"""Of what several cards are short, the last of these is told: mostly it is memory."""
