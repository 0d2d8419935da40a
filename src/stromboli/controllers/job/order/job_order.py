"""Jobs that wait for other jobs: whether the pods of a job may start, can never start, or for whom they wait.

Which jobs were seen, and which have let it go on, is kept in an annotation of the job, as they may be deleted before
all of them have ended. A job that was seen and is gone will not complete any more; one that was never seen may come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import msgspec

from stromboli.api import names
from stromboli.api.name_cycles import find_cycle, format_cycle
from stromboli.api.predecessors import (
    MEANING,
    SUSPENDED,
    BadPredecessors,
    Predecessor,
    Verdict,
    parse_predecessors,
)
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.job_phases import FINISHED
from stromboli.controllers.user_event import UserEvent

MET = "met"
"""In the annotation, in place of the uid of a job: that job does not have to be waited for any more."""
MAX_WALK = 500
"""Jobs that are looked at to see whether jobs wait for each other."""
MAX_OBSERVED = 32 * 1024
NAMES_SHOWN = 5
FindJob = Callable[[str], Job | None]
"""A job of the same namespace by its name."""
read_predecessors = lru_cache(maxsize=4096)(parse_predecessors)


class Obstacle(NamedTuple):
    """What keeps a job from the objects that it needs, for its status."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class JobOrder:
    """What follows for a job from those that it waits for."""

    holds: bool = False
    """Whether its pods must not start yet."""
    failure: str = ""
    """Why they never will."""
    observed: Mapping[str, str] = field(default_factory=dict)
    """What the annotation of the job should say."""
    is_noted: bool = True
    """Whether it says so already."""
    events: tuple[UserEvent, ...] = ()
    obstacle: Obstacle | None = None


NO_ORDER = JobOrder()


def predecessors_of(job: Job) -> tuple[Predecessor, ...]:
    """The jobs that a job waits for; none if its annotation cannot be read."""
    text = job.metadata.annotations.get(names.AFTER)
    if text is None:
        return ()
    try:
        return read_predecessors(text)
    except BadPredecessors:
        return ()


def order_of(job: Job, find: FindJob) -> JobOrder:
    """Whether a job may start, by the jobs that exist."""
    text = job.metadata.annotations.get(names.AFTER)
    if text is None or job.status.state.phase in FINISHED:
        return NO_ORDER
    try:
        predecessors = read_predecessors(text)
    except BadPredecessors as error:
        message = names.AFTER_INVALID_MESSAGE.format(annotation=names.AFTER, problem=error)
        obstacle = Obstacle(names.AFTER_INVALID, message)
        return JobOrder(True, events=(_warning(*obstacle),), obstacle=obstacle)
    before = _observed(job)
    judged = [(each, *_judge(each, find(each.name), before.get(str(each), ""))) for each in predecessors]
    observed = {str(each): seen for each, _, seen in judged if seen}
    noted = observed == before
    for each, verdict, _ in judged:
        if verdict is Verdict.NEVER:
            return JobOrder(True, _failure(each, find(each.name)), observed, noted)
    waiting = [each for each, verdict, _ in judged if verdict is Verdict.WAITS]
    if not waiting:
        shown = _listed([each.name for each in predecessors])
        event = UserEvent(names.NORMAL, names.AFTER_MET, names.AFTER_MET_MESSAGE.format(jobs=shown))
        return JobOrder(False, "", observed, noted, () if noted else (event,))
    return _waits(job, find, waiting, observed, noted)


def _judge(each: Predecessor, other: Job | None, seen: str) -> tuple[Verdict, str]:
    """What a job means for one that waits for it, and what to note of it."""
    if seen == MET:
        return Verdict.MET, MET
    if other is None or (seen and other.metadata.uid != seen):
        verdict = each.when_deleted if seen else Verdict.WAITS
        return verdict, MET if verdict is Verdict.MET else seen
    verdict = each.verdict(other.status.state.phase)
    return verdict, MET if verdict is Verdict.MET else other.metadata.uid


def _failure(each: Predecessor, other: Job | None) -> str:
    phase = other.status.state.phase if other is not None else ""
    why = f"that is {phase}" if phase and each.verdict(phase) is Verdict.NEVER else "that was deleted"
    return names.AFTER_FAILED_MESSAGE.format(condition=MEANING[each.after], name=each.name, why=why)


def _waits(
    job: Job, find: FindJob, waiting: list[Predecessor], observed: Mapping[str, str], noted: bool
) -> JobOrder:
    shown = _listed([f"{MEANING[each.after]} of job {_described(each.name, find)}" for each in waiting])
    text = names.WAITS_FOR_JOBS_MESSAGE.format(jobs=shown, annotation=names.AFTER)
    reason, told = names.WAITS_FOR_JOBS, text
    warnings = []
    missing = [each.name for each in waiting if str(each) not in observed]
    if missing:
        reason, told = (
            names.AFTER_MISSING,
            names.AFTER_MISSING_MESSAGE.format(name=_listed(missing), namespace=job.namespace),
        )
        warnings.append(_warning(reason, told))
    if cycle := _cycle(job, find):
        reason, told = names.AFTER_CYCLE, names.AFTER_CYCLE_MESSAGE.format(cycle=format_cycle(cycle))
        warnings.append(_warning(reason, told))
    events = warnings or [UserEvent(names.NORMAL, names.WAITS_FOR_JOBS, text)]
    return JobOrder(True, "", observed, noted, tuple(events), Obstacle(reason, told))


def _described(name: str, find: FindJob) -> str:
    other = find(name)
    is_suspended = other is not None and other.status.state.phase in SUSPENDED
    return f"{name}, which is suspended" if is_suspended else name


def _cycle(job: Job, find: FindJob) -> list[str]:
    """The jobs that wait for each other, this one among them, from it on."""
    waits: dict[str, list[str]] = {}
    left = [job.name]
    while left and len(waits) < MAX_WALK:
        name = left.pop()
        other = job if name == job.name else find(name)
        if name in waits or other is None or other.status.state.phase in FINISHED:
            continue
        met = {key for key, seen in _observed(other).items() if seen == MET}
        waits[name] = [each.name for each in predecessors_of(other) if str(each) not in met]
        left += waits[name]
    cycle = find_cycle({job.name: waits.pop(job.name, []), **waits})
    if job.name not in cycle:
        return []
    at = cycle.index(job.name)
    return cycle[at:] + cycle[:at]


def _observed(job: Job) -> dict[str, str]:
    """What the annotation says that we have set; nothing if somebody else has broken it."""
    text = job.metadata.annotations.get(names.AFTER_OBSERVED, "")
    if not text or len(text) > MAX_OBSERVED:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, RecursionError):
        return {}


def observed_text(observed: Mapping[str, str]) -> str:
    """For the annotation."""
    return msgspec.json.encode(dict(sorted(observed.items()))).decode()


def _warning(reason: str, message: str) -> UserEvent:
    return UserEvent(names.WARNING, reason, message)


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - NAMES_SHOWN} more" if len(texts) > NAMES_SHOWN else ""
    return ", ".join(texts[:NAMES_SHOWN]) + more
