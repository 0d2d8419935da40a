"""Why a task or a job is refused and what would help: written where it is refused, rendered where it is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from stromboli.model.task import Task

RemedyText = str | Callable[["Task"], str]
"""A text, or a function that makes it for the task that waits."""


class Rank(IntEnum):
    """How much a refusal explains, the most first: remedies are shown for the refusals of the first rank alone."""

    MISTAKE = 0
    """The pod or its claims are wrong: nothing else helps before they are fixed."""
    CAUSE = 1
    """The node could serve such pods in principle."""
    ABSENCE = 2
    """The node has nothing of what is requested, or is too small."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would help; functions are called only when the remedy is reported, and only about tasks."""

    text: RemedyText = ""
    """The text without volatile numbers, for conditions and events: `label a node with disk=ssd`."""
    in_numbers: RemedyText = ""
    """The text with current numbers, for `stromboli plan`; empty: `text`."""
    rank: Rank | Callable[[Task], Rank] = Rank.CAUSE
    """How much the refusal explains."""

    def steady_text(self, task: Task | None = None) -> str:
        """The remedy for conditions and events; empty if none is known."""
        return _made(self.text, task)

    def current_text(self, task: Task | None = None) -> str:
        """The remedy with the numbers of the moment."""
        return _made(self.in_numbers, task) or self.steady_text(task)

    def rank_for(self, task: Task) -> Rank:
        return self.rank if isinstance(self.rank, Rank) else self.rank(task)


def _made(text: RemedyText, task: Task | None) -> str:
    if isinstance(text, str):
        return text
    return text(task) if task is not None else ""


NO_REMEDY = Remedy()


def remedy_of(given: RemedyText | Remedy) -> Remedy:
    """A remedy as plugins may write it: as a text, as a function that makes one, or in full."""
    if isinstance(given, Remedy):
        return given
    return Remedy(given) if given else NO_REMEDY


class _WhyFields(NamedTuple):
    message: str
    """The text for users, with current names and numbers."""
    remedy: Remedy = NO_REMEDY
    """What would help: a text, a function of the task that makes one, or a `Remedy`."""
    code: str = ""
    """One word for programs: `NotEnoughTasks`."""
    summary: str = ""
    """The message without what changes from cycle to cycle. Default: the message."""
    title: str = ""
    """A few words, the same for all refusals of this kind. Default: the summary."""


class Why(_WhyFields):
    """Why something is refused: the one value that plugins, ledgers and the engine return and all reports render."""

    __slots__ = ()

    def __new__(
        cls,
        message: str,
        remedy: RemedyText | Remedy = "",
        code: str = "",
        summary: str = "",
        title: str = "",
    ) -> Self:
        steady = summary or message
        return super().__new__(cls, message, remedy_of(remedy), code, steady, title or steady)
