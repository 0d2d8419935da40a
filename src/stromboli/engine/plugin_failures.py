"""What a plugin raised: the plugin, the extension point and the error; and the guard that confines it to some jobs."""

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

LONGEST = 500
MAX_JOBS = 3
"""Jobs that a line of the log names; the others are counted."""
UNREPORTED = "outcome"
"""The point of a failure to say what became of a job."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, with the plugin and the extension point that were asked, if any were."""

    plugin: str
    point: str
    error: str
    kind: str = ""
    """The type of the error."""
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, with its traceback."""
    jobs: str = field(default="", compare=False, repr=False)
    """The jobs over which it was raised, for the log."""

    @property
    def message(self) -> str:
        return f"{self._where}: {self.error}"

    @property
    def summary(self) -> str:
        """Without the text of the error, which may be another one each time, unless a part of it is always the same."""
        steady = f": {self.cause.summary}" if isinstance(self.cause, BadAnswer) else ""
        return f"{self._where}: {self.kind}{steady}"

    @property
    def why(self) -> Why:
        """The same for the user of a job."""
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
    """A failure that costs the cycle, never the state."""

    def __init__(self, failure: Failure):
        super().__init__(failure.message)
        self.failure = failure
        self.jobs: tuple[Job, ...] = ()
        """The jobs that were worked on, if any were."""


def failure_of(error: BaseException) -> Failure:
    """The failure of the plugin that was asked when the error came up, if any was."""
    plugin, point = take_attribution(error)
    raised = error.__cause__ if isinstance(error, PluginExit) and error.__cause__ else error
    text = error_text(raised)
    shortened = text if len(text) <= LONGEST else text[:LONGEST] + "..."
    return Failure(plugin, point, shortened, type(raised).__name__, error)


def over(jobs: Sequence[Job], failure: Failure) -> Failure:
    """The same failure, with the jobs over which it came up."""
    more = f" and {len(jobs) - MAX_JOBS} more" if len(jobs) > MAX_JOBS else ""
    listed = ", ".join(job.key for job in jobs[:MAX_JOBS])
    return replace(failure, jobs=f"job {listed}{more}") if jobs else failure


def exclude(session: Session, jobs: Sequence[Job], failure: Failure) -> None:
    """Place none of these jobs in this session, as a plugin failed over them."""
    session.failures.append(over(jobs, failure))
    for job in jobs:
        _report(session, job, failure)


def exclude_failed_before(session: Session, job: Job, failure: Failure) -> None:
    """Place no task of a job, whatever an action tries, as a plugin failed over it in an earlier cycle."""
    session.reports.failed[job] = failure
    _report(session, job, failure)


def _report(session: Session, job: Job, failure: Failure) -> None:
    """Report to the user of a job what failed over it."""
    session.leave_out(job, failure.why)
    for task in job.by_status[Status.PENDING]:
        session.attempts.verdicts.setdefault(job, {})[task] = Verdict(why=failure.why)
        session.attempts.tentative.pop(task, None)


class ReportGuard:
    """Records what is raised while the outcome of a job is reported, which must not cost the cycle."""

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
    """Leaves jobs out of the cycle if a plugin raises while they are worked on."""

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
