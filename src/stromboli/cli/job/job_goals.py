"""What one may wait for of a job: a phase, its end, or its deletion; and when that can never come true."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api.wait_messages import headline
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import wait_until
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, full_name
from stromboli.cli.following.job_wait import message_of, phase_of
from stromboli.cli.job.job_columns import PENDING, pods_text

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


class JobGoal(NamedTuple):
    """What is awaited: phases that reach it, and phases from which it is never reached."""

    name: str
    reached: frozenset[str]
    never: frozenset[str]


_ENDS = frozenset({"Completed", "Failed", "Terminated"})
_GOALS = (
    JobGoal("completed", frozenset({"Completed"}), frozenset({"Failed", "Terminated", "Aborted"})),
    JobGoal(
        "running", frozenset({"Running", "Completing", "Completed"}), frozenset({"Failed", "Terminated"})
    ),
    JobGoal("pending", frozenset({"Pending"}), _ENDS),
    JobGoal("failed", frozenset({"Failed"}), frozenset({"Completed", "Terminated"})),
    JobGoal("aborted", frozenset({"Aborted"}), _ENDS),
    JobGoal("terminated", frozenset({"Terminated"}), frozenset({"Completed", "Failed"})),
    JobGoal("finished", _ENDS | {"Aborted"}, frozenset()),
    JobGoal("deleted", frozenset(), frozenset()),
)
GOALS = {goal.name: goal for goal in _GOALS}


def goal_of(text: str) -> JobGoal:
    """By its name, however it is capitalized; kubectl's `delete` too."""
    wanted = {"delete": "deleted", "complete": "completed"}.get(text.lower(), text.lower())
    if wanted not in GOALS:
        raise Usage(f"--for {text[:60]!r}: nothing to wait for; there are {', '.join(GOALS)}")
    return GOALS[wanted]


async def await_goal(
    session: ClusterSession,
    name: str,
    goal: JobGoal,
    timeout: float = math.inf,
    namespace: str | None = None,
) -> Manifest | None:
    """The job once the goal is reached; `ClusterError` if it never will be, `TimedOut` if not in time."""
    return await wait_until(
        session,
        JOBS,
        name,
        _test(name, goal),
        timeout,
        namespace,
        meaning=f"the job is {goal.name}",
        tell=lambda job: _progress(name, goal, job),
    )


def _test(name: str, goal: JobGoal) -> Callable[[Manifest | None], bool]:
    seen = False

    def reached(job: Manifest | None) -> bool:
        nonlocal seen
        if job is None:
            if goal.name == "deleted":
                return True
            gone = "was deleted" if seen else "does not exist"
            raise ClusterError(f"{full_name(JOBS, name)} {gone}, so it is never {goal.name}")
        seen = True
        phase = phase_of(job)
        if phase in goal.never:
            why = f": {text}" if (text := message_of(job)) else ""
            raise ClusterError(f"{full_name(JOBS, name)} is {phase}, so it is never {goal.name}{why}")
        return phase in goal.reached

    return reached


def _progress(name: str, goal: JobGoal, job: Manifest | None) -> str:
    if job is None:
        return ""
    why = headline(message_of(job))
    text = f"{name} is {phase_of(job) or PENDING}, {pods_text(job)} pods run; waiting until it is {goal.name}"
    return f"{text}: {why}" if why else text
