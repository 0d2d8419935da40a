"""The request of a pod by `volcano.sh/vgpu-*`, and the cards that its containers get (spec 04 10.3, 10.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.api import card_names
from stromboli.api import card_reasons as reasons
from stromboli.model.cards.card import ALL_CORES, Card, Slot
from stromboli.model.cards.pod_cards import CardShare, ContainerRequest, encoded_shares, group_key
from stromboli.plugins.deviceshare.card_fits import CardShortage, Fit, Order, Shares

if TYPE_CHECKING:
    from stromboli.model.cards.node_cards import CardColumns, NodeCards
    from stromboli.model.task import Task


MAX_LISTED = 256
"""Maximum uuids and types that the annotations of a pod may list in total."""
_LISTS = (
    card_names.VGPU_USE_UUID,
    card_names.VGPU_AVOID_UUID,
    card_names.USE_GPU_TYPE,
    card_names.AVOID_GPU_TYPE,
)


@dataclass(frozen=True, slots=True)
class CardChoice:
    """The cards that a pod may have, by its annotations."""

    mode: str | None = None
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    use_types: tuple[str, ...] | None = None
    avoid_types: tuple[str, ...] = ()
    group: str = ""
    """Its PodGroup, if no two of its pods may share a card."""

    def refusal(self, card: Card) -> CardShortage | None:
        """Why a pod may not have a card, independent of what is free on it."""
        if (self.use_uuids and card.uuid not in self.use_uuids) or card.uuid in self.avoid_uuids:
            return CardShortage(reasons.OTHER_CARD)
        if not card.healthy:
            return CardShortage(reasons.UNHEALTHY)
        if not self._type_allowed(card.type):
            return CardShortage(reasons.OTHER_TYPE, self.types)
        return None

    def _type_allowed(self, type_: str) -> bool:
        upper = type_.upper()
        if card_names.NVIDIA not in type_:
            return False
        if self.use_types is not None:
            return any(part in upper for part in self.use_types)
        return not any(part in upper for part in self.avoid_types)

    @property
    def types(self) -> str:
        """The types as reasons name them."""
        if self.use_types is not None:
            return " or ".join(self.use_types)[:63]
        return (
            f"NVIDIA other than {', '.join(self.avoid_types)[:63]}" if self.avoid_types else card_names.NVIDIA
        )


_ANY_CARD = CardChoice()
_SERVED = Fit(())


def listed_cards(task: Task) -> int:
    """The number of uuids and types of cards that the annotations of a pod list."""
    return sum(task.annotations[key].count(",") + 1 for key in _LISTS if key in task.annotations)


def card_choice(task: Task) -> CardChoice:
    """The choice of cards by the annotations of a pod."""
    annotations = task.annotations
    spread = annotations.get(card_names.VGPU_GROUP_POLICY) == card_names.SPREAD
    use_types = annotations.get(card_names.USE_GPU_TYPE)
    avoid_types = annotations.get(card_names.AVOID_GPU_TYPE)
    return CardChoice(
        annotations.get(card_names.VGPU_MODE),
        _uuids(annotations.get(card_names.VGPU_USE_UUID, "")),
        _uuids(annotations.get(card_names.VGPU_AVOID_UUID, "")),
        None if use_types is None else tuple(use_types.upper().split(",")),
        () if avoid_types is None else tuple(avoid_types.upper().split(",")),
        group_key(task) if spread else "",
    )


def _uuids(text: str) -> tuple[str, ...]:
    return tuple(uuid for part in text.split(",") if (uuid := part.strip()))


def _cores_serve(asked: int, taken: int, sharers: int) -> bool:
    """Whether a card has the cores: all of them only if it is not shared, and none if all are granted."""
    return (
        taken + asked <= ALL_CORES
        and not (asked == ALL_CORES and sharers)
        and bool(asked or taken < ALL_CORES)
    )


@dataclass(frozen=True, slots=True)
class VgpuRequest:
    """All inputs to the choice of cards for a pod."""

    containers: tuple[ContainerRequest, ...]
    choice: CardChoice
    rules: frozenset[int]
    """The exclusive rules that the pod matches."""
    policy: str
    names: tuple[str, str]
    """The resources of memory and cores, for reasons."""
    rules_of: Callable[[Task], frozenset[int]] = field(compare=False)
    """The exclusive rules that another task matches."""

    @property
    def model(self) -> str:
        return card_names.VGPU

    @property
    def lock(self) -> str:
        return card_names.VGPU_LOCK

    def fit(self, cards: NodeCards, taken: CardColumns, order: Order = None) -> Fit | CardShortage:
        if self.choice.mode is not None and self.choice.mode != cards.mode:
            return CardShortage(reasons.OTHER_MODE, self.choice.mode[:63])
        trial = VgpuTrial(self, cards, taken, order)
        shares = []
        for container in self.containers:
            chosen = trial.take(container)
            if isinstance(chosen, CardShortage):
                return chosen
            shares.append(chosen)
        return Fit(tuple(shares), trial.score)

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | CardShortage | None:
        """The quick result for one container that accepts any cards, if these are equal, whole and not scored."""
        if not (self._is_plain and cards.are_alike and cards.mode == card_names.HAMI_CORE):
            return None
        (container,), card = self.containers, cards.cards[0]
        memory, asked = container.memory_of(card), container.cores
        if memory > card.memory or asked > ALL_CORES or not 0 < container.cards <= len(cards.cards):
            return None
        lacks_memory = lacks_cores = False
        serving = 0
        for sharers, used, cores in zip(taken.sharers, taken.memory, taken.cores, strict=True):
            if sharers >= card.count:
                continue
            if used + memory > card.memory:
                lacks_memory = True
            elif not _cores_serve(asked, cores, sharers):
                lacks_cores = True
            else:
                serving += 1
                if serving == container.cards:
                    return _SERVED
        if lacks_memory:
            return CardShortage(reasons.MEMORY, f"{memory} of {self.names[0]}")
        return (
            CardShortage(reasons.CORES, f"{asked} of {self.names[1]}")
            if lacks_cores
            else CardShortage(reasons.SHARERS)
        )

    @property
    def _is_plain(self) -> bool:
        choosy = self.policy == card_names.BINPACK or bool(self.rules) or self.choice != _ANY_CARD
        return not choosy and len(self.containers) == 1

    def annotations(self, shares: Shares, node: str, now: float) -> dict[str, str]:
        ids = ";".join(encoded_shares(container, card_names.NVIDIA) for container in shares)
        seconds = str(int(now))
        return {
            card_names.VGPU_NODE: node,
            card_names.VGPU_TIME: seconds,
            card_names.VGPU_IDS: ids,
            card_names.VGPU_IDS_TO_ALLOCATE: ids,
            card_names.BIND_PHASE: card_names.ALLOCATING,
            card_names.BIND_TIME: seconds,
        }


# -- cards for one container after the other, on one node


class VgpuTrial:
    """The cards of a node while the containers of a pod are given their shares, one after the other."""

    def __init__(
        self,
        request: VgpuRequest,
        cards: NodeCards,
        taken: CardColumns,
        order: Order = None,
    ):
        self._request = request
        self._node = cards
        self._taken = taken
        self._given_order = order
        self._sharers, self._memory, self._cores = [*taken.sharers], [*taken.memory], [*taken.cores]
        self._slots: dict[int, list[Slot]] = {}
        """The slots of MIG cards that its containers were given."""
        self.score = 0.0
        """The utilization of its cards in percent, summed. # quirk: spec 04 10.3: spreading scores nothing."""

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
        """What is in use on a card that would serve if it were empty."""
        memory, cores = self._request.names
        if self._reserved(index):
            return CardShortage(reasons.EXCLUSIVE)
        if self._sharers[index] >= card.count:
            return CardShortage(reasons.SHARERS)
        if self._request.choice.group and self._has_group(index):
            return CardShortage(reasons.SAME_GROUP)
        if card.memory - self._memory[index] < container.memory_of(card):
            return CardShortage(reasons.MEMORY, f"{container.memory_of(card)} of {memory}")
        if not _cores_serve(container.cores, self._cores[index], self._sharers[index]):
            return CardShortage(reasons.CORES, f"{container.cores} of {cores}")
        if self._node.mode == card_names.MIG and self._free_slot(index, card, container) is None:
            return CardShortage(reasons.SLOTS, f"{container.memory_of(card)} of {memory}")
        return None

    def _reserved(self, index: int) -> bool:
        """Whether a pod has the card with which this one shares a rule; MIG isolates pods by itself."""
        rules = self._request.rules
        if not rules or self._node.mode != card_names.HAMI_CORE:
            return False
        return any(rules & self._request.rules_of(holder) for holder in self._taken.holders[index])

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
"""If several resources of cards are short, the last one in this order is reported: usually memory."""
