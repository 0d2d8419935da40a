"""The cards of a node, as registered by its device plugins: annotations and sizes (spec 04 10.3-10.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from stromboli.api import card_names, go_scalars
from stromboli.api.resources.quantity import QuantityError, whole
from stromboli.api.types.meta import ResourceList
from stromboli.api.types.node import Node as NodeObject
from stromboli.model.cards.card import MAX_OF_A_CARD, Card
from stromboli.model.cards.device_config import DeviceConfig, NpuConfig

MAX_CARDS = 1024
"""Maximum cards that a node may register of a model."""
MAX_REGISTRATION_LENGTH = 256 * 1024
"""Maximum characters of a registration: the limit of an API server for all annotations of an object."""
_FIELDS = 6
_SEPARATORS = frozenset(",:;[")
"""What separates shares and their parts in annotations of pods."""


class BadRegistration(Exception):
    """An invalid registration; the text is the reason."""


class Registration(NamedTuple):
    """The cards of one model on a node."""

    model: str
    """`hamivgpu`, `GpuShare`, or the common word of an NPU."""
    cards: tuple[Card, ...]
    mode: str = ""
    """How they are shared: `hami-core` or `mig`."""


class Models(NamedTuple):
    """The shared models of cards, and their configuration."""

    config: DeviceConfig
    vgpu: bool = False
    gpu_share: bool = False
    npus: bool = False


def read_registrations(node: NodeObject, models: Models) -> tuple[list[Registration], list[str]]:
    """The cards of a node by model, and the errors of invalid registrations."""
    registrations, problems = [], []
    for read in _readers(models):
        try:
            registration = read(node)
        except BadRegistration as problem:
            problems.append(str(problem))
        else:
            if registration is not None and registration.cards:
                registrations.append(registration)
    return registrations, problems


def _readers(models: Models) -> Iterator[Callable[[NodeObject], Registration | None]]:
    if models.vgpu:
        yield partial(_vgpu, models.config)
    if models.gpu_share:
        yield _gpu_share
    if models.npus:
        for npu in models.config.npus.configs:
            yield partial(_npus, npu, models.config.npus.hami_core)


# -- vGPU


def _vgpu(config: DeviceConfig, node: NodeObject) -> Registration | None:
    """Entries `uuid,count,memory,type,health,mode`, each ended by a colon; the mode of the last is the node's."""
    text = node.metadata.annotations.get(card_names.VGPU_REGISTER)
    sizes = node.status.allocatable
    needed = (card_names.VGPU_NUMBER, card_names.VGPU_CORES, card_names.VGPU_MEMORY)
    if text is None or any(_size(sizes, name) <= 0 for name in needed):
        return None
    cards: list[Card] = []
    mode = card_names.HAMI_CORE
    for index, entry in enumerate(_entries(text, card_names.VGPU_REGISTER)):
        fields = entry.split(",")
        if len(fields) < _FIELDS:
            raise BadRegistration(
                f"{card_names.VGPU_REGISTER}: {entry[:63]!r} has {len(fields)} fields, expected at least {_FIELDS}:"
                " uuid,count,memory,type,health,mode"
            )
        uuid, count, memory, type_, health, sharing = fields[:_FIELDS]
        geometries = config.nvidia.geometries_of(type_) if sharing == card_names.MIG else ()
        mode = card_names.MIG if geometries else card_names.HAMI_CORE
        numbers = [_number(text, card_names.VGPU_REGISTER) for text in (count, memory)]
        healthy = go_scalars.boolean(health) is True
        cards.append(Card(index, uuid, type_, healthy, numbers[1], numbers[0], geometries=geometries))
    _unique(cards, card_names.VGPU_REGISTER)
    return Registration(card_names.VGPU, tuple(cards), mode)


def _entries(text: str, key: str) -> list[str]:
    """The entries of a registration, each of which has a comma; without a colon there is none."""
    _bound(text, key)
    entries = [entry for entry in text.split(":") if "," in entry] if ":" in text else []
    if len(entries) > MAX_CARDS:
        raise BadRegistration(f"{key}: {len(entries)} cards, more than {MAX_CARDS}")
    return entries


# -- gpu-share


def _gpu_share(node: NodeObject) -> Registration | None:
    """The registered number of cards, with equal parts of the memory, without those listed as unhealthy."""
    capacity = node.status.capacity
    if card_names.GPU_MEMORY not in capacity or card_names.GPU_NUMBER not in capacity:
        return None
    memory, number = _size(capacity, card_names.GPU_MEMORY), _size(capacity, card_names.GPU_NUMBER)
    if number > MAX_CARDS:
        raise BadRegistration(f"{card_names.GPU_NUMBER}: {number} cards, more than {MAX_CARDS}")
    if number <= 0:
        return None
    ids = node.metadata.annotations.get(card_names.GPU_UNHEALTHY, "")
    _bound(ids, card_names.GPU_UNHEALTHY)
    unhealthy = {text for text in ids.split(",") if text}
    each = min(memory // number, MAX_OF_A_CARD)
    cards = [Card(i, str(i), healthy=str(i) not in unhealthy, memory=each) for i in range(number)]
    return Registration(card_names.GPU_SHARE, tuple(cards))


# -- NPUs


class _NpuDevice(msgspec.Struct, gc=False):
    """An entry of the registration that HAMi's device plugin writes; what Go would leave out has its zero value."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    health: bool = False
    custominfo: dict[str, Any] | None = None


def _npus(npu: NpuConfig, hami_core: bool, node: NodeObject) -> Registration | None:
    key = card_names.NPU_REGISTER.format(npu.word)
    text = node.metadata.annotations.get(key)
    if text is None or _size(node.status.allocatable, npu.resource_name) <= 0:
        return None
    _bound(text, key)
    try:
        devices = msgspec.json.decode(text, type=list[_NpuDevice] | None) or []
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRegistration(f"{key}: {str(error)[:200]}") from None
    if len(devices) > MAX_CARDS:
        raise BadRegistration(f"{key}: {len(devices)} cards, more than {MAX_CARDS}")
    cards = [_npu_card(index, device, key) for index, device in enumerate(devices)]
    _unique(cards, key)
    mode = node.metadata.annotations.get(card_names.NPU_NODE_MODE)
    by_software = hami_core if mode is None else mode == "true"
    return Registration(npu.word, tuple(cards), card_names.HAMI_CORE if by_software else "")


def _npu_card(index: int, device: _NpuDevice, key: str) -> Card:
    numbers = (device.count, device.devmem, device.devcore)
    if any(not 0 <= number <= MAX_OF_A_CARD for number in numbers):
        raise BadRegistration(f"{key}: a number below 0 or above {MAX_OF_A_CARD}")
    network = (device.custominfo or {}).get("NetworkID")
    known = isinstance(network, int | float) and not isinstance(network, bool) and abs(network) < 2**53
    return Card(
        index,
        device.id,
        device.type,
        device.health,
        device.devmem,
        device.count,
        device.devcore,
        network=int(network) if known and network is not None else None,
    )


# -- hostile input


def _bound(text: str, key: str) -> None:
    if len(text) > MAX_REGISTRATION_LENGTH:
        raise BadRegistration(f"{key}: {len(text)} characters, more than {MAX_REGISTRATION_LENGTH}")


def _number(text: str, key: str) -> int:
    """A whole number of a registration."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MAX_OF_A_CARD):
        raise BadRegistration(f"{key}: {text[:63]!r} is no whole number from 0 to {MAX_OF_A_CARD}")
    return int(text)


def _unique(cards: list[Card], key: str) -> None:
    """Refuse equal uuids, and uuids with a separator: annotations could not distinguish such cards."""
    known: set[str] = set()
    for card in cards:
        if not card.uuid or card.uuid in known or not _SEPARATORS.isdisjoint(card.uuid):
            raise BadRegistration(f"{key}: {card.uuid[:63]!r} is no uuid, or that of two cards")
        known.add(card.uuid)


def _size(sizes: ResourceList, name: str) -> int:
    try:
        return whole(sizes[name]) if name in sizes else 0
    except QuantityError:
        return 0  # the node itself is refused because of it
