"""Time limits that cannot be read: told to whoever wrote them, as they count as none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.errors import quoted
from stromboli.engine.decisions import Event
from stromboli.model.time_limits import EXAMPLE, unreadable_limit

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Dirty
    from stromboli.model.job import Job


def warn_of_limits(session: Session, dirty: Dirty) -> None:
    """Tell in events about jobs and queues that changed what is wrong with their time limits."""
    jobs = session.cluster.jobs.values() if dirty.everything else dirty.jobs
    for job in jobs:
        if job.visible and (text := _unreadable_of(job)) is not None:
            session.record_event(job, "time-limit", names.WARNING, names.EVENT_FIELD_IGNORED, _message(text))
    queues = session.cluster.queues.values() if dirty.everything else dirty.queues
    memory = session.cluster.memory.setdefault("backfill-reservation", {})
    for queue in queues:
        text = unreadable_limit(queue.annotations)
        if text is None:
            memory.pop(queue.name, None)
        elif memory.get(queue.name) != text:
            session.restore_if_lost(memory, queue.name, memory.get(queue.name))
            memory[queue.name] = text
            message = _message(text)
            event = Event("Queue", "", queue.name, names.WARNING, names.EVENT_FIELD_IGNORED, message)
            session.decisions.append(event)


def _unreadable_of(job: Job) -> str | None:
    text = unreadable_limit(job.annotations) if job.time_limit is None else None
    if text is not None:
        return text
    first = next(iter(job.tasks.values()), None)
    return unreadable_limit(first.annotations) if first is not None and first.time_limit is None else None


def _message(text: str) -> str:
    return f"annotation {names.TIME_LIMIT}: {quoted(text[:63])} is no time limit: give {EXAMPLE}; it counts as none"
