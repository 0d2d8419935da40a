"""What a task was given of the cards of its node."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from stromboli.model.ledgers import Grant


class CardShare(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of a card, or of a slot of a card, for a container."""

    card: str
    """The card as annotations name it: its uuid, `uuid[group-position]` for a MIG slot, its index with gpu-share."""
    memory: int = 0
    """Memory, in the unit of the node's registration: MiB as a rule."""
    cores: int = 0
    """Percent of the card's compute cores."""


class CardGrant(Grant, frozen=True):
    """Shares of cards, and how their device plugin learns of them."""

    model: str
    """Which kind of cards: `hamivgpu`, `GpuShare`, or the common word of an NPU, such as `Ascend310P`."""
    containers: tuple[tuple[CardShare, ...], ...]
    """The shares of each container that asked for any, in the order of containers."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Keys and values that the pod gets with its binding: the device plugin finds the shares there."""
    lock: str = ""
    """The annotation of the node that is to be set to the time (RFC 3339) before the bind; empty: none.

    The device plugin takes it off when it has handed out the shares. While another pod's lock is younger than
    `LOCK_SECONDS`, the bind has to wait.
    """


LOCK_SECONDS = 300
"""A node's lock that is older than this was left behind, and is replaced."""


def lock_counts(since: str, now: float) -> bool:
    """Whether a node's lock of this time (RFC 3339) counts; what is no time was left behind long ago."""
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        return False
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return abs(now - moment.timestamp()) < LOCK_SECONDS
