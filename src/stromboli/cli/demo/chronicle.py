"""Turns frames into a chronicle: messages on what changed, and a record of every job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stromboli.api.wait_messages import headline
from stromboli.cli.demo.frame import Frame, JobState

_EXPLANATIONS = {"reclaim": "gives back what it borrowed", "preempt": "makes room for urgent work"}
REPORT_WAIT_AFTER = 2.0
"""Seconds that a job waits before a message says so."""


@dataclass(slots=True)
class JobRecord:
    """The history of a job."""

    name: str
    queue: str
    minimum: int
    pods: int
    submitted: float
    started: float | None = None
    finished: float | None = None
    evicted: int = 0
    min_running: int | None = None
    """The fewest pods that ran at once, from its start until one finished."""

    @property
    def short_name(self) -> str:
        """Without the namespace."""
        return self.name.rpartition("/")[2]


@dataclass(slots=True)
class Chronicle:
    """What is known from all frames so far."""

    jobs: dict[str, JobRecord] = field(default_factory=dict)
    _reported_waits: set[str] = field(default_factory=set)
    _evicted: set[str] = field(default_factory=set)
    _ran: set[str] = field(default_factory=set)

    def has_run(self, job: str) -> bool:
        """Whether all pods of a job ran at once; true for no job."""
        return not job or job in self._ran

    def update(self, frame: Frame, now: float) -> list[str]:
        """Messages on what is new in a frame."""
        self._ran |= {job.name for job in frame.jobs.values() if job.pods and job.running == len(job.pods)}
        messages = [message for job in frame.jobs.values() for message in self._update_job(job, now)]
        return messages + self._evictions(frame)

    def _update_job(self, job: JobState, now: float) -> list[str]:
        record = self.jobs.setdefault(job.name, JobRecord(job.name, job.queue, job.minimum, 0, now))
        record.pods = max(record.pods, len(job.pods))
        short = record.short_name
        if record.started is None:
            if job.running >= job.minimum and job.running:
                record.started = now
                nodes = len({pod.node for pod in job.pods if pod.phase == "Running"})
                together = " together" if job.minimum > 1 else ""
                return [f"{short} starts: {_pods(job.running)}{together} on {nodes} node{'s' * (nodes > 1)}"]
            if (
                job.reason
                and job.name not in self._reported_waits
                and now - record.submitted > REPORT_WAIT_AFTER
            ):
                self._reported_waits.add(job.name)
                return [f"{short} waits: {headline(job.reason)}"]
            return []
        if record.finished is None:
            if job.finished:
                record.finished = now
                return [f"{short} is done"]
            if not job.count("Succeeded", "Failed"):
                previous = record.min_running
                record.min_running = job.running if previous is None else min(job.running, previous)
        return []

    def _evictions(self, frame: Frame) -> list[str]:
        new = {pod: why for pod, why in frame.evictions.items() if pod not in self._evicted}
        self._evicted |= new.keys()
        lost: Counter[tuple[str, str, str]] = Counter()
        for pod, (action, beneficiary) in new.items():
            job = next((job for job in self.jobs if pod.rpartition("-")[0] == job), "")
            if job:
                self.jobs[job].evicted += 1
                lost[self.jobs[job].short_name, action, beneficiary.rpartition("/")[2]] += 1
        return [
            f"{job} loses {_pods(count)}: {_EXPLANATIONS.get(action, action)} ({action}"
            f"{f' for {beneficiary}' if beneficiary else ''})"
            for (job, action, beneficiary), count in lost.items()
        ]


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
