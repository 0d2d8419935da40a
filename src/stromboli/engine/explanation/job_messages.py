"""Why a job and its tasks wait, as conditions and events of PodGroup, pods and owner have it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from stromboli.api.wait_messages import wait_message
from stromboli.engine.explanation.volcano_messages import gang_message, readiness

if TYPE_CHECKING:
    from stromboli.engine.explanation.wait_cause import Cause
    from stromboli.engine.explanation.wait_gates import WaitCauses
    from stromboli.model.job import Job
    from stromboli.model.task import Task

_ROOM_HELPS = ("nodes", "gang", "pipeline")
"""Gates behind which a task with room on a node may start."""


class JobMessages:
    """The messages about one job, each made once."""

    def __init__(self, causes: WaitCauses, job: Job):
        self.cause = causes.of(job)
        """None if the job does not wait."""
        self._causes = causes
        self._job = job
        self._of_tasks: dict[int | str, str] = {}

    @cached_property
    def sentence(self) -> str:
        """`Job train waits: ...`; empty if it does not."""
        return self.cause.sentence(self._job) if self.cause else ""

    @cached_property
    def group(self) -> str:
        """`Job train waits: ... (2/3 tasks in gang unschedulable: pod group is not ready, ...)`."""
        return self._message(self.cause, gang_message(self._job))

    def waiting(self, task: Task) -> str:
        """Of a task without room."""
        key = id(self._causes.verdict(task))
        if key not in self._of_tasks:
            cause = self._causes.of_task(self._job, task)
            self._of_tasks[key] = self._message(cause, readiness(self._job))
        return self._of_tasks[key]

    def promised(self, volcano: str) -> str:
        """Of a task that had room when it was last tried: Volcano's words, unless they would raise false hopes."""
        if volcano not in self._of_tasks:
            hopeful = self.cause is None or self.cause.gate in _ROOM_HELPS
            self._of_tasks[volcano] = self._message(self.cause, volcano if hopeful else readiness(self._job))
        return self._of_tasks[volcano]

    def _message(self, cause: Cause | None, volcano: str) -> str:
        if cause is None:
            return volcano
        sentence = self.sentence if cause is self.cause else cause.sentence(self._job)
        return wait_message(sentence, volcano)
