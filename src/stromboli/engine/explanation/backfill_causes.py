"""Why a job waits that was promised a start, or that would delay one that was."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from stromboli.api.go_scalars import rfc3339
from stromboli.engine.explanation.wait_cause import Cause, Details

if TYPE_CHECKING:
    from stromboli.engine.plugin import Promise
    from stromboli.engine.session import Session
    from stromboli.model.job import Job

NAMES = 5
"""How many nodes or jobs are named."""
LATEST_TIME = 253402300799.0
"""The last second of the year 9999, which is as far as times can be written."""


def promised_start(session: Session, job: Job) -> Cause | None:
    """Room is reserved for it, and it is known when it starts at the latest."""
    promise = session.rules.promised(job)
    if promise is None:
        return None
    summary, hint = _promise_text(promise), "no action needed: it may start earlier if other jobs end earlier"
    if promise.overdue:
        hint = "wait until these jobs end, or end them"
    shortage = partial(Details, "Reserved", summary, hint)
    return Cause("backfill", summary, hint, shortage)


def _promise_text(promise: Promise) -> str:
    nodes, after = _some(promise.nodes), _some(promise.after)
    if promise.overdue:
        return f"capacity on {nodes} is reserved for it until {after} end, which are over their time limits"
    if not promise.nodes:
        when = f" by {time_text(promise.start)}, after {after} {_verb(promise)}" if after else ""
        return f"queue quota is reserved for it{when}"
    when = f", after {after} {_verb(promise)}" if after else ""
    return f"reserved to start by {time_text(promise.start)} on {nodes}{when}"


def _verb(promise: Promise) -> str:
    return "ends" if len(promise.after) == 1 else "end"


def time_text(seconds: float) -> str:
    """A moment as Kubernetes writes it."""
    return rfc3339(datetime.fromtimestamp(int(min(seconds, LATEST_TIME)), UTC))


def _some(known: tuple[str, ...]) -> str:
    more = f" and {len(known) - NAMES} more" if len(known) > NAMES else ""
    return ", ".join(known[:NAMES]) + more


def held_back(session: Session, job: Job) -> Cause | None:
    """It may have room, but would delay jobs before it."""
    reason = session.held_back.get(job) or session.rules.held_back(job)
    if reason is None:
        return None
    details = partial(Details, "Held back", reason.message, reason.remedy)
    return Cause("backfill", reason.summary, reason.remedy, details)
