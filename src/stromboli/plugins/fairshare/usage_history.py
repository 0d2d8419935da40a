"""Usage that fades: plain numbers, so that a dump or an annotation carries them and nothing is lost on the way.

Usage is a share of the cluster times seconds. It is not added up cycle by cycle: a `Past` says how much it was at a
moment and which share is held since, and usage at any later moment follows. So time passes at no cost, and a past is
written anew only when the share changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypedDict

from msgspec import Meta

GAP = 600.0
"""Seconds between two cycles (or a save and a restart) that count in full; of a longer gap just this much does."""

Number = Annotated[float, Meta(ge=0, le=1e18)]


class Past(NamedTuple):
    """Usage at a moment, and the share of the cluster that is held since."""

    usage: Number
    at: Number
    share: Number


NOTHING = Past(0.0, 0.0, 0.0)


class QueueHistory(TypedDict):
    """What is remembered of a queue: when it was saved, whether it changed since, itself as a whole, its users."""

    saved: Number
    changed: bool
    whole: Past
    users: dict[str, Past]


class Memory(TypedDict):
    """All that survives a cycle: when the last one was, and the history of each queue."""

    at: Number | None
    queues: dict[str, QueueHistory]


def new_history(now: float) -> QueueHistory:
    return QueueHistory(saved=now, changed=False, whole=NOTHING, users={})


def copy_of(history: QueueHistory) -> QueueHistory:
    history = history.copy()
    history["users"] = dict(history["users"])
    return history


def rounded(number: float) -> float:
    """As it is stored: nine digits that matter, however small the number."""
    return float(f"{number:.9g}")


def regular(last: float, now: float) -> bool:
    """Whether all the time from one moment to the next counts: it runs forward and leaves no gap."""
    return 0 <= now - last <= GAP


@dataclass(frozen=True, slots=True)
class Fading:
    """Every half-life, half of what was used is forgotten."""

    half_life: float

    def usage(self, past: Past, now: float) -> float:
        """What was used, as far as it is not forgotten."""
        elapsed = max(now - past.at, 0.0)
        return self._after(past, elapsed, elapsed)

    def settled(self, past: Past, now: float, share: float) -> Past:
        """The past up to now, from which on another share is held."""
        return Past(rounded(self.usage(past, now)), now, share)

    def across(self, past: Past, last: float, now: float) -> Past:
        """The past after a gap, or after time ran backwards: forgetting goes on, using counts up to a bound."""
        at_last = past._replace(usage=self.usage(past, last), at=last)
        elapsed = max(now - last, 0.0)
        return Past(rounded(self._after(at_last, elapsed, min(elapsed, GAP))), now, past.share)

    def _after(self, past: Past, elapsed: float, counted: float) -> float:
        mean = self.half_life / math.log(2)
        return past.usage * math.exp(-elapsed / mean) - past.share * mean * math.expm1(-counted / mean)
