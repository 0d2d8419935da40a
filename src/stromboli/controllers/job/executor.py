"""Executes the writes that a reconcile decided: in order, but creations and deletions of pods in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from itertools import groupby
from time import monotonic
from typing import Any, TypeVar

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.patches import STRATEGIC, merge_patch_between
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.api.types.volcano_job import Job, JobStatus, Manifest
from stromboli.controllers.api_writer import decode_response, is_final, is_namespace_terminating
from stromboli.controllers.controller import Context
from stromboli.controllers.job.expectations import Expectations
from stromboli.controllers.job.job_pods import estimated_size
from stromboli.controllers.job.observed_state import (
    Attach,
    CreateClaim,
    CreateGroup,
    CreatePod,
    DeleteCommand,
    DeleteGroup,
    DeletePod,
    Detach,
    LiftGate,
    PatchGroup,
    PatchJob,
    SetStatus,
    Write,
)
from stromboli.controllers.job.owned_objects import NameTaken, attach, detach, refuse_foreign
from stromboli.controllers.owner_references import controller_uid
from stromboli.controllers.pod_group_queues import QueueNotOpen, admitted_queue
from stromboli.controllers.watched_kinds import Pod
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.request import ApiError, LeaseLost, NoResponse

Kind = TypeVar("Kind", bound=Object)
PodWrite = CreatePod | DeletePod | LiftGate
_FAILED = {
    CreatePod: (names.FAILED_CREATE, names.CREATING_FAILED),
    DeletePod: (names.FAILED_DELETE, names.DELETING_FAILED),
    LiftGate: (names.FAILED_RELEASE, names.RELEASING_FAILED),
}
"""The event about writes of pods that failed."""

MAX_PARALLEL = 32
"""Pods of all jobs that are created or deleted at a time."""
FOR_SMALL_JOBS = 8
"""How many of these are left for jobs that create or delete fewer pods than that."""
HUGE_POD = 500
"""Containers, volumes, variables and the like of a pod above which pods are created one at a time, with pauses."""
MAX_ERRORS_SHOWN = 3
"""Errors that one event names."""


class PartialFailure(Exception):
    """Not all pods could be created or deleted."""

    def __init__(self, text: str, cause: Exception) -> None:
        super().__init__(text)
        self.cause = cause
        """The error that decides when the job is tried again."""


class GroupNotCreated(Exception):
    """The PodGroup of the job could not be created for now, and the user must know."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(names.GROUP_NOT_CREATED.format(error=cause))
        self.cause = cause
        """The error that decides when the job is tried again."""


class Stale(Exception):
    """The write does not fit the state of the cluster; reconcile again in a moment."""


class StatusRejected(Exception):
    """The API server will not take the status as long as the job is the same."""


class JobGone(Exception):
    """The job does not exist any more."""


class PacedTurns:
    """One at a time, and after each a pause as long as it took, for whoever has to read it and for others."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._begin = 0.0

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self._begin = monotonic()

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.sleep(monotonic() - self._begin)
        finally:
            self._lock.release()


class Executor:
    """The writes of the job controller."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._writer = context.writer
        self._slots = asyncio.Semaphore(MAX_PARALLEL)
        self._large_job_slots = asyncio.Semaphore(MAX_PARALLEL - FOR_SMALL_JOBS)
        self._huge_pods = PacedTurns()

    @property
    def has_backlog(self) -> bool:
        """Whether no more pods can be created or deleted at once."""
        return self._slots.locked()

    async def execute(self, job: Job, writes: Sequence[Write], expectations: Expectations) -> Job:
        """All writes in order, adjacent ones of pods in parallel; the job as it is then."""
        for kind, group in groupby(writes, type):
            same: list[Any] = list(group)
            if kind is CreatePod:
                await self._in_parallel(job, same, partial(self._create, job, expectations))
            elif kind is DeletePod:
                await self._in_parallel(job, same, partial(self._delete, expectations))
            elif kind is LiftGate:
                await self._in_parallel(job, same, self._lift_gate)
            else:
                for write in same:
                    job = await self._single(job, write, expectations)
        return job

    async def _single(self, job: Job, write: Write, expectations: Expectations) -> Job:
        writer = self._writer
        match write:
            case SetStatus(status):
                return await self._set_status(job, status)
            case PatchJob(patch):
                return self._store_job(await writer.patch(job, patch))
            case CreateGroup(manifest):
                await self._create_group(job, manifest, expectations)
            case PatchGroup(group, changes):
                changed = await writer.patch(group, {"spec": changes}, exact=False)
                self._context.store(PodGroup).mutated(changed)
            case DeleteGroup(group):
                await writer.delete(group)
                expectations.group_deleted(group)
            case CreateClaim(manifest):
                await self._create_owned(job, PersistentVolumeClaim, manifest)
            case Attach(wanted):
                await attach(writer, job, wanted)
            case Detach(unwanted):
                await detach(writer, job, unwanted)
            case DeleteCommand(command):
                await writer.delete(command)
                expectations.command_executed(command.metadata.uid)
        return job

    # -- the job

    def _store_job(self, job: Job | None) -> Job:
        if job is None:
            raise JobGone
        self._context.store(Job).mutated(job)
        return job

    async def _set_status(self, job: Job, status: JobStatus) -> Job:
        before = msgspec.to_builtins(job.status)
        changes = merge_patch_between(before, msgspec.to_builtins(status))
        try:
            written = self._store_job(await self._writer.patch(job, {"status": changes}, "status"))
        except ApiError as error:
            if is_final(error):
                raise StatusRejected(str(error)) from error
            raise
        if status.state.phase != job.status.state.phase:
            self._context.metrics.job_ended(status.state.phase, job.key, job.spec.queue)
        return written

    async def _create_group(self, job: Job, manifest: Manifest, expectations: Expectations) -> None:
        spec = manifest["spec"]
        try:
            queue = await admitted_queue(self._context, spec["queue"], job.namespace)
            group = await self._create_owned(job, PodGroup, {**manifest, "spec": {**spec, "queue": queue}})
        except (ApiError, QueueNotOpen) as error:
            if is_final(error) or is_namespace_terminating(error):
                raise
            raise GroupNotCreated(error) from error
        if group is None:
            raise Stale(f"PodGroup {manifest['metadata']['name']} exists already")
        expectations.group_created(group)

    async def _create_owned(self, job: Job, kind: type[Kind], manifest: Manifest) -> Kind | None:
        """Create an object; None if it exists already and is the job's."""
        answer = await self._writer.create(kind, manifest, job.namespace)
        if answer is not None:
            return decode_response(kind, answer)
        name = manifest["metadata"]["name"]
        existing = await self._writer.read(kind, name, job.namespace)
        if existing is None:
            raise Stale(f'{kind.__name__} "{name}" was there and is gone')
        refuse_foreign(job, kind.__name__, name, controller_uid(existing))
        return None

    # -- pods

    async def _in_parallel(
        self, job: Job, writes: Sequence[PodWrite], execute: Callable[[Any], Awaitable[None]]
    ) -> None:
        """All of them, as far as there are free slots; one that fails does not stop the others."""
        remaining, errors = iter(writes), list[Exception]()

        async def work() -> None:
            for write in remaining:
                try:
                    async with self._turn(write, len(writes)), self._slots:
                        await execute(write)
                except Exception as error:
                    errors.append(error)

        await asyncio.gather(*(work() for _ in range(min(len(writes), MAX_PARALLEL))))
        for error in errors:
            if isinstance(error, LeaseLost) or not isinstance(
                error, ApiError | NoResponse | Stale | NameTaken
            ):
                raise error
        if errors:
            summary = " ".join(str(error)[:200] for error in errors[:MAX_ERRORS_SHOWN])
            more = f" and {len(errors) - MAX_ERRORS_SHOWN} more" if len(errors) > MAX_ERRORS_SHOWN else ""
            reason, text = _FAILED[type(writes[0])]
            self._context.recorder.warning(job, reason, text.format(errors=summary + more))
            raise PartialFailure(f"{len(errors)} of {len(writes)} pods: {summary}{more}", _briefest(errors))

    def _turn(self, write: PodWrite, count: int) -> AbstractAsyncContextManager[None]:
        """What a write, of so many, waits for before it takes one of the slots that all jobs share."""
        if isinstance(write, CreatePod) and estimated_size(write.manifest) > HUGE_POD:
            return self._huge_pods
        return self._large_job_slots if count > MAX_PARALLEL else nullcontext()

    async def _create(self, job: Job, expectations: Expectations, write: CreatePod) -> None:
        """Create a pod; one of this job that exists already and is not in the store yet will do."""
        name = write.manifest["metadata"]["name"]
        answer = await self._writer.create(Pod, write.manifest, job.namespace)
        is_new = answer is not None
        if answer is None:
            answer = await self._writer.read_at(WATCHED_RESOURCES[Pod], name, job.namespace)
            if answer is None:
                raise Stale(f'pod "{name}" was there and is gone')
        pod = decode_as(Pod, answer)
        refuse_foreign(job, "Pod", name, controller_uid(pod))
        expectations.pods.created(pod)
        created, since = pod.metadata.creation_timestamp, job.metadata.creation_timestamp
        if is_new and created is not None and since is not None:
            self._context.metrics.pod_created((created - since).total_seconds())

    async def _lift_gate(self, write: LiftGate) -> None:
        """Remove our gate and what says whom it waits for; other gates stay."""
        patch = {
            "metadata": {"annotations": {names.AFTER: None}},
            "spec": {"schedulingGates": [{"name": names.AFTER, "$patch": "delete"}]},
        }
        changed = await self._writer.patch(write.pod, patch, exact=False, patch_type=STRATEGIC)
        if isinstance(changed, Pod):
            self._context.store(Pod).mutated(changed)

    async def _delete(self, expectations: Expectations, write: DeletePod) -> None:
        pod = write.pod
        expectations.pods.deleted(pod)  # before it is: the watch may be faster than the answer
        try:
            if write.out_of_sync and names.OUT_OF_SYNC not in pod.metadata.annotations:
                patch = {"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}}
                await self._writer.patch(pod, patch, exact=False)
            await self._writer.delete(pod)
        except BaseException:
            expectations.pods.not_deleted(pod)
            raise


def _briefest(errors: list[Exception]) -> Exception:
    """The error that is expected to pass first: a rejection and a name that is taken last longest."""
    return min(errors, key=lambda error: (is_final(error), isinstance(error, NameTaken)))
