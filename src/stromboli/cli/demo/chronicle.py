"""What happened between two moments, in words; and what became of every job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stromboli.cli.demo.frame import JobSight, Sight

_BORROWER = {"reclaim": "gives back what it borrowed", "preempt": "makes room for what is more urgent"}
PATIENCE = 2.0
"""Seconds that a job may wait before that is news."""


@dataclass(slots=True)
class Life:
    """What became of a job."""

    name: str
    queue: str
    minimum: int
    pods: int
    submitted: float
    started: float | None = None
    finished: float | None = None
    evicted: int = 0
    fewest: int | None = None
    """The fewest pods that it ran at once, from its start until one was done."""


@dataclass(slots=True)
class Chronicle:
    """Remembers; `news` tells what is new in a sight."""

    lives: dict[str, Life] = field(default_factory=dict)
    _waits: set[str] = field(default_factory=set)
    _evicted: set[str] = field(default_factory=set)
    _ran: set[str] = field(default_factory=set)

    def runs(self, job: str) -> bool:
        """Whether all of a job was seen to run; nobody waits for no job."""
        return not job or job in self._ran

    def news(self, sight: Sight, now: float) -> list[str]:
        self._ran |= {job.name for job in sight.jobs.values() if job.pods and job.running == len(job.pods)}
        told = [line for job in sight.jobs.values() for line in self._about(job, now)]
        return told + self._evictions(sight)

    def _about(self, job: JobSight, now: float) -> list[str]:
        life = self.lives.setdefault(job.name, Life(job.name, job.queue, job.minimum, 0, now))
        life.pods = max(life.pods, len(job.pods))
        short = job.name.rpartition("/")[2]
        if life.started is None:
            if job.running >= job.minimum and job.running:
                life.started = now
                nodes = len({pod.node for pod in job.pods if pod.phase == "Running"})
                together = " together" if job.minimum > 1 else ""
                return [f"{short} starts: {_pods(job.running)}{together} on {nodes} node{'s' * (nodes > 1)}"]
            if job.reason and job.name not in self._waits and now - life.submitted > PATIENCE:
                self._waits.add(job.name)
                return [f"{short} waits: {job.reason}"]
            return []
        if life.finished is None:
            if job.over:
                life.finished = now
                return [f"{short} is done"]
            if not job.count("Succeeded", "Failed"):
                life.fewest = min(job.running, life.fewest if life.fewest is not None else job.running)
        return []

    def _evictions(self, sight: Sight) -> list[str]:
        fresh = {pod: why for pod, why in sight.evictions.items() if pod not in self._evicted}
        self._evicted |= fresh.keys()
        told: Counter[tuple[str, str, str]] = Counter()
        for pod, (action, beneficiary) in fresh.items():
            job = next((job for job in self.lives if pod.rpartition("-")[0] == job), "")
            if job:
                self.lives[job].evicted += 1
                told[job.rpartition("/")[2], action, beneficiary] += 1
        return [
            f"{job} loses {_pods(count)}: {_BORROWER.get(action, action)} ({action}"
            f"{f' for {beneficiary}' if beneficiary else ''})"
            for (job, action, beneficiary), count in told.items()
        ]


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
