"""The history of an object: from its timestamps and conditions, from events, and from the leader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from stromboli.engine.explanation.quantities import time_text

if TYPE_CHECKING:
    from stromboli.model.job import Job

MAX_ENTRIES = 50
MAX_TEXT = 2000
"""Characters of a message."""
MOMENT = 60
"""Seconds within which changes of pods of a job are one entry."""
Source = Literal["objects", "events", "leader"]


class HistoryEntry(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One thing that happened."""

    time: str
    """RFC 3339 in UTC; empty if unknown."""
    kind: str
    """`created`, `condition`, `scheduled`, `started`, `event`, or a `HistoryKind` of the leader; more may be added."""
    text: str
    count: int = 1
    """How many times, or for how many pods."""
    action: str = ""
    """The action that decided it."""
    beneficiary: str = ""
    """The job that pods were evicted for, as `namespace/name`."""
    chosen_by: str = ""
    """The plugins that chose the pods: `tier 1 (priority, gang)`."""
    source: Source = "objects"
    repeats: int = 1
    """How many times it was decided in a row; only in the memory of the leader, as readers get it in the text."""


class History(Struct, kw_only=True, omit_defaults=True):
    """Entries by time; the leader adds its own."""

    entries: list[HistoryEntry] = []
    dropped: int = 0
    """How many older entries are omitted."""
    leader: str = ""
    """The scheduler that added entries, if any."""

    def merged(self, other: History) -> History:
        """Both histories together, each entry once, the oldest first."""
        return history_of(
            [*self.entries, *other.entries], self.dropped + other.dropped, self.leader or other.leader
        )


def history_of(entries: Iterable[HistoryEntry], dropped: int = 0, leader: str = "") -> History:
    """The latest entries, the oldest first; entries with the same time and text are listed once."""
    once = {(entry.time, entry.text): entry for entry in entries}
    ordered = sorted(once.values(), key=lambda entry: entry.time)
    left_out = max(0, len(ordered) - MAX_ENTRIES)
    return History(entries=ordered[left_out:], dropped=dropped + left_out, leader=leader)


def history_of_job(job: Job) -> History:
    """The history by the objects of a job: their creation and conditions, and when pods were bound and started."""
    entries: list[HistoryEntry] = []
    if job.group is not None:
        if job.created:
            text = f"PodGroup {job.name} was created"
            entries.append(HistoryEntry(time=time_text(job.created), kind="created", text=text))
        for condition in job.group.status.conditions:
            if condition.last_transition_time is not None and condition.message:
                time = time_text(condition.last_transition_time.timestamp())
                text = f"{condition.type}: {condition.message[:MAX_TEXT]}"
                entries.append(HistoryEntry(time=time, kind="condition", text=text))
    tasks = job.tasks.values()
    for kind, verb, moments in (
        ("created", "created", [task.created for task in tasks if task.created]),
        ("scheduled", "bound to a node", [task.scheduled_at for task in tasks if task.scheduled_at]),
        ("started", "started", [task.started for task in tasks if task.started]),
    ):
        entries += _pods_at(kind, verb, [int(moment) for moment in moments], len(tasks))
    return history_of(entries)


def _pods_at(kind: str, verb: str, moments: list[int], total: int) -> list[HistoryEntry]:
    """One entry for pods of the same moment, at most three: the first, the second and the last one."""
    counts: Counter[int] = Counter()
    start = -MOMENT
    for moment in sorted(moments):
        start = start if moment - start < MOMENT else moment
        counts[start] += 1
    ordered = sorted(counts)
    chosen = ordered if len(ordered) <= 3 else [*ordered[:2], ordered[-1]]
    return [
        HistoryEntry(
            time=time_text(moment),
            kind=kind,
            text=f"{counts[moment]} of its {total} pods were {verb}" if total > 1 else f"its pod was {verb}",
            count=counts[moment],
        )
        for moment in chosen
    ]
