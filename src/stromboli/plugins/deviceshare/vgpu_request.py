"""What a pod asks of the GPUs of a node by `volcano.sh/vgpu-*`, and which it gets (spec 04 10.3, 10.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.api import card_names
from stromboli.api import card_reasons as reasons
from stromboli.api.types.pod import PodSpec
from stromboli.model.cards.card import ALL_CORES, Card
from stromboli.model.cards.pod_cards import encoded_shares, group_key, whole_amount
from stromboli.plugins.deviceshare.card_fit import CardShortage, Fit, Order, RulesOf, Shares
from stromboli.plugins.deviceshare.vgpu_trial import VgpuTrial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.model.cards.device_config import NvidiaConfig
    from stromboli.model.cards.node_cards import CardColumns, NodeCards
    from stromboli.model.task import Task

UNSET = 101
"""The percentage of memory that stands for none."""
ALL_OF_IT = 100
MOST_LISTED = 256
"""Uuids and types that the annotations of a pod may list in all."""
_LISTS = (
    card_names.VGPU_USE_UUID,
    card_names.VGPU_AVOID_UUID,
    card_names.USE_GPU_TYPE,
    card_names.AVOID_GPU_TYPE,
)


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What a container asks for on each of so many cards."""

    cards: int
    memory: int
    percent: int = UNSET
    cores: int = 0

    def memory_of(self, card: Card) -> int:
        return card.memory * self.percent // 100 if self.percent != UNSET else self.memory


def container_requests(spec: PodSpec, config: NvidiaConfig) -> tuple[ContainerRequest, ...]:
    """Of each regular container with a limit of cards or of memory."""
    return tuple(
        _container_request(container.resources.limits, container.resources.requests, config)
        for container in spec.containers
        if {config.count_name, config.memory_name} & container.resources.limits.keys()
    )


def _container_request(
    limits: Mapping[str, str | int | float], requests: Mapping[str, str | int | float], config: NvidiaConfig
) -> ContainerRequest:
    def amount(name: str, default: int = 0) -> int:
        quantity = limits.get(name, requests.get(name)) if name else None
        return default if quantity is None else whole_amount(quantity)

    memory, percent = amount(config.memory_name), amount(config.percentage_name, UNSET)
    if percent == UNSET and memory == 0:
        percent = ALL_OF_IT
    cards = whole_amount(limits[config.count_name]) if config.count_name in limits else 1
    return ContainerRequest(cards, memory, percent, amount(config.cores_name))


@dataclass(frozen=True, slots=True)
class CardChoice:
    """Which cards a pod may have, by its annotations."""

    mode: str | None = None
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    use_types: tuple[str, ...] | None = None
    avoid_types: tuple[str, ...] = ()
    group: str = ""
    """Its PodGroup, if no two of its pods may share a card."""

    def refusal(self, card: Card) -> CardShortage | None:
        """Why a pod may not have a card, whatever is free on it."""
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
    """How many uuids and types of cards the annotations of a pod list."""
    return sum(task.annotations[key].count(",") + 1 for key in _LISTS if key in task.annotations)


def card_choice(task: Task) -> CardChoice:
    """What the annotations of a pod say about cards."""
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
    """Whether a card has the cores: all of them only where nobody shares it, and none where all are given."""
    return (
        taken + asked <= ALL_CORES
        and not (asked == ALL_CORES and sharers)
        and bool(asked or taken < ALL_CORES)
    )


@dataclass(frozen=True, slots=True)
class VgpuRequest:
    """All that the cards for a pod depend on."""

    containers: tuple[ContainerRequest, ...]
    choice: CardChoice = CardChoice()
    rules: frozenset[int] = frozenset()
    """The exclusive rules that the pod matches."""
    policy: str = ""
    names: tuple[str, str] = (card_names.VGPU_MEMORY, card_names.VGPU_CORES)
    """The resources of memory and cores, for reasons."""

    @property
    def model(self) -> str:
        return card_names.VGPU

    @property
    def lock(self) -> str:
        return card_names.VGPU_LOCK

    def fit(
        self, cards: NodeCards, taken: CardColumns, rules_of: RulesOf, order: Order = None
    ) -> Fit | CardShortage:
        if self.choice.mode is not None and self.choice.mode != cards.mode:
            return CardShortage(reasons.OTHER_MODE, self.choice.mode[:63])
        trial = VgpuTrial(self, cards, taken, rules_of, order)
        shares = []
        for container in self.containers:
            chosen = trial.take(container)
            if isinstance(chosen, CardShortage):
                return chosen
            shares.append(chosen)
        return Fit(tuple(shares), trial.score)

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | CardShortage | None:
        """Of a pod with one container that takes any cards, where these are alike, not cut, and scored by nobody."""
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
