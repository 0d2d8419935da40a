"""A card of a node as its device plugin registers it, and the slots into which a MIG card may be partitioned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct, field

MAX_OF_A_CARD = 2**31 - 1
"""The largest number of a registration: memory in MiB, sharers, cores."""
ALL_CORES = 100
"""The cores of a whole GPU, in percent."""


class MigInstance(Struct, frozen=True, rename="camel"):
    """A number of slots of one size."""

    name: str = ""
    memory: int = 0
    count: int = 0


class Geometry(Struct, frozen=True, rename="camel"):
    """A way to partition a MIG card: all slots that it then has."""

    group: str = ""
    instances: tuple[MigInstance, ...] = field(default=(), name="geometries")

    def instance_at(self, position: int) -> MigInstance | None:
        """The size of the slot at a position, counted over all instances in their order."""
        for instance in self.instances:
            if position < instance.count:
                return instance
            position -= instance.count
        return None


class Slot(NamedTuple):
    """A slot of a MIG card: its geometry and its position there."""

    group: str
    position: int

    def name(self, uuid: str) -> str:
        """As annotations name it."""
        return f"{uuid}[{self.group}-{self.position}]"


def parse_share_name(name: str) -> tuple[str, Slot | None]:
    """The uuid of the card that an annotation names, and the slot, if it names one."""
    uuid, bracket, rest = name.partition("[")
    if not bracket:
        return name, None
    group, dash, position = rest.partition("]")[0].rpartition("-")
    if not dash or "-" in group or not (position.isascii() and position.isdecimal() and len(position) <= 10):
        return uuid, None
    return uuid, Slot(group, int(position))


@dataclass(frozen=True, slots=True)
class Card:
    """One card: its model and its capacity."""

    index: int
    """Its index among the cards of its node; the lowest breaks ties."""
    uuid: str
    """Its id, unique on its node; with gpu-share its index as a text."""
    type: str = ""
    """Its model, such as `NVIDIA-NVIDIA H200`."""
    healthy: bool = True
    """Whether its device plugin reports it as healthy; other cards get no new tasks."""
    memory: int = 0
    """Memory, usually in MiB."""
    count: int = MAX_OF_A_CARD
    """The maximum number of its shares."""
    cores: int = ALL_CORES
    """Its compute cores: percent for GPUs, cores for NPUs."""
    geometries: tuple[Geometry, ...] = ()
    """Its possible partitions, if it is shared by MIG."""
    network: int | None = None
    """The network of cards that it belongs to, if known."""

    def slot_memory(self, slot: Slot) -> int | None:
        """The memory of a slot; none if it has no such slot."""
        for geometry in self.geometries:
            if geometry.group == slot.group:
                instance = geometry.instance_at(slot.position)
                return instance.memory if instance else None
        return None
