"""Bringing a job up: claims, what plugins want, the group, and then the pods (spec 06 2.7)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import JobPod, JobSpec, Manifest
from stromboli.controllers.job.job_phases import is_live
from stromboli.controllers.job.job_pod_group import group_changes, group_of
from stromboli.controllers.job.job_pods import Member, members, pod_of
from stromboli.controllers.job.job_volumes import controlled_claims, volumes_of
from stromboli.controllers.job.lifecycle_policies import Signal
from stromboli.controllers.job.observed_events import is_marked, task_of
from stromboli.controllers.job.observed_state import (
    Attach,
    CreateClaim,
    CreateGroup,
    CreatePod,
    DeletePod,
    PatchGroup,
    PatchJob,
    Scene,
    Tell,
    Write,
)
from stromboli.controllers.job.plugins.job_plugin import Attachment, JobPlugin, PluginFailure
from stromboli.controllers.job.pod_counts import phase_of

PATIENCE = timedelta(seconds=30)
"""How long until we look again after something that a job needs is missing."""
MARKER = "plugin-"
AT_A_LOOK = 1000
"""Pods that one look makes, so that no job, however large, keeps all others waiting; the next look follows at once."""


@dataclass(slots=True)
class Draft:
    """The outcome of a look while it is made."""

    scene: Scene
    lost: Mapping[str, Signal] = field(default_factory=dict)
    """Pods that were taken away and about which something may be done later."""
    writes: list[Write] = field(default_factory=list)
    events: list[Tell] = field(default_factory=list)
    again: datetime | None = None
    going: set[str] = field(default_factory=set)
    attached: str = ""
    leave_plugins: bool = False
    is_busy: bool = False
    """Whether pods are made or deleted, so that the counts will change."""
    kit: tuple[JobPlugin, ...] | None = None
    agreed: tuple[str, str, JobSpec] | None = None

    def delete(self, pod: JobPod, mark: bool = False) -> None:
        if pod.name not in self.going:
            self.going.add(pod.name)
            self.writes.append(DeletePod(pod, mark))
            self.is_busy = True

    def own(self) -> list[JobPod]:
        """Pods of tasks that the job has."""
        tasks = {task.name for task in self.scene.job.spec.tasks}
        return [pod for pod in self.scene.pods.values() if task_of(pod) in tasks]

    def controlled(self, before: Mapping[str, str]) -> dict[str, str]:
        """What the status says that the job has: claims, and plugins while they may have anything.

        Whether they have is not asked: a crash may have come between making it and writing that down.
        """
        found = {key: value for key, value in before.items() if not key.startswith(MARKER)}
        found |= controlled_claims(self.scene.job)
        if not self.leave_plugins:
            found |= {key: value for key, value in before.items() if key.startswith(MARKER)}
            found |= self._plugins() if is_live(self.scene.job.status.state.phase) else {}
        return dict(sorted(found.items()))

    def _plugins(self) -> dict[str, str]:
        known = self.scene.plugins.known
        named = (name for name in self.scene.job.spec.plugins if name in known and known[name].is_marked)
        return {f"{MARKER}{name}": name for name in named}


class _Trouble(Exception):
    """Something is missing or wrong; the job waits as it is."""

    def __init__(self, reason: str, message: str) -> None:
        self.event = Tell(names.WARNING, reason, message)


def bring_up(draft: Draft) -> None:
    """Everything that a living job should have, as far as it can have it now."""
    try:
        if not _named_all(draft):
            return
        _attach(draft)
        _keep_group(draft)
        _tell_group(draft)
        _keep_pods(draft)
    except _Trouble as trouble:
        draft.events.append(trouble.event)
        later = draft.scene.now + PATIENCE
        draft.again = later if draft.again is None else min(draft.again, later)


def _named_all(draft: Draft) -> bool:
    """See to queue and volumes; False while names are still to be written into the job."""
    scene = draft.scene
    job = scene.job
    phase = job.status.state.phase
    if scene.queue is None:
        text = names.JOB_QUEUE_NOT_FOUND.format(name=job.spec.queue, phase=phase or names.POD_PENDING)
        raise _Trouble(names.QUEUE_ERROR, text)
    patch: Manifest = {}
    if is_forwarding(scene) and job.metadata.annotations.get(names.JOB_FORWARDING) != "true":
        patch["metadata"] = {"annotations": {names.JOB_FORWARDING: "true"}}
    if phase in ("", names.POD_PENDING):
        volumes = volumes_of(job, scene.has_claim)
        if volumes.named is not None:
            patch["spec"] = {"volumes": _with_names(job.spec.volumes, volumes.named)}
        if volumes.problem:
            raise _Trouble(names.PVC_ERROR, names.CLAIM_FAILED.format(error=volumes.problem))
        draft.writes += [CreateClaim(claim) for claim in volumes.claims]
    if patch:
        draft.writes.append(PatchJob(patch))
        draft.is_busy = True
    return not patch


def _with_names(volumes: tuple[object, ...], named: list[str]) -> list[Manifest]:
    plain = [msgspec.to_builtins(volume) for volume in volumes]
    return [{**one, "volumeClaimName": name} for one, name in zip(plain, named, strict=True)]


def is_forwarding(scene: Scene) -> bool:
    """Whether the queue hands its jobs on to other clusters."""
    return scene.queue is not None and bool(scene.queue.spec.extend_clusters)


# -- plugins


def attachments(draft: Draft) -> tuple[Attachment, ...]:
    """All that the plugins of a job want beside its pods; of plugins that fail, nothing."""
    try:
        return tuple(one for plugin in _kit(draft) for one in plugin.attachments(draft.scene.job))
    except (PluginFailure, BadObject):
        return ()


def _kit(draft: Draft) -> tuple[JobPlugin, ...]:
    if draft.kit is None:
        kit = draft.scene.plugins.kit(draft.scene.job)
        draft.kit = kit.plugins
        for complaint in kit.complaints:
            draft.events.append(Tell(names.WARNING, names.PLUGIN_ERROR, complaint))
    return draft.kit


def _attach(draft: Draft) -> None:
    """Objects beside the pods, whenever what is wanted is not known to be there."""
    try:
        wanted = tuple(one for plugin in _kit(draft) for one in plugin.attachments(draft.scene.job))
        digest = _digest(wanted)
    except Exception as error:
        raise _plugin_trouble(error) from error
    if wanted and digest != draft.scene.memory.attached:
        draft.writes.append(Attach(wanted))
    draft.attached = digest


def _digest(wanted: tuple[Attachment, ...]) -> str:
    plain = msgspec.json.encode([one.manifest for one in wanted])
    return hashlib.sha256(plain).hexdigest()[:16] if wanted else ""


def _plugin_trouble(error: Exception) -> _Trouble:
    text = str(error) if isinstance(error, PluginFailure | BadObject) else f"{type(error).__name__}: {error}"
    return _Trouble(names.PLUGIN_ERROR, names.PLUGIN_FAILED.format(error=text[:500]))


# -- the group


def _keep_group(draft: Draft) -> None:
    scene = draft.scene
    try:
        if scene.group is None:
            draft.writes.append(CreateGroup(group_of(scene.job, scene.priorities)))
        elif scene.group.metadata.deletion_timestamp is None and not _agrees(draft, scene.group):
            changes = group_changes(scene.job, scene.group, scene.priorities)
            if changes:
                draft.writes.append(PatchGroup(scene.group, changes))
    except BadObject as error:
        raise _Trouble(names.POD_GROUP_ERROR, names.GROUP_FAILED.format(error=error)) from error


def _agrees(draft: Draft, group: PodGroup) -> bool:
    """Whether this very state of the group was held against this very spec before."""
    job, held = draft.scene.job, draft.scene.memory.agreed
    draft.agreed = (group.metadata.uid, group.metadata.resource_version, job.spec)
    return held is not None and bool(held[1]) and held == draft.agreed


def _tell_group(draft: Draft) -> None:
    """What the scheduler says of the group, unless all is well."""
    group, job = draft.scene.group, draft.scene.job
    holding = [one for one in group.status.conditions if one.status == "True"] if group is not None else []
    if not holding:
        return
    latest = max(holding, key=lambda one: (one.last_transition_time is not None, one.last_transition_time))
    if latest.type != names.CONDITION_SCHEDULED:
        text = names.GROUP_CONDITION.format(
            namespace=job.namespace, job=job.name, type=latest.type.lower(), message=latest.message
        )
        draft.events.append(Tell(names.WARNING, names.POD_GROUP_PENDING, text))


# -- pods


def _keep_pods(draft: Draft) -> None:
    """Pods that are not wanted go; those that are missing are made once the group is let in."""
    scene = draft.scene
    wanted = {member.name: member for member in members(scene.job)}
    for pod in sorted(draft.own(), key=lambda pod: pod.name):
        leaving = pod.metadata.deletion_timestamp is not None
        if not leaving and (pod.name not in wanted or is_marked(pod)):
            draft.delete(pod, mark=True)
    group = scene.group
    if group is None or group.status.phase in ("", names.GROUP_PENDING) or not scene.may_create:
        return
    ready = {task.name: _may_start(scene, task.name) for task in scene.job.spec.tasks}
    missing = (
        member for name, member in wanted.items() if name not in scene.pods and ready[member.task.name]
    )
    for member in islice(missing, AT_A_LOOK):
        draft.writes.append(CreatePod(_made(draft, member)))
        draft.is_busy = True


def _made(draft: Draft, member: Member) -> Manifest:
    lost = draft.lost.get(member.name)
    try:
        pod = pod_of(member, is_forwarding(draft.scene), lost.since if lost is not None else None)
        for plugin in _kit(draft):
            plugin.dress(member, pod)
    except Exception as error:
        raise _plugin_trouble(error) from error
    return pod


def _may_start(scene: Scene, name: str) -> bool:
    """Whether the tasks before this one are far enough (spec 06 2.12)."""
    task = next(task for task in scene.job.spec.tasks if task.name == name)
    if task.depends_on is None or not task.depends_on.name:
        return True
    ready = (_is_ready(scene, before) for before in task.depends_on.name)
    several = len(task.depends_on.name) > 1
    return any(ready) if several and task.depends_on.iteration == "any" else all(ready)


def _is_ready(scene: Scene, name: str) -> bool:
    task = next((task for task in scene.job.spec.tasks if task.name == name), None)
    if task is None or task.min_available is None:
        return True
    pods = (scene.pods.get(Member(scene.job, task, index).name) for index in range(task.replicas))
    return sum(pod is not None and _serves(pod) for pod in pods) >= task.min_available


def _serves(pod: JobPod) -> bool:
    if phase_of(pod) == names.POD_RUNNING:
        return all(run.ready for run in pod.status.container_statuses)
    return phase_of(pod) == names.POD_SUCCEEDED
