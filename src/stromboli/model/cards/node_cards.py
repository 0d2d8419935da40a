"""The cards of one node and what is in use of each: now, and once all leaving tasks have left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from stromboli.api import card_names
from stromboli.model.cards.card import Slot, parse_share_name
from stromboli.model.cards.pod_cards import held_shares

if TYPE_CHECKING:
    from stromboli.model.cards.card import Card
    from stromboli.model.cards.pod_cards import CardShare
    from stromboli.model.cards.registrations import Registration
    from stromboli.model.task import Task


Key = TypeVar("Key")


class CardColumns:
    """What is in use of the cards of a node, by the index of the card."""

    __slots__ = ("cores", "holders", "memory", "sharers", "slots")

    def __init__(self, count: int):
        self.sharers = [0] * count
        """The number of granted shares."""
        self.memory = [0] * count
        self.cores = [0] * count
        self.slots: list[dict[Slot, int]] = [{} for _ in range(count)]
        """The granted slots of MIG cards, and how often: once, unless another scheduler granted one again."""
        self.holders: list[dict[Task, int]] = [{} for _ in range(count)]
        """The tasks that hold shares, and the number of shares."""

    def add(self, task: Task, share: PlacedShare, sign: int) -> None:
        """Count a share, or release it."""
        card, slot, memory, cores = share
        self.sharers[card] += sign
        self.memory[card] += sign * memory
        self.cores[card] += sign * cores
        _count(self.holders[card], task, sign)
        if slot is not None:
            _count(self.slots[card], slot, sign)

    def copy(self) -> CardColumns:
        """The same for trials."""
        copied = CardColumns(len(self.sharers))
        copied.sharers, copied.memory, copied.cores = [*self.sharers], [*self.memory], [*self.cores]
        copied.slots = [{**slots} for slots in self.slots]
        copied.holders = [{**holders} for holders in self.holders]
        return copied


def _count(counts: dict[Key, int], key: Key, sign: int) -> None:
    total = counts.get(key, 0) + sign
    if total:
        counts[key] = total
    else:
        del counts[key]


class PlacedShare(NamedTuple):
    """A share of a card of this node."""

    card: int
    slot: Slot | None
    memory: int
    cores: int


class PlacedTask(NamedTuple):
    """The shares that were counted for a task, and whether it is leaving."""

    leaving: bool
    shares: tuple[PlacedShare, ...]


class NodeCards:
    """The cards that a node has of one model."""

    def __init__(self, registration: Registration, memory_factor: int = 1):
        self.cards: tuple[Card, ...] = registration.cards
        self.model = registration.model
        self.mode = registration.mode
        self.memory_factor = max(memory_factor, 1)
        """The units of a slot's memory per unit in which pods request memory."""
        self.now = CardColumns(len(self.cards))
        """What is in use, including leaving tasks and promises."""
        self.later = CardColumns(len(self.cards))
        """What will be in use once leaving tasks have left."""
        self.leaving = 0
        """The number of leaving tasks with shares; without any, `now` equals `later`."""
        self.are_alike = _are_alike(self.cards)
        """Whether all cards are healthy and of one kind, so that they are interchangeable."""
        self._index = {card.uuid: card.index for card in self.cards}
        self._placed: dict[Task, PlacedTask] = {}

    def add(self, task: Task, leaving: bool) -> bool:
        """Count what a task holds here; true if it holds anything."""
        shares = tuple(self.placed_shares(held_shares(task, self.model)))
        if not shares:
            return False
        self._placed[task] = placed = PlacedTask(leaving, shares)
        self._count(task, placed, 1)
        return True

    def remove(self, task: Task) -> bool:
        """Release exactly what was counted for a task; true if that was anything."""
        placed = self._placed.pop(task, None)
        if placed is None:
            return False
        self._count(task, placed, -1)
        return True

    def shares_of(self, task: Task) -> tuple[PlacedShare, ...]:
        """What is counted for a task."""
        placed = self._placed.get(task)
        return placed.shares if placed is not None else ()

    def given_to(self, task: Task) -> tuple[int, int]:
        """The memory and the cores that a task was given, on all its cards together, as annotations count them."""
        held = [share for share in held_shares(task, self.model) if self._card(share.card) is not None]
        return sum(share.memory for share in held), sum(share.cores for share in held)

    def _card(self, name: str) -> int | None:
        return self._index.get(parse_share_name(name)[0])

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that hold shares here."""
        return tuple(self._placed)

    def _count(self, task: Task, placed: PlacedTask, sign: int) -> None:
        self.leaving += sign * placed.leaving
        for share in placed.shares:
            self.now.add(task, share, sign)
            if not placed.leaving:
                self.later.add(task, share, sign)

    def placed_shares(self, shares: Iterable[CardShare]) -> Iterator[PlacedShare]:
        """The shares of registered cards; a slot has its own memory, independent of the request."""
        for share in shares:
            uuid, slot = parse_share_name(share.card)
            index = self._index.get(uuid)
            if index is not None:
                yield self._placed_share(index, slot, share.memory, share.cores)

    def _placed_share(self, index: int, slot: Slot | None, memory: int, cores: int) -> PlacedShare:
        size = self.cards[index].slot_memory(slot) if slot and self.mode == card_names.MIG else None
        if size is None:
            return PlacedShare(index, None, memory, cores)
        return PlacedShare(index, slot, size // self.memory_factor, cores)


def _are_alike(cards: tuple[Card, ...]) -> bool:
    kinds = {(card.healthy, card.type, card.memory, card.count) for card in cards}
    return len(kinds) == 1 and cards[0].healthy
