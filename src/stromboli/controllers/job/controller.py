"""The job controller: watches jobs and their objects, reconciles jobs that changed, and executes the outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from time import monotonic, thread_time

from stromboli.api import names
from stromboli.api.types.scheduling import PodGroup, PriorityClass, Queue
from stromboli.api.types.volcano_job import Command, Job
from stromboli.controllers import selection
from stromboli.controllers.api_writer import FINAL_PAUSE, is_final
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.job.executor import (
    Executor,
    GroupNotCreated,
    JobGone,
    PartialFailure,
    Stale,
    StatusRejected,
)
from stromboli.controllers.job.expectations import Expectations
from stromboli.controllers.job.job_observer import JobObserver
from stromboli.controllers.job.job_pods import with_default_names
from stromboli.controllers.job.job_record import JobRecord, content_of
from stromboli.controllers.job.job_status import only_counts_differ
from stromboli.controllers.job.observed_state import ObservedState, Outcome, SetStatus
from stromboli.controllers.job.order.job_order import Obstacle, predecessors_of
from stromboli.controllers.job.owned_objects import NameTaken
from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins
from stromboli.controllers.job.reconcile import reconcile
from stromboli.controllers.owner_references import BATCH_VERSION, controller_keys
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.request import ApiError, Backoff

log = logging.getLogger(__name__)

MAX_RECONCILES = 12
"""Reconciles of a job in a row before the other keys have their turn."""
KEYS_PER_WORKER = 8
"""Jobs synced at a time per `--worker-threads`, as ours are tasks and no threads."""
FIRST_STATUS_WITHIN = 30.0
"""Seconds after which the first status of a job is written even if pods of others still wait to be created."""
SMALL_BATCH = 100
"""Writes that a job may have at a time and still counts as small."""
LARGE_RETRY = 0.5
"""Seconds until a large job is requeued while half of the workers have such jobs."""
RETRY_SOON = 1.0
NAME_TAKEN_RETRY = Backoff(first=1.0, longest=60.0)
"""Until a job is requeued that needs a name which another object has."""
ORPHAN_COMMAND_TTL = 60.0
"""Seconds after which a command is deleted whose job does not exist."""


class JobController(Controller[str]):
    """Keys are `namespace/name` of jobs."""

    name = selection.JOB
    status_period: float = 1.0
    """Seconds between two writes of a status in which only the counts changed."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.workers = max(1, context.options.worker_threads) * KEYS_PER_WORKER
        self.max_retries = context.options.max_requeue_num
        self._executor = Executor(context)
        self._large_jobs = asyncio.Semaphore(max(1, self.workers // 2))
        """Held while many objects of a job are written, so that small jobs find a worker."""
        self._records: dict[str, JobRecord] = {}
        self._reconciling: set[str] = set()
        """Jobs that are reconciled again right after our writes, so that those need not enqueue them."""
        self._held: set[str] = set()
        """Jobs whose first status waits until pods of others are created."""
        self._jobs = self.watch(Job, self._job_changed)
        self._successors = self._jobs.index(_predecessor_keys)
        self.watch(Pod, self._pod_changed)
        self.watch(PodGroup, self._group_changed)
        self.watch(Queue)
        classes = self.watch(PriorityClass) if context.options.gate("PriorityClass") else None
        commands = None
        if context.options.gate("QueueCommandSync"):
            commands = self.watch(Command, _command_changed).index(_target)
        plugins = load_job_plugins(context.options.plugins_dir)
        self._observer = JobObserver(context, plugins, classes, commands)

    # -- which jobs a change enqueues

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterator[str]:
        job = now or before
        if job is None:
            return
        if job.key not in self._reconciling:
            yield job.key
        if before is None or now is None or _course(before) != _course(now):
            for successor in self._successors.unordered(job.key):
                yield from self._has_news(successor.key)

    def _pod_changed(self, before: Pod | None, now: Pod | None) -> Iterator[str]:
        """The jobs for which that is news: not if nothing changed that decisions about a job depend on."""
        for key in controller_keys(Job, before, now):
            record = self._records.get(key)
            if record is None or record.pod_changed(before, now):
                yield from self._has_news(key)

    def _group_changed(self, before: PodGroup | None, now: PodGroup | None) -> Iterator[str]:
        for key in controller_keys(Job, before, now):
            record = self._records.get(key)
            if record is None or now is None or not record.expectations.group_observed(now):
                yield from self._has_news(key)

    def _has_news(self, key: str) -> Iterator[str]:
        """A job is enqueued, unless it is being reconciled and will be once more."""
        if key not in self._reconciling:
            yield key
        elif (record := self._records.get(key)) is not None:
            record.news += 1

    # -- one job

    async def sync(self, key: str) -> float | None:
        for _ in range(MAX_RECONCILES):
            job = self._jobs.get(key)
            if job is None:
                return await self._job_deleted(key)
            record = self._record_of(key, job)
            if record.status_is_rejected(job, self.context.clock()):
                return FINAL_PAUSE
            observed = await self._observer.observe(job, record)
            news, begin = record.news, thread_time()
            outcome = self._reconcile(observed)
            turn = self._large_jobs if len(outcome.writes) > SMALL_BATCH else None
            if turn is not None and turn.locked():
                return LARGE_RETRY
            for event in outcome.events:
                self.context.recorder.record(job, event)
            record.events_recorded(outcome)
            delay = self._status_delay(observed, outcome, record)
            if delay > 0:
                outcome = replace(outcome, writes=outcome.writes[:-1])
            if not outcome.writes:
                self.rest(key, thread_time() - begin)
                record.carried_out(observed, outcome)
                return self._requeue_after(observed, outcome, record, delay)
            async with turn or nullcontext():
                requeue_after = await self._execute(observed, outcome, record)
            if requeue_after is not None:
                return requeue_after
            if outcome.settled and record.news == news and self._jobs.get(key) is record.written:
                return self._requeue_after(observed, outcome, record, delay)
        return 0.0

    def _reconcile(self, observed: ObservedState) -> Outcome:
        return reconcile(observed)

    async def _execute(self, observed: ObservedState, outcome: Outcome, record: JobRecord) -> float | None:
        """Execute the writes; seconds after which to requeue the job if they could not all be executed for now."""
        self._reconciling.add(observed.job.key)
        news, is_written = record.news, False
        try:
            record.written = await self._executor.execute(observed.job, outcome.writes, record.expectations)
            is_written = True
        except Stale as error:
            log.debug("job %s: %s", observed.job.key, error)
            return RETRY_SOON
        except JobGone:
            return RETRY_SOON
        except StatusRejected as error:
            record.reject_status(observed.job, self.context.clock())
            self.context.recorder.warning(
                observed.job, names.REJECTED, names.STATUS_REJECTED.format(error=error)
            )
            return FINAL_PAUSE
        except GroupNotCreated as error:
            obstacle = Obstacle(names.FAILED_CREATE, str(error))
            record.obstacle = self._record_obstacle(observed.job, record, obstacle)
            await self._write_counts(observed.job.key, record)
            raise error.cause from None
        except (PartialFailure, NameTaken) as error:
            cause = error.cause if isinstance(error, PartialFailure) else error
            return await self._obstructed(observed.job, record, cause)
        except ApiError as error:
            if not is_final(error):
                raise
            return await self._obstructed(observed.job, record, error)
        finally:
            self._reconciling.discard(observed.job.key)
            if not is_written and self._changed_meanwhile(observed.job, record, news):
                self.queue.add(observed.job.key)
            self._release_held()
        if any(isinstance(write, SetStatus) for write in outcome.writes):
            record.status_written = monotonic()
        record.carried_out(observed, outcome)
        if observed.may_create:
            record.obstacle, record.failures = None, 0
        return None

    def _changed_meanwhile(self, job: Job, record: JobRecord, news: int) -> bool:
        """Whether others have changed a job since it was observed, while changes did not enqueue it."""
        now = self._jobs.get(job.key)
        return record.news != news or now is None or content_of(with_default_names(now)) != content_of(job)

    async def _obstructed(self, job: Job, record: JobRecord, cause: Exception) -> float:
        """Not all objects could be created: write what there is and what is in the way; when to try again."""
        if isinstance(cause, NameTaken):
            record.obstacle = self._record_obstacle(job, record, Obstacle(names.NAME_TAKEN, str(cause)))
        elif is_final(cause):
            record.reject_objects(job, self.context.clock())
            why = names.REJECTED_MESSAGE.format(error=cause)
            record.obstacle = self._record_obstacle(job, record, Obstacle(names.REJECTED, why))
        record.failures += 1
        await self._write_counts(job.key, record)
        if isinstance(cause, NameTaken):
            return NAME_TAKEN_RETRY.pause(record.failures)
        if is_final(cause):
            return FINAL_PAUSE
        if isinstance(cause, Stale):
            return RETRY_SOON
        raise cause

    def _record_obstacle(self, job: Job, record: JobRecord, obstacle: Obstacle) -> Obstacle:
        """Record an event for an obstacle that was not met the last time."""
        if record.obstacle != obstacle:
            self.context.recorder.warning(job, *obstacle)
        return obstacle

    async def _write_counts(self, key: str, record: JobRecord) -> None:
        """After pods could not be created: write at least the counts of those that exist."""
        job = self._jobs.get(key)
        if job is not None:
            observed = replace(await self._observer.observe(job, record), may_create=False)
            writes = self._reconcile(observed).writes
            status = [write for write in writes if isinstance(write, SetStatus)]
            with suppress(JobGone, StatusRejected):
                await self._executor.execute(job, status, record.expectations)

    def _status_delay(self, observed: ObservedState, outcome: Outcome, record: JobRecord) -> float:
        """Seconds for which the last write may wait, if it is the first status, or one in which only counts changed."""
        match outcome.writes:
            case (*_, SetStatus(status)):
                age, before = monotonic() - record.status_written, observed.job.status
                if not before.state.phase and not status.state.reason:
                    return self._first_status_due(observed) - age
                if observed.pods.is_recorded and only_counts_differ(status, before):
                    return self.status_period - age
        return 0.0

    def _first_status_due(self, observed: ObservedState) -> float:
        """How old a job is when its first status, with its pods, is written: pods of others that wait go first."""
        if self._executor.has_backlog:
            self._held.add(observed.job.key)
            return FIRST_STATUS_WITHIN
        return 0.0 if observed.pods.live else self.status_period

    def _release_held(self) -> None:
        """The jobs whose first status waited for pods of others are looked at once those are created."""
        if self._held and not self._executor.has_backlog:
            for key in self._held:
                self.queue.add(key)
            self._held.clear()

    def _requeue_after(
        self, observed: ObservedState, outcome: Outcome, record: JobRecord, status_delay: float
    ) -> float | None:
        delays = [status_delay] if status_delay > 0 else []
        if outcome.requeue_at is not None:
            delays.append((outcome.requeue_at - observed.now).total_seconds())
        if record.expectations.until is not None:
            delays.append(record.expectations.until - self.context.clock())
        return max(0.01, min(delays)) if delays else None

    def gave_up(self, key: str, error: Exception) -> None:
        job = self._jobs.get(key)
        if job is not None:
            text = f"The job is left alone for 5 minutes after too many failures: {error}"
            self.context.recorder.warning(job, names.EXECUTE_ACTION, text)

    # -- the observed state

    def _record_of(self, key: str, job: Job) -> JobRecord:
        record = self._records.get(key)
        if record is None or record.uid != job.metadata.uid:
            record = self._records[key] = JobRecord(
                job.metadata.uid, job.spec.queue, Expectations(self.context.clock)
            )
        return record

    async def _job_deleted(self, key: str) -> float | None:
        """Forget the job and its commands; a young command may be for a job that is not in the store yet."""
        record = self._records.pop(key, None)
        self.rests_until.pop(key, None)
        if record is not None:
            self.context.metrics.forget_job(key, record.queue)
        command = self._observer.command(key, None)
        if command is None:
            return None
        since = command.metadata.creation_timestamp
        age = self.context.clock() - since.timestamp() if since is not None else ORPHAN_COMMAND_TTL
        if age < ORPHAN_COMMAND_TTL:
            return ORPHAN_COMMAND_TTL - age
        await self.context.writer.delete(command)
        return RETRY_SOON


def _course(job: Job) -> tuple[str, str]:
    """What jobs that wait for this one look at."""
    return job.metadata.uid, job.status.state.phase


def _predecessor_keys(job: Job) -> Iterator[str]:
    """The jobs that a job waits for."""
    for predecessor in predecessors_of(job):
        yield f"{job.namespace}/{predecessor.name}"


def _target(command: Command) -> Iterator[str]:
    target = command.target
    if target is not None and target.kind == "Job" and target.api_version == BATCH_VERSION:
        yield f"{command.namespace}/{target.name}"


def _command_changed(before: Command | None, now: Command | None) -> Iterator[str]:
    if now is not None:
        yield from _target(now)
