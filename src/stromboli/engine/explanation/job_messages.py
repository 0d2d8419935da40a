"""Why a job and its tasks wait, as conditions and events of PodGroup, pods and owner have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.wait_messages import wait_message
from stromboli.engine.explanation.volcano_messages import gang_message, readiness

if TYPE_CHECKING:
    from stromboli.engine.explanation.wait_cause import Cause, Gate
    from stromboli.engine.explanation.wait_gates import WaitCauses
    from stromboli.model.job import Job
    from stromboli.model.task import Task


class WaitCondition(NamedTuple):
    """Why a task waits at the end of a cycle, as the condition of its pod has it."""

    reason: str
    message: str
    nominated: str = ""


class JobMessages:
    """The messages about one job, each made once."""

    def __init__(self, causes: WaitCauses, job: Job):
        self.cause = causes.of(job)
        """None if the job does not wait."""
        self.sentence = self.cause.sentence(job) if self.cause else ""
        """`Job train waits: ...`; empty if it does not."""
        self._causes = causes
        self._job = job
        self._group: str | None = None
        self._verdicts = causes.verdicts(job)
        self._waiting: dict[int, WaitCondition] = {}
        self._promises: dict[str, str] = {}

    @property
    def group(self) -> str:
        """`Job train waits: ... (2/3 tasks in gang unschedulable: pod group is not ready, ...)`."""
        if self._group is None:
            invalid = self.cause is not None and self.cause.gate == "validity"
            self._group = self._message(self.cause, gang_message(self._job, invalid))
        return self._group

    def waiting(self, task: Task) -> WaitCondition:
        """Of a task without room; tasks with the same verdict share it."""
        key = id(self._verdicts.get(task))
        condition = self._waiting.get(key)
        if condition is None:
            cause = self._causes.of_task(self._job, task)
            message = self._message(cause, readiness(self._job))
            condition = self._waiting[key] = WaitCondition(names.UNSCHEDULABLE, message)
        return condition

    def with_room(self, task: Task) -> str:
        """Of a task that had room when it was last tried; it is not given hope behind a gate where room is no help."""
        return self._promised(task, names.ONCE_MIN_AVAILABLE, ("topology", "nodes", "gang", "pipeline"))

    def with_room_to_come(self, task: Task) -> str:
        """Of a task that would have room once others have left: said only where that is all it waits for."""
        return self._promised(task, names.ONCE_RELEASED, ("pipeline",))

    def _promised(self, task: Task, volcano: str, gates: tuple[Gate, ...]) -> str:
        if self.cause is not None and self.cause.gate not in gates:
            return self.waiting(task).message
        if volcano not in self._promises:
            self._promises[volcano] = self._message(self.cause, volcano)
        return self._promises[volcano]

    def _message(self, cause: Cause | None, volcano: str) -> str:
        if cause is None:
            return volcano
        sentence = self.sentence if cause is self.cause else cause.sentence(self._job)
        return wait_message(sentence, volcano)
