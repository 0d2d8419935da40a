"""The garbage collector of finished jobs: deletes them when their TTL is over (spec 06 6)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.types.volcano_job import Job
from stromboli.controllers import selection
from stromboli.controllers.api_writer import FOREGROUND
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.job.job_phases import FINISHED


def seconds_left(job: Job, now: float) -> float | None:
    """Seconds until a job is to be deleted, 0 or less if it is due; None if it has no TTL or is not finished."""
    ttl, since = job.spec.ttl_seconds_after_finished, job.status.state.last_transition_time
    if ttl is None or job.status.state.phase not in FINISHED or job.metadata.deletion_timestamp is not None:
        return None
    return None if since is None else since.timestamp() + ttl - now


class GarbageController(Controller[str]):
    """One key per job, `namespace/name`."""

    name = selection.GC

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.workers = max(1, context.options.worker_threads_for_gc)
        self.jobs = self.watch(Job, self._changed)

    def _changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        return [now.key] if now is not None and seconds_left(now, 0.0) is not None else []

    async def sync(self, key: str) -> float | None:
        job = self.jobs.get(key)
        wait = seconds_left(job, self.context.clock()) if job is not None else None
        if job is None or wait is None or wait > 0:
            return wait
        fresh = await self.context.writer.read(
            Job, job.name, job.namespace
        )  # its time may have been prolonged
        wait = seconds_left(fresh, self.context.clock()) if fresh is not None else None
        if fresh is None or wait is None or wait > 0:
            return wait
        await self.context.writer.delete(fresh, FOREGROUND)
        return None
