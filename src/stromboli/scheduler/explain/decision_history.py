"""The decisions about each job, within bounds: recorded in the cycle's thread when decisions are handed over.

A job without decisions costs nothing. The record of a deleted job is dropped after a while; if all records together
grow too large, the one whose last entry is the oldest is dropped first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from stromboli.api import names
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GateRemoval,
    NativeGroupCondition,
    PodDecision,
    PodGroupStatus,
)
from stromboli.engine.explanation.closest_domain import pods
from stromboli.engine.explanation.event_history import History, HistoryEntry
from stromboli.engine.explanation.quantities import time_text
from stromboli.model.intake.native_groups import KIND
from stromboli.model.job import VOLCANO_GROUP, Job, JobId
from stromboli.scheduler.explain.cycle_documents import DecisionKind
from stromboli.scheduler.explain.decision_ring import DecisionRing, RecordedDecision, decision_kind

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.model.cluster import Cluster


HistoryKind = (
    DecisionKind
    | Literal["waits", "promised", "bind-failed", "eviction-failed", "room-made", "phase", "policy"]
)
"""`room-made`: pods of other jobs were evicted for this job. `policy`: the policy changed, which concerns all jobs."""
MAX_JOBS = 20_000
"""Jobs with a history."""
MAX_BYTES = 32 * 1024 * 1024
"""Bytes of all entries together, roughly."""
FORGOTTEN_AFTER = 900.0
"""Seconds after a job was first found to be deleted."""
SWEEP_INTERVAL = 60.0
"""Seconds between two searches for deleted jobs."""
SWEPT_AT_ONCE = 200
"""Jobs that are checked after a cycle."""
_POLICY_EVENTS = {
    names.EVENT_POLICY_LOADED: "the policy changed",
    names.EVENT_POLICY_WARNING: "the policy changed, with warnings",
    names.EVENT_POLICY_REFUSED: "a policy change was rejected; the previous policy stays active",
}


class DecisionHistory:
    """The records of all jobs."""

    def __init__(self, since: float = 0.0) -> None:
        """The history starts with the first cycle unless `since` is given: a replica may be on standby for long."""
        self._since = since
        self._records: dict[JobId, HistoryRecord] = {}
        """Those with the latest entries come last."""
        self._policies = HistoryRecord()
        self._bytes = 0
        self._to_sweep: list[JobId] = []
        self._swept_at = since

    def __len__(self) -> int:
        return len(self._records)

    @property
    def since(self) -> float:
        """When the history starts, in seconds since 1970."""
        return self._since

    @property
    def bytes(self) -> int:
        """The size of all records, roughly."""
        return self._bytes

    # -- reading

    def of(self, job: JobId) -> History:
        """The history of a job, which may be deleted."""
        return self._history(self._records.get(job))

    @property
    def policies(self) -> History:
        """Changes of the policy."""
        return self._history(self._policies)

    def _history(self, record: HistoryRecord | None) -> History:
        if record is None:
            return History()
        return History(entries=[_with_repeats(entry) for entry in record.entries], dropped=record.dropped)

    # -- feeding

    def note_decisions(self, cluster: Cluster, decisions: Sequence[Decision], now: float) -> None:
        """Record decisions that were handed over."""
        self._since = self._since or now
        groups: dict[_Group, list[RecordedDecision]] = {}
        for decision in decisions:
            match decision:
                case Bind() | Evict() | GateRemoval() if (job := _job_of(cluster, decision)) is not None:
                    groups.setdefault(_group(job, decision), []).append(decision)
                case PodGroupStatus():
                    id = JobId(VOLCANO_GROUP, decision.namespace, decision.name)
                    self._note_phase(cluster.jobs.get(id), decision.phase, now)
                case NativeGroupCondition(status="True"):
                    id = JobId(KIND, decision.namespace, decision.name)
                    self._note_phase(cluster.jobs.get(id), names.GROUP_SCHEDULED, now)
                case Event() if decision.reason in _POLICY_EVENTS:
                    self._policies.add(_entry(now, "policy", _POLICY_EVENTS[decision.reason]))
        freed: Counter[tuple[str, str, str]] = Counter()
        for (job, kind, action, beneficiary, chosen_by), alike in groups.items():
            entry = _entry(now, kind, _text(kind, alike), len(alike))
            self._add(job, replace(entry, action=action, beneficiary=beneficiary, chosen_by=chosen_by))
            if beneficiary and beneficiary != job.key:
                freed[action, beneficiary, chosen_by] += len(alike)
        for (action, beneficiary, chosen_by), count in freed.items():
            if (gainer := _job_of_key(cluster, beneficiary)) is not None:
                by = f"{action}, chosen by {chosen_by}" if chosen_by else action
                entry = _entry(now, "room-made", f"{pods(count)} of other jobs evicted for it by {by}", count)
                self._add(gainer, replace(entry, action=action, chosen_by=chosen_by))

    def _note_phase(self, job: Job | None, phase: str, now: float) -> None:
        if job is None:
            return
        record = self._record(job)
        shown = job.group.status.phase if job.group is not None else ""
        before, record.phase = record.phase or shown or names.GROUP_PENDING, phase
        if before != phase:
            admitted = phase == names.GROUP_INQUEUE
            text = "admitted to its queue" if admitted else f"its PodGroup changed to {phase}"
            self._add(job, _entry(now, "let-in" if admitted else "phase", text))

    def note_outcome(self, outcome: Outcome) -> None:
        """Record why jobs wait, for those jobs for which a cycle reported it anew."""
        cluster, rules, now = outcome.session.cluster, outcome.session.rules, outcome.session.now
        self._since = self._since or now
        for decision in outcome.decisions:
            if type(decision) is not Event or decision.job is None or decision.kind != decision.job.kind:
                continue
            job = cluster.jobs.get(decision.job)
            if job is None or decision.reason != names.EVENT_UNSCHEDULABLE or decision.topic != "outcome":
                continue
            cause = outcome.diagnoses.of(job)
            if cause is not None:
                promised = cause.gate == "backfill" and rules.promised(job) is not None
                text = f"{'start reserved' if promised else 'waits'}: {cause.message[:MAX_TEXT]}"
                self._add(job, _entry(now, "promised" if promised else "waits", text))
        self.sweep(cluster, now)

    def note_failure(self, job: Job, decision: Bind | Evict, why: str, now: float) -> None:
        """Record that a bind or an eviction failed."""
        pod, node, text = _pods((decision,)), _nodes((decision,)), why[:MAX_TEXT]
        if isinstance(decision, Bind):
            entry = _entry(now, "bind-failed", f"binding {pod} to {node} failed: {text}")
        else:
            entry = _entry(now, "eviction-failed", f"evicting {pod} from {node} failed: {text}")
        self._add(job, entry)

    # -- bounds

    def _record(self, job: Job) -> HistoryRecord:
        uid = job.group.metadata.uid if job.group is not None else ""
        record = self._records.get(job.id)
        if record is None or (record.uid and uid and record.uid != uid):
            if record is not None:
                self._bytes -= record.bytes
                del self._records[job.id]
            record = self._records[job.id] = HistoryRecord(uid)
            self._trim()
        record.uid = record.uid or uid
        return record

    def _add(self, job: Job, entry: HistoryEntry) -> None:
        record = self._record(job)
        record.gone_at = None
        self._bytes += record.add(entry)
        self._records[job.id] = self._records.pop(job.id)
        self._trim()

    def _trim(self) -> None:
        """Drop the records whose last entry is the oldest; the last record is about to get an entry."""
        while len(self._records) > MAX_JOBS or (self._bytes > MAX_BYTES and len(self._records) > 1):
            self._forget(next(iter(self._records)))

    def _forget(self, job: JobId) -> None:
        self._bytes -= self._records.pop(job).bytes

    def sweep(self, cluster: Cluster, now: float) -> None:
        """Search for deleted jobs, a few at a time, and drop the records of those deleted a while ago."""
        if not self._to_sweep:
            if 0 <= now - self._swept_at < SWEEP_INTERVAL or not self._records:
                return
            self._to_sweep, self._swept_at = list(self._records), now
        part, self._to_sweep = self._to_sweep[-SWEPT_AT_ONCE:], self._to_sweep[:-SWEPT_AT_ONCE]
        for id in part:
            record = self._records.get(id)
            if record is None:
                continue
            if (job := cluster.jobs.get(id)) is not None and (job.group is not None or job.tasks):
                record.gone_at = None
            elif record.gone_at is None or now < record.gone_at:
                record.gone_at = now
            elif now - record.gone_at >= FORGOTTEN_AFTER:
                self._forget(id)


class _Group(NamedTuple):
    """What the decisions of one entry have in common."""

    job: Job
    kind: DecisionKind
    action: str = ""
    beneficiary: str = ""
    chosen_by: str = ""


def _group(job: Job, decision: RecordedDecision) -> _Group:
    kind = decision_kind(decision)
    if isinstance(decision, Evict):
        return _Group(job, kind, decision.action, decision.beneficiary, decision.chosen_by)
    return _Group(job, kind)


def _job_of(cluster: Cluster, decision: PodDecision) -> Job | None:
    task = cluster.tasks.get(decision.uid)
    return task.job if task is not None else None


def _entry(now: float, kind: HistoryKind, text: str, count: int = 1) -> HistoryEntry:
    return HistoryEntry(time=_moment(now), kind=kind, text=text, count=count, source="leader")


@lru_cache(8)
def _moment(now: float) -> str:
    """The same for all decisions of a cycle."""
    return time_text(now)


def _with_repeats(entry: HistoryEntry) -> HistoryEntry:
    """An entry as readers get it: with the number of repeats in its text."""
    if entry.repeats == 1:
        return entry
    text = f"{entry.text} ({entry.repeats} times)"
    return replace(entry, text=text, count=max(entry.count, entry.repeats), repeats=1)


def _job_of_key(cluster: Cluster, key: str) -> Job | None:
    namespace, _, name = key.partition("/")
    jobs = cluster.jobs
    return jobs.get(JobId(VOLCANO_GROUP, namespace, name)) or jobs.get(JobId(KIND, namespace, name))


# -- the entries about one job


MAX_JOB_ENTRIES = 40
"""Entries of a job."""
MAX_JOB_BYTES = 16 * 1024
"""Bytes of the entries of a job together, as `HistoryRecord.size` counts them."""
MAX_TEXT = 1024
"""Characters of a text of an entry."""
MAX_NAMES = 8
"""Pods or nodes that an entry names."""
_OVERHEAD = 330
"""Bytes of an entry without its texts, roughly."""


class HistoryRecord(DecisionRing[HistoryEntry]):
    """The entries about a job, or about the policies of the cluster."""

    __slots__ = ("gone_at", "phase", "uid")

    def __init__(self, uid: str = "") -> None:
        super().__init__(MAX_JOB_ENTRIES, MAX_JOB_BYTES)
        self.uid = uid
        """The uid of its group: another group of the same name has another history."""
        self.phase = ""
        """The last phase that was recorded."""
        self.gone_at: float | None = None
        """When the job was first found to be deleted."""

    def size(self, entry: HistoryEntry) -> int:
        """The bytes that an entry takes, roughly."""
        texts = entry.text, entry.action, entry.beneficiary, entry.chosen_by
        return _OVERHEAD + 2 * sum(map(len, texts))

    def joined(self, last: HistoryEntry, entry: HistoryEntry) -> HistoryEntry | None:
        """The last entry, counted once more if the new one equals it; else None."""
        same = (
            last.kind == entry.kind
            and last.text == entry.text
            and last.action == entry.action
            and last.beneficiary == entry.beneficiary
            and last.count == entry.count
        )
        return replace(last, repeats=last.repeats + 1) if same else None


# -- texts


def _text(kind: DecisionKind, decisions: Sequence[RecordedDecision]) -> str:
    """What decisions of one kind about one job do."""
    named, first = _pods(decisions), decisions[0]
    if kind == "gate-removed":
        return f"queue scheduling gate removed from {named}"
    if not isinstance(first, Evict):
        return f"{named} bound to {_nodes(decisions)}"
    verb = "moved away" if kind == "moved" else "evicted"
    return f"{named} {verb} from {_nodes(decisions)}: {first.reason[:MAX_TEXT]}"


def _pods(decisions: Sequence[PodDecision]) -> str:
    """`pod a`, `3 pods (a, b, c)`, `20 pods (a, b and 18 more)`."""
    count, named = len(decisions), [decision.name for decision in decisions[:MAX_NAMES]]
    if count == 1:
        return f"pod {named[0]}"
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return f"{pods(count)} ({', '.join(named)}{more})"


def _nodes(decisions: Sequence[RecordedDecision]) -> str:
    """A few of the nodes, and whether there are others."""
    nodes = list(dict.fromkeys(each.node for each in decisions if not isinstance(each, GateRemoval)))
    return ", ".join(nodes[:MAX_NAMES]) + (" and others" if len(nodes) > MAX_NAMES else "")
