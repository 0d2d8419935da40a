"""Failures of plugins: the plugin, the extension point and the error; and the guard that confines them to jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING

from stromboli.api.errors import error_text
from stromboli.engine.attribution import PluginExit, take_attribution
from stromboli.engine.placement.node_functions import BadAnswer
from stromboli.engine.placement.verdict import Verdict
from stromboli.model.remedy import Why
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job

MAX_ERROR = 500
"""Characters of an error."""
MAX_JOBS = 3
"""Jobs that a line of the log names; the others are counted."""
UNREPORTED = "outcome"
"""The point of a failure while the outcome of a job is reported."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, with the plugin and the extension point that were called, if any."""

    plugin: str
    point: str
    error: str
    kind: str = ""
    """The type of the error."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """The exception, with its traceback."""
    jobs: str = field(default="", compare=False, repr=False)
    """The jobs for which it was raised, for the log."""

    @property
    def message(self) -> str:
        return f"{self._where}: {self.error}"

    @property
    def summary(self) -> str:
        """The message without the text of the error, which may differ each time, except its constant part."""
        steady = f": {self.cause.summary}" if isinstance(self.cause, BadAnswer) else ""
        return f"{self._where}: {self.kind}{steady}"

    @property
    def why(self) -> Why:
        """The failure as the user of a job reads it."""
        return Why(self.message, self.remedy, "PluginFailed", self.summary, self._where)

    @property
    def log_message(self) -> str:
        return f"{self.message} ({self.jobs})" if self.jobs else self.message

    @property
    def remedy(self) -> str:
        return "fix the plugin or remove it from the policy" if self.plugin else ""

    @property
    def _where(self) -> str:
        if self.plugin:
            return f"plugin {self.plugin!r} failed in {self.point}"
        return f"{self.point or 'scheduling'} failed"


class CycleLost(Exception):
    """A failure that loses the cycle; the state is restored."""

    def __init__(self, failure: Failure):
        super().__init__(failure.message)
        self.failure = failure
        self.jobs: tuple[Job, ...] = ()
        """The jobs that were being processed."""


def failure_of(error: BaseException) -> Failure:
    """The failure of the plugin that was called when the error was raised, if any."""
    plugin, point = take_attribution(error)
    raised = error.__cause__ if isinstance(error, PluginExit) and error.__cause__ else error
    text = error_text(raised)
    shortened = text if len(text) <= MAX_ERROR else text[:MAX_ERROR] + "..."
    return Failure(plugin, point, shortened, type(raised).__name__, error)


def over(jobs: Sequence[Job], failure: Failure) -> Failure:
    """The failure, with the jobs for which it was raised."""
    more = f" and {len(jobs) - MAX_JOBS} more" if len(jobs) > MAX_JOBS else ""
    listed = ", ".join(job.key for job in jobs[:MAX_JOBS])
    return replace(failure, jobs=f"job {listed}{more}") if jobs else failure


def exclude(session: Session, jobs: Sequence[Job], failure: Failure) -> None:
    """Leave these jobs out of the session because a plugin failed for them."""
    session.failures.append(over(jobs, failure))
    for job in jobs:
        _report(session, job, failure)


def exclude_failed_before(session: Session, job: Job, failure: Failure) -> None:
    """Place no task of a job, whatever an action tries, because a plugin failed for it in an earlier cycle."""
    session.reports.failed[job] = failure
    _report(session, job, failure)


def _report(session: Session, job: Job, failure: Failure) -> None:
    """Report to the user of a job what failed for it."""
    session.leave_out(job, failure.why)
    for task in job.by_status[Status.PENDING]:
        session.attempts.verdicts.setdefault(job, {})[task] = Verdict(why=failure.why)
        session.attempts.tentative.pop(task, None)


class ReportGuard:
    """Records errors while the outcome of a job is reported, which must not lose the cycle."""

    __slots__ = ("_session",)

    def __init__(self, session: Session):
        self._session = session

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, self._session.confined):
            return False
        self._session.failures.append(replace(failure_of(error), point=UNREPORTED))
        return True


class FailureGuard:
    """Leaves jobs out of the cycle if a plugin raises while they are processed."""

    __slots__ = ("_jobs", "_session")

    def __init__(self, session: Session, jobs: Iterable[Job]):
        self._session = session
        self._jobs = jobs

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, CycleLost):
            error.jobs = error.jobs or tuple(self._jobs)
            return False
        if error is None or not isinstance(error, self._session.confined):
            return False
        exclude(self._session, tuple(self._jobs), failure_of(error))
        return True
