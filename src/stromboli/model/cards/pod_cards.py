"""The cards that pods request, and the shares that they hold by grant or by annotations (spec 04 10.3-10.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from stromboli.api import card_names, names
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.model.cards.card import MAX_OF_A_CARD
from stromboli.model.ledgers import Grant
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.api.types.meta import Quantity
    from stromboli.api.types.pod import PodSpec, Resources
    from stromboli.model.cards.card import Card
    from stromboli.model.cards.device_config import NvidiaConfig
    from stromboli.model.task import Task


# -- the shares that a task is granted


class CardShare(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of a card, or of a slot of a card, for a container."""

    card: str
    """The card as annotations name it: its uuid, `uuid[group-position]` for a MIG slot, its index with gpu-share."""
    memory: int = 0
    """Memory, in the unit of the node's registration: usually MiB."""
    cores: int = 0
    """Percent of the card's compute cores."""


class CardGrant(Grant, frozen=True):
    """Shares of cards, and how their device plugin is notified of them."""

    model: str
    """The kind of cards: `hamivgpu`, `GpuShare`, or the common word of an NPU, such as `Ascend310P`."""
    containers: tuple[tuple[CardShare, ...], ...]
    """The shares of each container that requests any, in the order of containers."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Keys and values that the pod gets with its binding: the device plugin finds the shares there."""
    lock: str = ""
    """The annotation of the node that is to be set to the time (RFC 3339) before the bind; empty: none.

    The device plugin removes it when it has allocated the shares. While another pod's lock is younger than
    `LOCK_SECONDS`, the bind has to wait.
    """

    @property
    def needs_write(self) -> bool:
        return bool(self.lock)


LOCK_SECONDS = 300
"""An older lock of a node is stale, and is replaced."""


def lock_counts(since: str, now: float) -> bool:
    """Whether a node's lock of this time (RFC 3339) is valid; an invalid time counts as stale."""
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        return False
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return abs(now - moment.timestamp()) < LOCK_SECONDS


# -- the shares that pods request and hold


MAX_SHARES = 1024
"""Maximum shares that are read from an annotation of a pod."""
_NOT_SHOWN = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING)


def limit_names(spec: PodSpec) -> Iterator[str]:
    """The resources that containers of a pod have limits for."""
    for container in (*spec.containers, *spec.init_containers):
        yield from container.resources.limits


def whole_amount(quantity: Quantity | None) -> int:
    """A quantity as a whole number of 32 bits; 0 if it is missing or invalid."""
    try:
        value = exact(quantity) if quantity is not None else 0
    except QuantityError:
        return 0
    return min(int(value), MAX_OF_A_CARD) if value == int(value) and value >= 0 else 0


UNSET = 101
"""The percentage of memory that means none."""


class ContainerRequest(Struct, frozen=True):
    """The request of a container on each of its vGPU cards."""

    cards: int
    memory: int
    percent: int = UNSET
    cores: int = 0

    def memory_of(self, card: Card) -> int:
        return card.memory * self.percent // 100 if self.percent != UNSET else self.memory


def container_requests(spec: PodSpec, config: NvidiaConfig) -> tuple[ContainerRequest, ...]:
    """The requests of the regular containers that have a limit of vGPU cards or of their memory."""
    return tuple(
        _container_request(container.resources, config)
        for container in spec.containers
        if {config.count_name, config.memory_name} & container.resources.limits.keys()
    )


def _container_request(resources: Resources, config: NvidiaConfig) -> ContainerRequest:
    amounts = {**resources.requests, **resources.limits}
    cards = whole_amount(resources.limits.get(config.count_name, 1))
    memory, cores = (whole_amount(amounts.get(name)) for name in (config.memory_name, config.cores_name))
    percent = whole_amount(amounts.get(config.percentage_name, UNSET))
    return ContainerRequest(cards, memory, 100 if percent == UNSET and memory == 0 else percent, cores)


def asked_of_gpu_share(spec: PodSpec, name: str) -> int:
    """The limit of a pod: of all containers together, or of the largest init container."""
    together = sum(whole_amount(container.resources.limits.get(name)) for container in spec.containers)
    first = [whole_amount(container.resources.limits.get(name)) for container in spec.init_containers]
    return min(max([together, *first]), MAX_OF_A_CARD)


def group_key(task: Task) -> str:
    """The PodGroup that a task belongs to, for the policy that its pods share no card; empty: none."""
    annotations = task.annotations
    name = annotations.get(names.GROUP_NAME) or annotations.get(card_names.GROUP_NAME_ALIAS, "")
    if name:
        return f"{task.namespace}/{name}"
    return task.job.key if task.job is not None else ""


def held_shares(task: Task, model: str) -> Iterable[CardShare]:
    """What a task holds of the cards of a model: what it was granted, or what its pod shows once it is bound."""
    shown = _shown_shares(task, model)
    if task.status in _NOT_SHOWN or shown is None:
        return [
            share
            for grant in task.grants
            if isinstance(grant, CardGrant) and grant.model == model
            for shares in grant.containers
            for share in shares
        ]
    return islice(shown, MAX_SHARES)


def _shown_shares(task: Task, model: str) -> Iterator[CardShare] | None:
    annotations = task.annotations
    if model == card_names.GPU_SHARE:
        indices = annotations.get(card_names.GPU_INDEX)
        return None if indices is None else _indexed_shares(task.shape.spec, indices)
    key = card_names.VGPU_IDS if model == card_names.VGPU else card_names.NPU_ALLOCATED.format(model)
    text = annotations.get(key)
    return None if text is None else _listed_shares(text)


def _indexed_shares(spec: PodSpec, indices: str) -> Iterator[CardShare]:
    """Each card of the list has all of the pod's memory."""
    memory = asked_of_gpu_share(spec, card_names.GPU_MEMORY)
    for index in indices.split(","):
        if index.isascii() and index.isdecimal() and len(index) <= 10:
            yield CardShare(str(int(index)), memory)


def _listed_shares(text: str) -> Iterator[CardShare]:
    """Entries `id,type,memory,cores`, ended by colons, with semicolons between containers; invalid ones are skipped."""
    for entry in text.replace(";", ":").split(":"):
        fields = entry.split(",")
        if len(fields) >= 4 and _is_count(fields[2]) and _is_count(fields[3]):
            yield CardShare(fields[0], int(fields[2]), int(fields[3]))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < 2**32


def encoded_shares(shares: Iterable[CardShare], type_: str) -> str:
    """Shares of a container as annotations list them: `uuid,NVIDIA,6000,50:` for each."""
    return "".join(f"{share.card},{type_},{share.memory},{share.cores}:" for share in shares)


def matches_labels(labels: Mapping[str, str], rule: Mapping[str, str]) -> bool:
    """Whether labels have all pairs of a rule."""
    return all(labels.get(key) == value for key, value in rule.items())
