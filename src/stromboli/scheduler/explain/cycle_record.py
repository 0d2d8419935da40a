"""The last cycles and their decisions, within bounds: written in the cycle's thread, read on the event loop.

Consecutive cycles that decide nothing, or that are lost for the same cause, are one entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, get_args

import msgspec
from msgspec.structs import replace

from stromboli.api.errors import printable
from stromboli.engine.decisions import Bind, Evict, GateRemoval
from stromboli.scheduler.explain.cycle_documents import (
    CycleDecision,
    CycleEntry,
    CycleKind,
    CycleList,
    LostCause,
)
from stromboli.scheduler.explain.decision_ring import DecisionRing, RecordedDecision, decision_kind

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.plugin_failures import Failure
    from stromboli.model.job import Job
    from stromboli.scheduler.explain.explain_paths import CycleQuery

MAX_CYCLE_ENTRIES = 500
"""Cycles, or runs of cycles, that are kept."""
MAX_CYCLE_BYTES = 1024 * 1024
"""Bytes of all entries together, as JSON."""
MAX_CYCLE_ENTRY = 64 * 1024
"""Bytes of an entry as JSON; a larger one names no decisions."""
MAX_NAMED_DECISIONS = 64
"""Decisions of a cycle that are named."""
MAX_NAMED_BY_ACTION = 16
"""Those of one action, so that the decisions of the first one do not hide those of the others."""
MAX_NAMED = 512
"""Characters of a name or a text."""


class CycleRecord(DecisionRing[CycleEntry]):
    """The last cycles, the newest last."""

    def __init__(self) -> None:
        super().__init__(MAX_CYCLE_ENTRIES, MAX_CYCLE_BYTES)
        self._lock = Lock()
        self._newest = 0
        self._since = 0.0

    def size(self, entry: CycleEntry) -> int:
        return _size(entry)

    def joined(self, last: CycleEntry, entry: CycleEntry) -> CycleEntry | None:
        """The last entry with one more cycle of the same run; None if the cycle is of another run."""
        if last.kind != entry.kind or entry.kind == "decided" or _cause(last) != _cause(entry):
            return None
        return _bounded(_longer(last, entry))

    def note(self, outcome: Outcome) -> None:
        """Record a cycle that ended; called in its thread before the cluster changes."""
        entry = cycle_entry(self._newest + 1, outcome)
        with self._lock:
            self._newest, self._since = entry.number, self._since or entry.time
            self.add(_bounded(entry))

    def select(self, query: CycleQuery) -> CycleList:
        """The cycles that a query selects; called from any thread.

        A number that is not reached yet was counted by another leader: all cycles are newer.
        """
        with self._lock:
            entries, since, newest = list(self.entries), self._since, self._newest
        oldest = entries[0].number if entries else 0
        if query.after <= newest:
            entries = [entry for entry in entries if entry.last_number > query.after]
        if query.limit:
            entries = entries[-query.limit :]
        return CycleList(since=since, oldest=oldest, newest=newest, cycles=entries)


def cycle_entry(number: int, outcome: Outcome) -> CycleEntry:
    """A cycle as an entry of its own."""
    session, counts = outcome.session, Counter(map(type, outcome.decisions))
    admitted = len(session.journal.admitted) if outcome.lost is None else 0
    decided = admitted + sum(counts[kind] for kind in get_args(RecordedDecision))
    kind: CycleKind = "lost" if outcome.lost is not None else "decided" if decided else "idle"
    decisions = list(islice(_named(outcome), MAX_NAMED_DECISIONS)) if decided else []
    now = session.reads.time
    return CycleEntry(
        number=number,
        time=now,
        kind=kind,
        last_number=number,
        last_time=now,
        seconds=round(sum(outcome.seconds.values()), 6),
        parts={_text(part): round(seconds, 6) for part, seconds in outcome.seconds.items()},
        let_in=admitted,
        bound=counts[Bind],
        evicted=counts[Evict],
        moved=sum(isinstance(each, Evict) and bool(each.destination) for each in outcome.decisions),
        released=counts[GateRemoval],
        pipelined=len(outcome.pipelined),
        refused=len(session.attempts.verdicts),
        waiting=len(session.cluster.waiting),
        pending=len(session.cluster.backlog),
        decisions=decisions,
        left_out=decided - len(decisions),
        lost=_lost(outcome.lost) if outcome.lost is not None else None,
    )


# -- runs


def _size(entry: CycleEntry) -> int:
    """The bytes of an entry as JSON."""
    return len(msgspec.json.encode(entry))


def _cause(entry: CycleEntry) -> tuple[str, str, str]:
    """Why a cycle was lost, without the error of a plugin, which may differ each time."""
    lost = entry.lost
    if lost is None:
        return "", "", ""
    return lost.plugin, lost.point, "" if lost.plugin else lost.message


def _longer(run: CycleEntry, entry: CycleEntry) -> CycleEntry:
    """A run with one more cycle: times add up, the state is that after the last cycle."""
    parts = {
        part: round(run.parts.get(part, 0.0) + entry.parts.get(part, 0.0), 6)
        for part in (*run.parts, *entry.parts)
    }
    return replace(
        entry,
        number=run.number,
        time=run.time,
        cycles=run.cycles + 1,
        seconds=round(run.seconds + entry.seconds, 6),
        parts=parts,
    )


def _bounded(entry: CycleEntry) -> CycleEntry:
    """The entry, without its decisions if it is too large."""
    if _size(entry) <= MAX_CYCLE_ENTRY:
        return entry
    return replace(entry, decisions=[], left_out=entry.left_out + len(entry.decisions))


# -- decisions


def _named(outcome: Outcome) -> Iterator[CycleDecision]:
    """The first decisions of each action, and of the end of the cycle."""
    session, first, first_admitted = outcome.session, 0, 0
    for action, end, admitted_end in outcome.action_ends:
        admitted = session.journal.admitted[first_admitted:admitted_end]
        yield from (_admission(job, action) for job in admitted[:MAX_NAMED_BY_ACTION])
        yield from _named_between(outcome, first, end, action)
        first, first_admitted = end, admitted_end
    yield from _named_between(outcome, first, len(outcome.decisions), "")


def _named_between(outcome: Outcome, first: int, end: int, action: str) -> Iterator[CycleDecision]:
    tasks = outcome.session.cluster.tasks
    named = (each for each in islice(outcome.decisions, first, end) if isinstance(each, RecordedDecision))
    for decision in islice(named, MAX_NAMED_BY_ACTION):
        task = tasks.get(decision.uid)
        yield _decision(decision, task.job if task is not None else None, action)


def _decision(decision: RecordedDecision, job: Job | None, action: str) -> CycleDecision:
    texts = ("node", "beneficiary", "chosen_by", "destination")
    return CycleDecision(
        decision_kind(decision),
        _text(decision.namespace),
        _text(decision.name),
        job=_text(job.key) if job is not None else "",
        queue=_queue(job),
        action=_text(getattr(decision, "action", "") or action),
        **{text: _text(getattr(decision, text, "")) for text in texts},
    )


def _admission(job: Job, action: str) -> CycleDecision:
    names = _text(job.namespace), _text(job.name)
    return CycleDecision("let-in", *names, job=_text(job.key), queue=_queue(job), action=action)


def _queue(job: Job | None) -> str:
    return _text(job.queue.name) if job is not None and job.queue is not None else ""


def _lost(failure: Failure) -> LostCause:
    return LostCause(_text(failure.message), _text(failure.plugin), _text(failure.point))


def _text(text: str) -> str:
    return printable(text[:MAX_NAMED])
