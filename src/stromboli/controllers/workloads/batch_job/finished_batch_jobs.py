"""Deletes Jobs of `batch/v1` when the time is over that `ttlSecondsAfterFinished` gives them."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.controllers.api_writer import FOREGROUND
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob


def seconds_to_live(job: BatchJob, now: float) -> float | None:
    """Seconds until a job is to be deleted, 0 or less if it is due; None if it has no limit or has not ended."""
    ttl, end = job.spec.ttl_seconds_after_finished, job.finished
    if ttl is None or end is None or job.metadata.deletion_timestamp is not None:
        return None
    since = end.last_transition_time
    return None if since is None else since.timestamp() + ttl - now


class FinishedBatchJobController(Controller[str]):
    """One key per job, `namespace/name`."""

    name = "ttl-after-finished-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.jobs = self.watch(BatchJob, self._changed)

    def _changed(self, before: BatchJob | None, now: BatchJob | None) -> Iterable[str]:
        return [now.key] if now is not None and seconds_to_live(now, 0.0) is not None else []

    async def sync(self, key: str) -> float | None:
        """What the API server has decides: the time may have been prolonged."""
        job = self.jobs.get(key)
        wait = seconds_to_live(job, self.context.clock()) if job is not None else None
        if job is None or wait is None or wait > 0:
            return wait
        fresh = await self.context.writer.read(BatchJob, job.name, job.namespace)
        wait = seconds_to_live(fresh, self.context.clock()) if fresh is not None else None
        if fresh is None or wait is None or wait > 0:
            return wait
        await self.context.writer.delete(fresh, FOREGROUND)
        return None
