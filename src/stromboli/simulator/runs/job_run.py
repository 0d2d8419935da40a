"""A job on its way through a simulation: its pods that wait, run and have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stromboli.simulator.runs.job_objects import JobTemplate
from stromboli.simulator.runs.run_record import JobRecord
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob


class RunningPod(NamedTuple):
    """A pod on its node."""

    name: str
    node: str
    started: float


class JobRun:
    """A job that was submitted and has not ended."""

    __slots__ = (
        "_attempts",
        "_ordinals",
        "index",
        "job",
        "minimum",
        "record",
        "running",
        "succeeded",
        "template",
    )

    def __init__(self, index: int, job: SubmittedJob, template: JobTemplate, record: JobRecord) -> None:
        self.index = index
        self.job = job
        self.template = template
        self.record = record
        self.minimum = max(template.group.spec.min_member, 1)
        self.running: dict[str, RunningPod] = {}
        """By uid."""
        self.succeeded: dict[str, float] = {}
        """Pods that have ended well, by uid, with the time that they ran."""
        self._ordinals: dict[str, int] = {}
        """Of the pods that exist, by uid."""
        self._attempts = 0

    @property
    def uids(self) -> list[str]:
        """Of all its pods that exist."""
        return list(self._ordinals)

    @property
    def has_minimum(self) -> bool:
        """Whether as many of its pods run, or have ended, as must start together."""
        return len(self.running) + len(self.succeeded) >= self.minimum

    @property
    def has_ended(self) -> bool:
        return len(self.succeeded) == self.job.pods

    @property
    def has_started(self) -> bool:
        return self.record.started is not None

    def first_pods(self) -> Iterator[int]:
        """The ordinals of the pods that a new job consists of."""
        return iter(range(self.job.pods))

    def new_pod(self, ordinal: int) -> str:
        """The uid of a pod that is made now: the first of its ordinal, or in the place of one that was lost."""
        self._attempts += 1
        uid = f"{self.index}.{ordinal}.{self._attempts}"
        self._ordinals[uid] = ordinal
        return uid

    def forget_pod(self, uid: str) -> int:
        """A pod is gone; its ordinal."""
        self.running.pop(uid, None)
        self.succeeded.pop(uid, None)
        return self._ordinals.pop(uid)
