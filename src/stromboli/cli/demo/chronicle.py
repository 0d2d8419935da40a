"""Turns frames into a chronicle: messages about changes, and a record of every job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.wait_messages import headline
from stromboli.cli.demo.frame import Frame, JobState, QueueState
from stromboli.cli.demo.story import Chapter

_EXPLANATIONS = {
    "reclaim": "borrowed GPUs go back, for {} (action reclaim)",
    "preempt": "{} is more urgent (action preempt)",
}
REPORT_WAIT_AFTER = 1.5
"""Seconds that a job waits before a message gives the reason, at speed 1."""


@dataclass(slots=True)
class JobRecord:
    """The history of a job."""

    name: str
    queue: str
    gang: int
    """The number of pods that start together or not at all; 0 if each may start alone."""
    submitted: float
    started: float | None = None
    finished: float | None = None
    wait_reported: bool = False
    restarting: set[str] = field(default_factory=set)
    """Its pods that were evicted and do not run again yet."""
    evicted: Counter[str] = field(default_factory=Counter)
    """How many of its pods were evicted, by the job that gained."""
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
    report_wait_after: float = REPORT_WAIT_AFTER
    peaks: dict[str, QueueState] = field(default_factory=dict)
    """Each queue when it used the most GPUs."""
    _evicted: set[str] = field(default_factory=set)
    _ran: set[str] = field(default_factory=set)

    def is_due(self, chapter: Chapter) -> bool:
        """Return whether everything happened that must happen before a chapter."""
        return self.has_run(chapter.after) and self.has_restarted(chapter.restarted)

    def has_run(self, job: str) -> bool:
        """Whether all pods of a job ran at once; true for no job."""
        return not job or job in self._ran

    def has_restarted(self, job: str) -> bool:
        """Whether a job lost pods and all of them run again; true for no job."""
        if not job:
            return True
        record = self.jobs.get(job)
        return record is not None and bool(record.evicted) and not record.restarting

    def update(self, frame: Frame, now: float) -> list[str]:
        """Return messages about the changes since the last frame."""
        self._ran |= {job.name for job in frame.jobs.values() if job.running == job.replicas}
        for queue in frame.queues.values():
            self.peaks[queue.name] = max(queue, self.peaks.get(queue.name, queue), key=lambda peak: peak.used)
        for job in frame.jobs.values():
            self.jobs.setdefault(job.name, JobRecord(job.name, job.queue, job.minimum * job.is_gang, now))
        changes = [message for job in frame.jobs.values() for message in self._update_job(job, frame, now)]
        return self._evictions(frame) + changes

    def _update_job(self, job: JobState, frame: Frame, now: float) -> list[str]:
        record = self.jobs[job.name]
        short = record.short_name
        if record.started is None:
            if job.running and job.running >= job.minimum and not job.is_starting:
                record.started = now
                machines = len({pod.node for pod in job.pods if pod.phase == names.POD_RUNNING})
                together = " together" if job.is_gang else ""
                on = f"{machines} machine{'s' * (machines > 1)}"
                return [f"{short} starts: {pods_text(job.running)}{together} on {on}"]
            reason = next((pod.reason for pod in job.pods if pod.reason), "")
            if reason and not record.wait_reported and now - record.submitted > self.report_wait_after:
                record.wait_reported = True
                return [f"{short} waits: {_missing_gpus(job, frame) or headline(reason)}"]
        elif record.finished is None:
            if not job.count(names.POD_SUCCEEDED):
                lowest = job.running if record.min_running is None else record.min_running
                record.min_running = min(job.running, lowest)
            return self._restarts(job, record) + self._end(job, record, now)
        return []

    def _restarts(self, job: JobState, record: JobRecord) -> list[str]:
        back = record.restarting & {
            pod.name for pod in job.pods if pod.phase == names.POD_RUNNING and not pod.terminating
        }
        record.restarting -= back
        return [f"{record.short_name} restarts {pods_text(len(back))} that it lost"] if back else []

    def _end(self, job: JobState, record: JobRecord, now: float) -> list[str]:
        if not job.finished:
            return []
        record.finished = now
        return [f"{record.short_name} is done"]

    def _evictions(self, frame: Frame) -> list[str]:
        lost: Counter[tuple[str, str, str]] = Counter()
        for pod in frame.evictions.keys() - self._evicted:
            action, group = frame.evictions[pod]
            job, beneficiary = self._job_of(pod), self._job_of(group)
            if job is not None and beneficiary is not None:
                self._evicted.add(pod)
                job.restarting.add(pod)
                job.evicted[beneficiary.short_name] += 1
                lost[job.short_name, action, beneficiary.short_name] += 1
        return [
            f"{name} loses {pods_text(count)}: "
            + _EXPLANATIONS.get(action, f"{action} for {{}}").format(beneficiary)
            for (name, action, beneficiary), count in lost.items()
        ]

    def _job_of(self, name: str) -> JobRecord | None:
        """Return the job of a pod or PodGroup, whose names start with that of their job."""
        return next((job for job in self.jobs.values() if name.startswith(f"{job.name}-")), None)


def _missing_gpus(job: JobState, frame: Frame) -> str:
    """Compare what a gang needs with what is idle; nothing if that does not explain why it waits."""
    needed = sum(pod.gpus for pod in job.pods)
    if not job.is_gang or frame.idle_gpus >= needed:
        return ""
    return f"it needs {needed} idle GPUs at once, and only {frame.idle_gpus} are idle"


def pods_text(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
