"""Something that was decided about a job, or that came of it, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from stromboli.engine.explanation.quantities import time_text
from stromboli.engine.explanation.subjects.event_history import HistoryEntry

EntryKind = Literal[
    "let-in",
    "gate-removed",
    "waits",
    "promised",
    "bound",
    "bind-failed",
    "evicted",
    "moved",
    "eviction-failed",
    "room-made",
    "phase",
    "policy",
]
"""`room-made`: others were evicted for this job. `policy`: another policy was read, which concerns all jobs."""


class DecisionEntry(Struct, frozen=True, gc=False):
    """What is remembered of it."""

    time: float
    """In seconds since 1970."""
    kind: EntryKind
    text: str = ""
    """Of waiting what holds the job, of an eviction the whole reason, of a failure why."""
    action: str = ""
    """Of an eviction: the action that decided it."""
    beneficiary: str = ""
    """For whom room was made, as `namespace/name`."""
    chosen_by: str = ""
    """The plugins that chose the victims."""
    pods: int = 0
    """How many pods it is about; a few of them are named."""
    pod_names: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """A few of the nodes of these pods."""
    count: int = 1
    """How often it happened in a row."""


def told(entry: DecisionEntry) -> HistoryEntry:
    """An entry in words."""
    return HistoryEntry(
        time=time_text(entry.time),
        kind=entry.kind,
        text=_text(entry),
        count=max(entry.count, entry.pods),
        action=entry.action,
        beneficiary=entry.beneficiary,
        chosen_by=entry.chosen_by,
        source="leader",
    )


def _text(entry: DecisionEntry) -> str:
    pods = _named("pod", entry.pods, entry.pod_names)
    nodes = f"{', '.join(entry.nodes)}{' and others' if len(entry.nodes) < _least_nodes(entry) else ''}"
    chosen_by = f", chosen by {entry.chosen_by}" if entry.chosen_by else ""
    texts = {
        "let-in": "admitted to its queue",
        "gate-removed": f"queue scheduling gate removed from {pods}",
        "waits": f"waits: {entry.text}",
        "promised": f"start reserved: {entry.text}",
        "bound": f"{pods} bound to {nodes}",
        "bind-failed": f"binding {pods} to {nodes} failed: {entry.text}",
        "evicted": f"{pods} evicted from {nodes}: {entry.text}",
        "moved": f"{pods} moved away from {nodes}: {entry.text}",
        "eviction-failed": f"evicting {pods} from {nodes} failed: {entry.text}",
        "room-made": f"{_plural('pod', entry.pods)} of other jobs evicted for it by {entry.action}{chosen_by}",
        "phase": f"its PodGroup changed to {entry.text}",
        "policy": entry.text,
    }
    times = f" ({entry.count} times)" if entry.count > 1 else ""
    return texts[entry.kind] + times


def _least_nodes(entry: DecisionEntry) -> int:
    """As many nodes are named as there are, unless the list is full and there are more pods."""
    full = len(entry.nodes) == len(entry.pod_names) < entry.pods
    return len(entry.nodes) + full


def _named(noun: str, count: int, names: Sequence[str]) -> str:
    """`pod a`, `3 pods (a, b, c)`, `20 pods (a, b and 18 more)`."""
    if count == 1 and names:
        return f"{noun} {names[0]}"
    if not names:
        return _plural(noun, count)
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{_plural(noun, count)} ({', '.join(names)}{more})"


def _plural(noun: str, count: int) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
