"""How two runs from the same present differ: who starts or ends later or earlier, and who is evicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from msgspec import Struct

from stromboli.scheduling_loop import PERIOD
from stromboli.simulator.runs.run_record import EvictionRecord, JobRecord, RunRecord

NOTICEABLE = PERIOD
"""Seconds up to which two moments count as one: a cycle comes once in a period."""


class Shift(Struct):
    """A job that fares otherwise; times in seconds from the present, None for never."""

    job: str
    queue: str
    start_without: float | None
    start_with: float | None
    end_without: float | None
    end_with: float | None
    complete_without: float | None = None
    """When all its pods have started, also those beyond its minimum."""
    complete_with: float | None = None

    @property
    def ran_already(self) -> bool:
        """Whether it ran at the present moment, so that a later start is one after an eviction."""
        return self.start_without is not None and self.start_without < 0

    @property
    def start_delay(self) -> float | None:
        """By how much later it starts; negative if earlier, None if it never starts in one of the runs."""
        return _delay(self.start_without, self.start_with)

    @property
    def end_delay(self) -> float | None:
        return _delay(self.end_without, self.end_with)

    @property
    def complete_delay(self) -> float | None:
        return _delay(self.complete_without, self.complete_with)

    @property
    def worsening(self) -> int:
        """1 if it fares worse, -1 if better, 0 if alike: by its start, else by its last pod's, else by its end."""
        return (
            _compare(self.start_without, self.start_with)
            or _compare(self.complete_without, self.complete_with)
            or _compare(self.end_without, self.end_with)
        )


class Eviction(Struct):
    """A pod that is evicted in the run with what is submitted, and not in the other."""

    pod: str
    job: str
    node: str
    time: float
    lost_work: float
    """Seconds that it had run."""
    reason: str = ""
    beneficiary: str = ""
    restart: float | None = None
    """When it runs again; None: never."""


class Differences(Struct):
    """What becomes of the others."""

    later: list[Shift]
    earlier: list[Shift]
    evictions: list[Eviction]
    unstarted: list[str]
    """Jobs that start in neither run."""


def differences(without: RunRecord, with_it: RunRecord, left_out: Collection[str]) -> Differences:
    """Compare the jobs that both runs have, but for some, in the order in which they were to start."""
    before = {job.name: job for job in without.jobs}
    complete, complete_before = complete_starts(with_it), complete_starts(without)
    later: list[Shift] = []
    earlier: list[Shift] = []
    unstarted: list[str] = []
    for job in with_it.jobs:
        other = before.get(job.name)
        if other is None or job.name in left_out:
            continue
        starts, ends = (other.started, job.started), (other.ended, job.ended)
        all_pods = (complete_before.get(job.name), complete.get(job.name))
        shift = Shift(job.name, job.queue, *starts, *ends, *all_pods)
        if shift.worsening:
            (later if shift.worsening > 0 else earlier).append(shift)
        elif job.started is None and job.pods:
            unstarted.append(job.name)
    for shifts in (later, earlier):
        shifts.sort(key=lambda shift: (_or_last(shift.start_without), shift.job))
    return Differences(later, earlier, _new_evictions(without, with_it), unstarted)


def placement(record: RunRecord, job: str) -> dict[str, str]:
    """The pods of a job and their nodes, as they were last placed."""
    index = next(place for place, each in enumerate(record.jobs) if each.name == job)
    return {pod.pod: pod.node for pod in record.pods if pod.job == index}


def ends_before(record: RunRecord, job: JobRecord, nodes: Collection[str]) -> dict[str, float]:
    """The jobs that end on these nodes while a job waits, each with the last of its ends there, in order of time."""
    ends: dict[str, float] = {}
    for pod in record.pods:
        name = record.jobs[pod.job].name
        waited_for = job.started is not None and max(0.0, job.submitted) < pod.ended <= job.started
        if waited_for and pod.node in nodes and name != job.name:
            ends[name] = max(pod.ended, ends.get(name, 0.0))
    return dict(sorted(ends.items(), key=lambda end: (end[1], end[0])))


def _new_evictions(without: RunRecord, with_it: RunRecord) -> list[Eviction]:
    anyway = Counter(eviction.pod for eviction in without.evictions)
    evictions = []
    for eviction in with_it.evictions:
        if anyway[eviction.pod] > 0:
            anyway[eviction.pod] -= 1
            continue
        evictions.append(
            Eviction(
                eviction.pod,
                with_it.jobs[eviction.job].name,
                eviction.node,
                eviction.time,
                eviction.lost_work,
                eviction.reason,
                eviction.beneficiary,
                _restart(with_it, eviction),
            )
        )
    return evictions


def _restart(record: RunRecord, eviction: EvictionRecord) -> float | None:
    starts = (pod.started for pod in record.pods if pod.pod == eviction.pod and pod.started >= eviction.time)
    return min(starts, default=None)


def complete_starts(record: RunRecord) -> dict[str, float]:
    """When the last pod of each job started for the last time, if all of them did."""
    starts: dict[int, dict[str, float]] = {}
    for pod in record.pods:
        last = starts.setdefault(pod.job, {})
        last[pod.pod] = max(pod.started, last.get(pod.pod, pod.started))
    return {
        record.jobs[place].name: max(last.values())
        for place, last in starts.items()
        if len(last) >= record.jobs[place].pods
    }


def _compare(without: float | None, with_it: float | None) -> int:
    """1 if the second is later, -1 if it is earlier; never is later than any moment."""
    first, second = _or_last(without), _or_last(with_it)
    if first == second or abs(second - first) <= NOTICEABLE:
        return 0
    return 1 if second > first else -1


def _or_last(moment: float | None) -> float:
    return float("inf") if moment is None else moment


def _delay(without: float | None, with_it: float | None) -> float | None:
    return None if without is None or with_it is None else with_it - without
