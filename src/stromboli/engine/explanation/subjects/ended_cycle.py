"""What explanations ask of a cycle that has come to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stromboli.engine.decisions import Decision
    from stromboli.engine.explanation.wait_explanation import WaitExplanation
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task


class EndedCycle(Protocol):
    """The outcome of a cycle, while the cluster is as it left it."""

    @property
    def decisions(self) -> list[Decision]: ...

    @property
    def session(self) -> Session: ...

    def explain(self, job: Job) -> WaitExplanation | None:
        """Why a job waits; none if it does not."""

    def explain_task(self, task: Task) -> str:
        """Why one pod waits, in a sentence; empty if it does not."""
