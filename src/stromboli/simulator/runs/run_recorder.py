"""Keeps the record of a simulation: what is used at every moment, exactly, and samples of it, a bounded number."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import names
from stromboli.simulator.runs.run_record import EvictionRecord, PodRecord, RunRecord, Sample

MOST_SAMPLES = 4_000
"""Samples of a record; when there are more, every second goes and fewer are taken from then on."""
MOST_POD_RECORDS = 2_000_000

Counts = dict[str, int]
_WHOLE = (names.MEMORY, names.PODS)


def in_units(amounts: Mapping[str, float]) -> dict[str, float]:
    """Amounts in the scheduler's own units, which are thousandths of most resources, in whole units."""
    return {
        name: amount if name in _WHOLE else amount / 1000
        for name, amount in sorted(amounts.items())
        if amount
    }


def add(total: Counts, amounts: Mapping[str, int], times: int) -> None:
    """Add amounts so many times, in place."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount * times


class RunRecorder:
    """The state of the cluster as a record has it, and its integrals over time."""

    def __init__(self, record: RunRecord, capacity: Counts) -> None:
        self.record = record
        self.capacity = dict(capacity)
        self.used: Counts = {}
        self.used_by_queue: dict[str, Counts] = {}
        self.waiting = 0
        self.running = 0
        self._now = 0.0
        self._used_s: dict[str, float] = {}
        self._capacity_s: dict[str, float] = {}
        self._waiting_s = 0.0
        self._at_last_event: tuple[dict[str, float], dict[str, float], float] = ({}, {}, 0.0)
        self._stride = 1
        self._skipped = 0
        self._left_out = 0

    def advance(self, now: float) -> None:
        """Time passes; nothing changes in between."""
        elapsed = now - self._now
        self._now = now
        if elapsed > 0:
            for name, amount in self.used.items():
                self._used_s[name] = self._used_s.get(name, 0.0) + amount * elapsed
            for name, amount in self.capacity.items():
                self._capacity_s[name] = self._capacity_s.get(name, 0.0) + amount * elapsed
            self._waiting_s += self.waiting * elapsed

    def begin(self) -> None:
        """The first job is submitted: measures begin here."""
        self._used_s, self._capacity_s, self._waiting_s = {}, {}, 0.0

    def note_event(self) -> None:
        """A job was submitted or a pod ended: what a simulation measures lasts until now."""
        self._at_last_event = (dict(self._used_s), dict(self._capacity_s), self._waiting_s)

    def use(self, queue: str, request: Mapping[str, int], pods: int) -> None:
        """So many pods of a queue start, or with a negative number end."""
        add(self.used, request, pods)
        add(self.used_by_queue.setdefault(queue, {}), request, pods)

    def add_pod(self, pod: PodRecord) -> None:
        """A pod has ended."""
        if len(self.record.pods) < MOST_POD_RECORDS:
            self.record.pods.append(pod)
        else:
            self._left_out += 1

    def add_eviction(self, eviction: EvictionRecord) -> None:
        """A pod had to go; it is counted with its job, whether this is kept or not."""
        if len(self.record.evictions) < MOST_POD_RECORDS:
            self.record.evictions.append(eviction)

    def wants_sample(self) -> bool:
        """Whether the state of this moment is to be kept."""
        self._skipped += 1
        return self._skipped >= self._stride

    def add_sample(self, deserved: dict[str, dict[str, float]], fragmentation: float | None = None) -> None:
        """Keep the state of this moment; of a moment that is sampled twice, the last stands."""
        self._skipped = 0
        samples = self.record.samples
        by_queue = {name: in_units(used) for name, used in sorted(self.used_by_queue.items())}
        sample = Sample(
            self._now,
            in_units(self.used),
            self.waiting,
            self.running,
            by_queue if len(by_queue) > 1 else {},
            deserved,
            fragmentation,
        )
        while samples and samples[-1].time >= self._now:
            samples.pop()
        samples.append(sample)
        if len(samples) > MOST_SAMPLES:
            del samples[1::2]
            self._stride *= 2

    def close(self) -> None:
        """Write down what was measured exactly."""
        used, capacity, waiting = self._at_last_event
        measures = self.record.measures
        for name, amount in in_units(used).items():
            measures[f"used_{name}_s"] = amount
        for name, amount in in_units(capacity).items():
            if name in used:
                measures[f"available_{name}_s"] = amount
        measures["waiting_jobs_s"] = waiting
        if self._left_out:
            self.record.notes.append(
                f"{self._left_out} of {self._left_out + MOST_POD_RECORDS} runs of pods are left out; "
                f"a record has at most {MOST_POD_RECORDS}"
            )
