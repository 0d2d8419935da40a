"""What a plugin raised: the plugin, the extension point and the error; and the guard that confines it to some jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job

LONGEST = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, with the plugin and the extension point that were asked, if any were."""

    plugin: str
    point: str
    error: str
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, with its traceback."""

    @property
    def message(self) -> str:
        where = f"plugin {self.plugin!r} failed in {self.point}" if self.plugin else "scheduling failed"
        return f"{where}: {self.error}"


class CycleLost(Exception):
    """A failure that costs the cycle, never the state."""

    def __init__(self, failure: Failure):
        super().__init__(failure.message)
        self.failure = failure


def failure_of(error: BaseException) -> Failure:
    """The failure of the plugin that was asked when the error came up, if any was."""
    plugin, point = vars(error).pop("__asked__", ("", ""))  # a plugin may raise the same object again
    text = f"{type(error).__name__}: {error}"
    return Failure(plugin, point, text if len(text) <= LONGEST else text[:LONGEST] + "...", error)


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
        if not isinstance(error, Exception) or isinstance(error, CycleLost):
            return False
        self._session.exclude(self._jobs, failure_of(error))
        return True
