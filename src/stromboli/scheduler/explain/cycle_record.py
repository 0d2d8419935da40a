"""The last cycles and what they did, within bounds: written in the cycle's thread, read on the event loop.

An entry is made of the outcome that a cycle has anyway. Cycles in a row that decide nothing, or that are lost for the
same cause, are one entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from stromboli.api.errors import printable
from stromboli.engine.decisions import Bind, Decision, Evict, GateRemoval
from stromboli.scheduler.explain.cycle_documents import (
    CycleDecision,
    CycleEntry,
    CycleKind,
    CycleList,
    LostCause,
)
from stromboli.scheduler.explain.decision_ring import DecisionRing, RingBounds

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.plugin_failures import Failure
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.scheduler.explain.explain_paths import CycleQuery

MAX_CYCLE_ENTRIES = 500
"""Cycles, or runs of cycles, that are remembered; the oldest is dropped for a new one."""
MAX_CYCLE_BYTES = 1024 * 1024
"""Of all entries together, as JSON."""
MAX_CYCLE_ENTRY = 64 * 1024
"""Bytes of an entry as JSON; a larger one names no decisions."""
MAX_NAMED_DECISIONS = 64
"""Decisions of a cycle that are named."""
MAX_NAMED_BY_ACTION = 16
"""Of those of one action: what the first one decides must not hide what the others do."""
MAX_NAMED = 512
"""Characters of a name or a text."""
_NAMED = frozenset({Bind, Evict, GateRemoval})


class CycleRecord:
    """The last cycles, the newest last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ring: DecisionRing[CycleEntry] = DecisionRing(_size, _joined)
        self._newest = 0
        self._since = 0.0

    @property
    def bytes(self) -> int:
        """Of all entries, as JSON."""
        return self._ring.bytes

    def note(self, outcome: Outcome) -> None:
        """A cycle ended; in its thread, before the cluster changes."""
        entry = cycle_entry(self._newest + 1, outcome)
        with self._lock:
            self._newest, self._since = entry.number, self._since or entry.time
            self._ring.add(_bounded(entry), RingBounds(MAX_CYCLE_ENTRIES, MAX_CYCLE_BYTES))

    def select(self, query: CycleQuery) -> CycleList:
        """The cycles that a query selects; from any thread.

        A number that is not reached yet was counted by another leader: everything is newer.
        """
        with self._lock:
            entries, since, newest = list(self._ring.entries), self._since, self._newest
        oldest = entries[0].number if entries else 0
        if query.after <= newest:
            entries = [entry for entry in entries if entry.last_number > query.after]
        if query.limit:
            entries = entries[-query.limit :]
        return CycleList(since=since, oldest=oldest, newest=newest, cycles=entries)


def cycle_entry(number: int, outcome: Outcome) -> CycleEntry:
    """A cycle as an entry of its own."""
    session, counts = outcome.session, Counter(map(type, outcome.decisions))
    let_in = len(session.journal.admitted) if outcome.lost is None else 0
    decided = let_in + sum(counts[kind] for kind in _NAMED)
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
        let_in=let_in,
        bound=counts[Bind],
        evicted=counts[Evict],
        moved=_moved(outcome.decisions) if counts[Evict] else 0,
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


def _joined(last: CycleEntry, entry: CycleEntry) -> CycleEntry | None:
    """The last entry with one more cycle of the same run; none if the cycle is of another run."""
    if last.kind != entry.kind or entry.kind == "decided" or _cause(last) != _cause(entry):
        return None
    return _bounded(_longer(last, entry))


def _cause(entry: CycleEntry) -> tuple[str, str, str]:
    """What a cycle was lost for; the error of a plugin may read otherwise each time."""
    lost = entry.lost
    if lost is None:
        return "", "", ""
    return lost.plugin, lost.point, "" if lost.plugin else lost.message


def _longer(run: CycleEntry, entry: CycleEntry) -> CycleEntry:
    """A run with one more cycle: times add up, and what is true after a cycle is as the last one left it."""
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
    """An entry that is not too large: a larger one names no decisions."""
    if _size(entry) <= MAX_CYCLE_ENTRY:
        return entry
    return replace(entry, decisions=[], left_out=entry.left_out + len(entry.decisions))


# -- decisions


def _named(outcome: Outcome) -> Iterator[CycleDecision]:
    """The first decisions of each action, and of the end of the cycle."""
    session, first, first_let_in = outcome.session, 0, 0
    for action, end, let_in_end in outcome.action_ends:
        jobs = session.journal.admitted[first_let_in : min(let_in_end, first_let_in + MAX_NAMED_BY_ACTION)]
        yield from (_let_in(job, action) for job in jobs)
        yield from _named_between(session.cluster, outcome.decisions, first, end, action)
        first, first_let_in = end, let_in_end
    yield from _named_between(session.cluster, outcome.decisions, first, len(outcome.decisions), "")


def _named_between(
    cluster: Cluster, decisions: Sequence[Decision], first: int, end: int, action: str
) -> Iterator[CycleDecision]:
    named = (each for each in islice(decisions, first, end) if type(each) in _NAMED)
    for decision in islice(named, MAX_NAMED_BY_ACTION):
        match decision:
            case Bind():
                yield _about_pod(cluster, decision, CycleDecision("bound", "", "", action=action))
            case Evict():
                yield _about_pod(cluster, decision, _eviction(decision, action))
            case GateRemoval():
                yield _about_pod(cluster, decision, CycleDecision("gate-removed", "", "", action=action))


def _eviction(decision: Evict, action: str) -> CycleDecision:
    return CycleDecision(
        "moved" if decision.destination else "evicted",
        "",
        "",
        action=_text(decision.action or action),
        beneficiary=_text(decision.beneficiary),
        chosen_by=_text(decision.chosen_by),
        destination=_text(decision.destination),
    )


def _about_pod(cluster: Cluster, decision: Bind | Evict | GateRemoval, named: CycleDecision) -> CycleDecision:
    task = cluster.tasks.get(decision.uid)
    job = task.job if task is not None else None
    return replace(
        named,
        namespace=_text(decision.namespace),
        name=_text(decision.name),
        job=_text(job.key) if job is not None else "",
        queue=_queue(job),
        node=_text(decision.node) if not isinstance(decision, GateRemoval) else "",
    )


def _let_in(job: Job, action: str) -> CycleDecision:
    names = _text(job.namespace), _text(job.name)
    return CycleDecision("let-in", *names, job=_text(job.key), queue=_queue(job), action=action)


def _queue(job: Job | None) -> str:
    return _text(job.queue.name) if job is not None and job.queue is not None else ""


def _moved(decisions: Sequence[Decision]) -> int:
    return sum(bool(each.destination) for each in decisions if isinstance(each, Evict))


def _lost(failure: Failure) -> LostCause:
    return LostCause(_text(failure.message), _text(failure.plugin), _text(failure.point))


def _text(text: str) -> str:
    return printable(text[:MAX_NAMED])
