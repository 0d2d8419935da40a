"""The job controller: watches jobs and what belongs to them, looks at those that changed, writes what comes of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic

import msgspec

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import PodGroup, PriorityClass, Queue
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.api.types.volcano_job import Command, Job, JobStatus
from stromboli.controllers import selection
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller
from stromboli.controllers.job.executor import Blocked, Gone, Hand, Incomplete, Stale
from stromboli.controllers.job.expectations import Echoes
from stromboli.controllers.job.job_pods import API_VERSION, group_name
from stromboli.controllers.job.observed_events import Memory, version_of
from stromboli.controllers.job.observed_state import Outcome, Scene, SetStatus
from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins
from stromboli.controllers.job.reconcile import look
from stromboli.controllers.store import controller_uid
from stromboli.controllers.watched_kinds import Pod
from stromboli.daemon.metric_types import forget

log = logging.getLogger(__name__)

ROUNDS = 12
"""Looks in a row at one job before the others have their turn."""
AT_A_TIME = 8
"""Jobs at a time for every worker thread that the flags ask for: ours are no threads."""
MANY = 20
"""Jobs that wait to be looked at."""
MOMENT = 1.0
BLOCKED = 15.0
"""Seconds until we look again whether a name is free that somebody else had."""
PATIENCE = 60.0
"""Seconds until a command is given up whose job nobody has seen."""


@dataclass(slots=True)
class File:
    """What is kept about one job between two looks."""

    uid: str
    queue: str
    echoes: Echoes
    memory: Memory = field(default_factory=Memory)
    claims: set[str] = field(default_factory=set)
    told: float = field(default_factory=monotonic)
    """When the status was last written, or we first saw the job."""


class JobController(Controller[str]):
    """Keys are `namespace/name` of jobs."""

    name = selection.JOB
    rest: float = 1.0
    """Seconds between two writes of a status in which only the counts changed."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.workers = max(1, desk.options.worker_threads) * AT_A_TIME
        self.most_retries = desk.options.max_requeue_num
        self._plugins = load_job_plugins(desk.options.plugins_dir)
        self._hand = Hand(desk)
        self._files: dict[str, File] = {}
        self._looks_again: set[str] = set()
        """Jobs that are being written about and looked at right afterwards, so that no news of them is needed."""
        self._jobs = self.watch(Job, self._of_job)
        self._pods = self.watch(Pod, self._of_pod)
        self._own_pods = self._pods.index(controller_uid)
        self._groups = self.watch(PodGroup, self._of_group)
        self._queues = self.watch(Queue)
        self._classes = self.watch(PriorityClass) if desk.options.gate("PriorityClass") else None
        self._commands = None
        if desk.options.gate("QueueCommandSync"):
            self._commands = self.watch(Command, _of_command).index(_target)

    # -- which jobs a change concerns

    def _of_job(self, before: Job | None, now: Job | None) -> Iterator[str]:
        thing = now or before
        if thing is not None and thing.key not in self._looks_again:
            yield thing.key

    def _of_pod(self, before: Pod | None, now: Pod | None) -> Iterator[str]:
        thing = now or before
        for key in _owning_job(thing):
            file = self._files.get(key)
            if file is not None and thing is not None:
                is_known = file.echoes.knows(thing) if now is not None else file.echoes.pod_gone(thing)
                if is_known:
                    continue
            if key not in self._looks_again:
                yield key

    def _of_group(self, before: PodGroup | None, now: PodGroup | None) -> Iterator[str]:
        yield from (key for key in _owning_job(now or before) if key not in self._looks_again)

    # -- one job

    async def sync(self, key: str) -> float | None:
        for _ in range(ROUNDS):
            job = self._jobs.at(key)
            if job is None:
                return await self._without_job(key)
            file = self._file(key, job)
            scene = await self._scene(job, file)
            outcome = look(scene)
            self._tell(job, outcome)
            rest = self._rest(scene, outcome, file)
            if rest > 0:
                outcome = replace(outcome, writes=outcome.writes[:-1])
            if not outcome.writes:
                file.memory = outcome.memory
                return self._again(scene, outcome, file, rest)
            pause = await self._carry_out(scene, outcome, file)
            if pause is not None:
                return pause
        return 0.0

    async def _carry_out(self, scene: Scene, outcome: Outcome, file: File) -> float | None:
        """Write; after how many seconds to look again, if something is in the way that may pass."""
        self._looks_again.add(scene.job.key)
        try:
            await self._hand.carry_out(scene.job, outcome.writes, file.echoes)
        except Stale as error:
            log.debug("job %s: %s", scene.job.key, error)
            return MOMENT
        except Gone:
            return MOMENT
        except Incomplete as incomplete:
            await self._tell_counts(scene.job.key, file)
            if isinstance(incomplete.first, Stale):
                return BLOCKED if isinstance(incomplete.first, Blocked) else MOMENT
            raise incomplete.first from incomplete
        finally:
            self._looks_again.discard(scene.job.key)
        if any(isinstance(one, SetStatus) for one in outcome.writes):
            file.told = monotonic()
        file.memory = outcome.memory
        return None

    async def _tell_counts(self, key: str, file: File) -> None:
        """After pods could not be made: say at least how many there are."""
        job = self._jobs.at(key)
        if job is not None:
            scene = await self._scene(job, file)
            writes = look(replace(scene, may_create=False)).writes
            status = [one for one in writes if isinstance(one, SetStatus)]
            with suppress(Gone):
                await self._hand.carry_out(job, status, file.echoes)

    def _rest(self, scene: Scene, outcome: Outcome, file: File) -> float:
        """Seconds for which the status may wait, which comes last: if only counts are new in it.

        Pods of a job tend to start and end together, and every status is read by all who watch. While many jobs
        come in, their pods go before the news that they are pending.
        """
        match outcome.writes:
            case (*_, SetStatus(status)):
                before = scene.job.status
                flood = before.state.phase == "" and len(self.queue) > MANY
                steady = _without_counts(status) == _without_counts(before)
                if flood or steady:
                    return file.told + self.rest - monotonic()
        return 0.0

    def _again(self, scene: Scene, outcome: Outcome, file: File, rest: float) -> float | None:
        times = [rest] if rest > 0 else []
        if outcome.again is not None:
            times.append((outcome.again - scene.now).total_seconds())
        if file.echoes.until is not None:
            times.append(file.echoes.until - self.desk.clock())
        return max(0.01, min(times)) if times else None

    def _tell(self, job: Job, outcome: Outcome) -> None:
        for event in outcome.events:
            say = self.desk.voice.normal if event.type == names.NORMAL else self.desk.voice.warning
            say(job, event.reason, event.message)

    def gave_up(self, key: str, error: Exception) -> None:
        job = self._jobs.at(key)
        if job is not None:
            text = f"The job is left alone for 5 minutes after too many failures: {error}"
            self.desk.voice.warning(job, names.EXECUTE_ACTION, text)

    # -- what is there of it

    def _file(self, key: str, job: Job) -> File:
        file = self._files.get(key)
        if file is None or file.uid != job.metadata.uid:
            file = self._files[key] = File(job.metadata.uid, job.spec.queue, Echoes(self.desk.clock))
        return file

    async def _scene(self, job: Job, file: File) -> Scene:
        job = named(job)
        shelved = (pod for pod in self._own_pods[job.metadata.uid] if _is_marked_as_ours(pod))
        group = self._groups.get(group_name(job), job.namespace) or self._legacy_group(job)
        await self._find_claims(job, file)
        classes = self._classes or ()
        return Scene(
            job=job,
            now=datetime.fromtimestamp(self.desk.clock(), UTC),
            plugins=self._plugins,
            pods=file.echoes.pods(shelved),
            group=file.echoes.group(group),
            queue=self._queues.at(job.spec.queue),
            command=self._command(job.key, file),
            memory=file.memory,
            priorities={one.name: one.value for one in classes} if job.spec.tasks else {},
            has_claim=file.claims.__contains__,
        )

    def _legacy_group(self, job: Job) -> PodGroup | None:
        """A group that an older Volcano made."""
        group = self._groups.get(job.name, job.namespace)
        return group if group is not None and job.metadata.uid in controller_uid(group) else None

    async def _find_claims(self, job: Job, file: File) -> None:
        """Claims that a job needs before it starts; once seen they count as there."""
        if job.status.state.phase not in ("", names.POD_PENDING):
            return
        for volume in job.spec.volumes:
            name = volume.volume_claim_name
            if name and name not in file.claims:
                claim = await self.desk.pen.read(PersistentVolumeClaim, name, job.namespace)
                if claim is not None:
                    file.claims.add(name)

    def _command(self, key: str, file: File | None) -> Command | None:
        """The oldest that is still to be carried out."""
        if self._commands is None:
            return None
        waiting = self._commands[key]
        if file is not None:
            waiting = file.echoes.commands(waiting)
        return min(waiting, key=_age, default=None)

    async def _without_job(self, key: str) -> float | None:
        """The job is gone: forget it, and what was asked of it."""
        file = self._files.pop(key, None)
        if file is not None:
            forget(self.desk.metrics.completed_jobs, key, file.queue)
            forget(self.desk.metrics.failed_jobs, key, file.queue)
        command = self._command(key, None)
        if command is None:
            return None
        since = command.metadata.creation_timestamp
        age = self.desk.clock() - since.timestamp() if since is not None else PATIENCE
        if age < PATIENCE:
            return PATIENCE - age
        await self.desk.pen.delete(command)
        return MOMENT


def named(job: Job) -> Job:
    """The job with the names that admission would have given, where it was not asked."""
    if job.spec.queue and all(task.name for task in job.spec.tasks):
        return job
    tasks = tuple(
        task if task.name else msgspec.structs.replace(task, name=f"default{at}")
        for at, task in enumerate(job.spec.tasks)
    )
    queue = job.spec.queue or names.DEFAULT_QUEUE
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=tasks, queue=queue))


def _without_counts(status: JobStatus) -> tuple[object, ...]:
    """What of a status is told at once when it changes."""
    return status.state, status.version, status.retry_count, status.controlled_resources


def _is_marked_as_ours(pod: Pod) -> bool:
    marks = pod.metadata.annotations
    return names.JOB_NAME in marks and names.TASK_SPEC in marks and version_of(pod) >= 0


def _owning_job(thing: Object | None) -> Iterator[str]:
    if thing is None:
        return
    for owner in thing.metadata.owner_references:
        if owner.controller and owner.kind == "Job" and owner.api_version == API_VERSION:
            yield f"{thing.namespace}/{owner.name}"


def _target(command: Command) -> Iterator[str]:
    target = command.target
    if target is not None and target.kind == "Job" and target.api_version == API_VERSION:
        yield f"{command.namespace}/{target.name}"


def _of_command(before: Command | None, now: Command | None) -> Iterator[str]:
    if now is not None:
        yield from _target(now)


def _age(command: Command) -> tuple[float, str]:
    since = command.metadata.creation_timestamp
    return (since.timestamp() if since is not None else 0.0, command.name)
