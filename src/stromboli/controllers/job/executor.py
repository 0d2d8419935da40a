"""Carrying out what a look at a job came to: in order, but pods together, as many at a time as is polite."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import Job, JobPod, JobStatus, Manifest
from stromboli.controllers.api_writer import Deposed
from stromboli.controllers.context import Desk
from stromboli.controllers.job.expectations import Echoes
from stromboli.controllers.job.job_phases import Phase
from stromboli.controllers.job.observed_state import (
    Attach,
    CreateClaim,
    CreateGroup,
    CreatePod,
    DeleteCommand,
    DeleteGroup,
    DeletePod,
    Detach,
    PatchGroup,
    PatchJob,
    SetStatus,
    Write,
)
from stromboli.controllers.job.owned_objects import attach, detach
from stromboli.controllers.merge_patch_diff import merge_patch
from stromboli.controllers.store import controller_uid
from stromboli.controllers.watched_kinds import PLACES, Pod
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import ApiError, NoResponse

Action = Callable[[], Awaitable[None]]
"""A write that has not begun."""

AT_ONCE = 32
"""Pods that are made or deleted at a time, of all jobs."""
SHOWN = 3
"""Errors that one event names."""


class Incomplete(Exception):
    """Not all pods could be made or deleted; what else is to be said of the job may be said."""

    def __init__(self, text: str, first: BaseException) -> None:
        super().__init__(text)
        self.first = first


class Stale(Exception):
    """What is to be written does not fit what is there; look again in a moment."""


class Blocked(Stale):
    """Somebody else has the name of a pod."""


class Gone(Exception):
    """The job does not exist any more."""


class Hand:
    """Writes for the job controller."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._pen = desk.pen
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def carry_out(self, job: Job, writes: Sequence[Write], echoes: Echoes) -> Job:
        """All writes, one after the other, pods next to each other together; the job as it is then."""
        for kind, group in groupby(writes, type):
            same: list[Any] = list(group)
            if kind is CreatePod:
                creations = [partial(self._create, job, one, echoes) for one in same]
                await self._together(job, names.FAILED_CREATE, creations)
            elif kind is DeletePod:
                deletions = [partial(self._delete, one, echoes) for one in same]
                await self._together(job, names.FAILED_DELETE, deletions)
            else:
                for one in same:
                    job = await self._single(job, one, echoes)
        return job

    async def _single(self, job: Job, write: Write, echoes: Echoes) -> Job:
        pen, namespace = self._pen, job.namespace
        match write:
            case SetStatus(status):
                return await self._set_status(job, status)
            case PatchJob(patch):
                return self._learnt(await pen.patch(job, patch))
            case CreateGroup(manifest):
                await self._create_group(manifest, namespace, echoes)
            case PatchGroup(group, changes):
                changed = await pen.patch(group, {"spec": changes}, exact=False)
                self._desk.shelf(PodGroup).learn(changed)
            case DeleteGroup(group):
                await pen.delete(group)
                echoes.deleted(group.metadata.uid)
            case CreateClaim(manifest):
                resource = next(one for kind, one in RESOURCES.items() if kind.__name__ == manifest["kind"])
                await pen.create(resource, manifest, namespace)
            case Attach(wanted):
                await attach(pen, job, wanted)
            case Detach(unwanted):
                await detach(pen, job, unwanted)
            case DeleteCommand(command):
                await pen.delete(command)
                echoes.obeyed(command.metadata.uid)
        return job

    # -- the job

    def _learnt(self, job: Job | None) -> Job:
        if job is None:
            raise Gone
        self._desk.shelf(Job).learn(job)
        return job

    async def _set_status(self, job: Job, status: JobStatus) -> Job:
        before = msgspec.to_builtins(job.status)
        changes = merge_patch(before, msgspec.to_builtins(status))
        written = self._learnt(await self._pen.patch(job, {"status": changes}, "status"))
        if status.state.phase != job.status.state.phase:
            labels = (job.key, job.spec.queue)
            if status.state.phase == Phase.COMPLETED:
                self._desk.metrics.completed_jobs.labels(*labels).inc()
            elif status.state.phase == Phase.FAILED:
                self._desk.metrics.failed_jobs.labels(*labels).inc()
        return written

    async def _create_group(self, manifest: Manifest, namespace: str, echoes: Echoes) -> None:
        answer = await self._pen.create(PodGroup, manifest, namespace)
        if answer is None:
            raise Stale(f"PodGroup {manifest['metadata']['name']} exists already")
        group = decode_as(PodGroup, answer)
        assert isinstance(group, PodGroup)
        echoes.made_group(group)

    # -- pods

    async def _together(self, job: Job, reason: str, writes: Sequence[Action]) -> None:
        """All at once, as far as the gate lets them through; what fails does not keep the others."""

        # So that no job fills the queue before the gate, and others wait behind it.
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(write: Action) -> None:
            async with turns, self._gate:
                await write()

        results = await asyncio.gather(*map(one, writes), return_exceptions=True)
        errors = [error for error in results if isinstance(error, BaseException)]
        for error in errors:
            if isinstance(error, Deposed) or not isinstance(error, ApiError | NoResponse | Stale):
                raise error
        if errors:
            shown = " ".join(str(error)[:200] for error in errors[:SHOWN])
            more = f" and {len(errors) - SHOWN} more" if len(errors) > SHOWN else ""
            text = names.CREATING_FAILED if reason == names.FAILED_CREATE else names.DELETING_FAILED
            self._desk.voice.warning(job, reason, text.format(errors=shown + more))
            raise Incomplete(f"{len(errors)} of {len(writes)} pods: {shown}{more}", errors[0])

    async def _create(self, job: Job, write: CreatePod, echoes: Echoes) -> None:
        """Make a pod; one that we made already, and have not seen yet, is as good."""
        name = write.manifest["metadata"]["name"]
        answer = await self._pen.create(Pod, write.manifest, job.namespace)
        is_new = answer is not None
        if answer is None:
            answer = await self._pen.read_at(PLACES[Pod], name, job.namespace)
            if answer is None:
                raise Stale(f'pod "{name}" was there and is gone')
        pod = decode_as(Pod, answer)
        assert isinstance(pod, JobPod)
        if job.metadata.uid not in controller_uid(pod):
            raise Blocked(f'pod "{name}" exists already and is not of this job; delete or rename it')
        echoes.made_pod(pod)
        created, since = pod.metadata.creation_timestamp, job.metadata.creation_timestamp
        if is_new and created is not None and since is not None:
            self._desk.metrics.pod_creation.observe((created - since).total_seconds() * 1000)

    async def _delete(self, write: DeletePod, echoes: Echoes) -> None:
        pod = write.pod
        if write.mark and names.OUT_OF_SYNC not in pod.metadata.annotations:
            mark = {"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}}
            await self._pen.patch(pod, mark, exact=False)
        await self._pen.delete(pod)
        echoes.deleted(pod.metadata.uid)
