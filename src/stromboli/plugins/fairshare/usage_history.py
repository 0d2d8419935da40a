"""Usage that decays, as plain numbers that a dump or an annotation can hold without loss.

Usage is a share of the cluster times seconds. It is not added up in every cycle: a `UsageRecord` is the usage at a
moment and the share held since, from which usage at any later moment follows. So a record changes only when the share
does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypedDict

from msgspec import Meta

MAX_GAP = 600.0
"""Seconds between two cycles (or a save and a restart) that count at most."""

Number = Annotated[float, Meta(ge=0, le=1e18)]


class UsageRecord(NamedTuple):
    """Usage at a moment, and the share of the cluster that is held since."""

    usage: Number
    at: Number
    share: Number


NO_USAGE = UsageRecord(0.0, 0.0, 0.0)


class QueueHistory(TypedDict):
    """The history of a queue: when it was saved, whether it changed since, the whole queue, its users."""

    saved: Number
    changed: bool
    whole: UsageRecord
    users: dict[str, UsageRecord]


class Memory(TypedDict):
    """What is kept between cycles: when the last one was, and the history of each queue."""

    at: Number | None
    queues: dict[str, QueueHistory]


def new_history(now: float) -> QueueHistory:
    return QueueHistory(saved=now, changed=False, whole=NO_USAGE, users={})


def copy_of(history: QueueHistory) -> QueueHistory:
    history = history.copy()
    history["users"] = dict(history["users"])
    return history


def rounded(number: float) -> float:
    """As it is stored: with nine significant digits."""
    return float(f"{number:.9g}")


def is_continuous(last: float, now: float) -> bool:
    """Whether all the time between two moments counts: it is neither negative nor longer than the gap."""
    return 0 <= now - last <= MAX_GAP


@dataclass(frozen=True, slots=True)
class Decay:
    """Exponential decay: every half-life, usage halves."""

    half_life: float

    def usage(self, record: UsageRecord, now: float) -> float:
        """The decayed usage at a moment."""
        elapsed = max(now - record.at, 0.0)
        return self._usage_after(record, elapsed, elapsed)

    def at(self, record: UsageRecord, now: float, share: float) -> UsageRecord:
        """The record at this moment, from which on another share is held."""
        return UsageRecord(rounded(self.usage(record, now)), now, share)

    def across_gap(self, record: UsageRecord, last: float, now: float) -> UsageRecord:
        """The record after a gap, or after time ran backwards: decay counts in full, usage up to `MAX_GAP`."""
        at_last = record._replace(usage=self.usage(record, last), at=last)
        elapsed = max(now - last, 0.0)
        return UsageRecord(
            rounded(self._usage_after(at_last, elapsed, min(elapsed, MAX_GAP))), now, record.share
        )

    def _usage_after(self, record: UsageRecord, elapsed: float, counted: float) -> float:
        mean = self.half_life / math.log(2)
        return record.usage * math.exp(-elapsed / mean) - record.share * mean * math.expm1(-counted / mean)
