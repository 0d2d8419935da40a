"""Puts together the observed state of a job from the stores, and from what was written and is not in them yet."""

from __future__ import annotations

from datetime import UTC, datetime

from stromboli.api import names
from stromboli.api.object_bounds import MAX_JOB_VOLUMES
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import PodGroup, PriorityClass, Queue
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.api.types.volcano_job import Command, Job
from stromboli.controllers.controller import Context
from stromboli.controllers.job.job_pods import group_name, with_default_names
from stromboli.controllers.job.job_record import JobRecord, is_pod_of
from stromboli.controllers.job.job_volumes import generated_claim_name
from stromboli.controllers.job.observed_state import ObservedState
from stromboli.controllers.job.order.job_order import order_of
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.controllers.owner_references import controller_uid, owned_by, owner_key
from stromboli.controllers.store import Index, Store
from stromboli.controllers.watched_kinds import Pod


class JobObserver:
    """Reads the stores of the job controller."""

    def __init__(
        self,
        context: Context,
        plugins: JobPlugins,
        classes: Store[PriorityClass] | None,
        commands: Index[Command] | None,
    ) -> None:
        """Without classes all priorities are equal; without commands there are none. `commands` by the key of a job."""
        self._context = context
        self._plugins = plugins
        self._jobs = context.store(Job)
        self._pods = context.store(Pod)
        self._own_pods = self._pods.index(owned_by)
        self._groups = context.store(PodGroup)
        self._queues = context.store(Queue)
        self._classes = classes
        self._commands = commands

    async def observe(self, job: Job, record: JobRecord) -> ObservedState:
        job = with_default_names(job)
        group = self._group(job, group_name(job)) or self._group(job, job.name)
        await self._find_claims(job, record)
        classes = self._classes or ()
        return ObservedState(
            job=job,
            now=datetime.fromtimestamp(self._context.clock(), UTC),
            plugins=self._plugins,
            pods=record.expectations.pods.observe(
                job, lambda: self._stored_pods(job), lambda name: self._stored_pod(job, name)
            ),
            gone=record.expectations.pods.gone,
            group=record.expectations.group(group),
            queue=self._queues.get(job.spec.queue),
            command=self.command(job.key, record),
            cache=record.cache,
            priorities={priority.name: priority.value for priority in classes} if job.spec.tasks else {},
            has_claim=record.claims.__contains__,
            may_create=not record.objects_are_rejected(job, self._context.clock()),
            obstacle=record.obstacle,
            order=order_of(job, lambda name: self._jobs.get(name, job.namespace)),
        )

    def _stored_pods(self, job: Job) -> list[Pod]:
        return [pod for pod in self._own_pods.unordered(owner_key(job)) if is_pod_of(job.metadata.uid, pod)]

    def _stored_pod(self, job: Job, name: str) -> Pod | None:
        pod = self._pods.get(name, job.namespace)
        return pod if pod is not None and is_pod_of(job.metadata.uid, pod) else None

    def _group(self, job: Job, name: str) -> PodGroup | None:
        """A group of that name if it is the job's; an older Volcano gave it the name of the job."""
        group = self._groups.get(name, job.namespace)
        return group if group is not None and _is_of(job, group) else None

    async def _find_claims(self, job: Job, record: JobRecord) -> None:
        """Look up the claims that a job needs before it starts; each until it was found once."""
        started = job.status.state.phase not in ("", names.POD_PENDING)
        if started or len(job.spec.volumes) > MAX_JOB_VOLUMES:
            return
        for index, volume in enumerate(job.spec.volumes):
            name = volume.volume_claim_name
            if name and name not in record.claims:
                claim = await self._context.writer.read(PersistentVolumeClaim, name, job.namespace)
                if claim is not None and (name != generated_claim_name(job, index) or _is_of(job, claim)):
                    record.claims.add(name)

    def command(self, key: str, record: JobRecord | None) -> Command | None:
        """The oldest command that is not executed yet."""
        if self._commands is None:
            return None
        waiting = self._commands[key]
        if record is not None:
            waiting = record.expectations.commands(waiting)
        return min(waiting, key=_age, default=None)


def _is_of(job: Job, obj: Object) -> bool:
    return job.metadata.uid in controller_uid(obj)


def _age(command: Command) -> tuple[float, str]:
    return (command.metadata.created, command.name)
