"""What a live job should have: claims, attachments of plugins, the group, and then the pods (spec 06 2.7)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.job_annotations import parallelism_of
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.scheduling import PodGroup, PodGroupSpec
from stromboli.api.types.volcano_job import Job, JobSpec, Manifest
from stromboli.controllers.job import succeeded_pods
from stromboli.controllers.job.job_phases import is_live
from stromboli.controllers.job.job_pod_group import group_changes, group_of, without_lost_pods
from stromboli.controllers.job.job_pods import Member, estimated_size, pod_of, set_gate
from stromboli.controllers.job.job_volumes import controlled_claims, volumes_of
from stromboli.controllers.job.observed_state import (
    Attach,
    CreateClaim,
    CreateGroup,
    CreatePod,
    DeletePod,
    LiftGate,
    ObservedState,
    PatchGroup,
    PatchJob,
    Write,
)
from stromboli.controllers.job.order.job_order import observed_text
from stromboli.controllers.job.order.task_dependencies import StartedTasks, may_start
from stromboli.controllers.job.plugins.job_plugin import Attachment, JobPlugin, PluginFailure
from stromboli.controllers.job.policy_actions import DelayedActions
from stromboli.controllers.user_event import UserEvent

RETRY_AFTER = timedelta(seconds=30)
"""How long until a job is requeued that lacks something it needs."""
PLUGIN_PREFIX = "plugin-"
PODS_PER_RECONCILE = 250
"""Pods created at a time, so that a large job does not hold up the others; the next reconcile follows at once."""
ENTRIES_PER_RECONCILE = 20_000
"""Containers, volumes, variables and the like in all these pods together, unless it is a single pod."""


@dataclass(slots=True)
class OutcomeBuilder:
    """Collects the outcome of a reconcile."""

    observed: ObservedState
    delayed: DelayedActions = field(default_factory=DelayedActions)
    writes: list[Write] = field(default_factory=list)
    events: list[UserEvent] = field(default_factory=list)
    requeue_at: datetime | None = None
    deleting: set[str] = field(default_factory=set)
    attached: str = ""
    detaches: bool = False
    changes_pods: bool = False
    """Whether pods are created or deleted, or the job is patched, so that counts must wait for the next reconcile."""
    plugins: tuple[JobPlugin, ...] | None = None
    synced_group: tuple[str, PodGroupSpec, JobSpec] | None = None
    settled: bool = False
    succeeded: list[int] | None = None
    """Indexes of pods that are to stay succeeded, by position of the task; None for all that are."""

    def delete(self, pod: Pod, out_of_sync: bool = False) -> None:
        if pod.name not in self.deleting:
            self.deleting.add(pod.name)
            self.writes.append(DeletePod(pod, out_of_sync))
            self.changes_pods = True

    def controlled_resources(self, before: Mapping[str, str]) -> dict[str, str]:
        """That field of the status: claims, pods that succeeded, and the plugins of a live job.

        Plugins are named whether they attached anything or not: a crash may have come between that and the status.
        """
        dropped = (succeeded_pods.PREFIX, PLUGIN_PREFIX) if self.detaches else succeeded_pods.PREFIX
        resources = {key: value for key, value in before.items() if not key.startswith(dropped)}
        resources |= controlled_claims(self.observed.job)
        indexes = self.observed.pods.succeeded_indexes() if self.succeeded is None else self.succeeded
        resources |= succeeded_pods.resource_entries(self.observed.job, indexes)
        if not self.detaches and is_live(self.observed.job.status.state.phase):
            resources |= self._marked_plugins()
        return dict(sorted(resources.items()))

    def _marked_plugins(self) -> dict[str, str]:
        known = self.observed.plugins.known
        named = (name for name in self.observed.job.spec.plugins if name in known and known[name].is_marked)
        return {f"{PLUGIN_PREFIX}{name}": name for name in named}


class _CannotSync(Exception):
    """Something that the job needs is missing or wrong."""

    def __init__(self, reason: str, message: str) -> None:
        self.event = UserEvent(names.WARNING, reason, message)


def sync_job(builder: OutcomeBuilder) -> None:
    """Create what a live job lacks, as far as that is possible now."""
    builder.events += builder.observed.order.events
    try:
        if not builder.observed.may_create:
            _sync_pods(builder)
            return
        if not _initialize(builder):
            return
        _attach(builder)
        _sync_pod_group(builder)
        _record_group_condition(builder)
        _sync_pods(builder)
    except _CannotSync as error:
        builder.events.append(error.event)
        builder.requeue_at = builder.observed.now + RETRY_AFTER


def _initialize(builder: OutcomeBuilder) -> bool:
    """Check the queue and create claims; False while names of claims are still to be written into the job."""
    observed = builder.observed
    job = observed.job
    phase = job.status.state.phase
    if observed.queue is None:
        text = names.JOB_QUEUE_NOT_FOUND.format(name=job.spec.queue, phase=phase or names.POD_PENDING)
        raise _CannotSync(names.QUEUE_ERROR, text)
    patch: Manifest = {}
    if annotations := _new_annotations(observed):
        patch["metadata"] = {"annotations": annotations}
    if phase in ("", names.POD_PENDING):
        volumes = volumes_of(job, observed.has_claim)
        if volumes.named is not None:
            patch["spec"] = {"volumes": _with_names(job.spec.volumes, volumes.named)}
        if volumes.problem:
            raise _CannotSync(names.PVC_ERROR, names.CLAIM_FAILED.format(error=volumes.problem))
        builder.writes += [CreateClaim(claim) for claim in volumes.claims]
    if patch:
        builder.writes.append(PatchJob(patch))
        builder.changes_pods = True
    return not patch


def _new_annotations(observed: ObservedState) -> dict[str, str]:
    """Those that the job lacks."""
    annotations = {}
    if is_forwarding(observed) and observed.job.metadata.annotations.get(names.JOB_FORWARDING) != "true":
        annotations[names.JOB_FORWARDING] = "true"
    if not observed.order.is_noted:
        annotations[names.AFTER_OBSERVED] = observed_text(observed.order.observed)
    return annotations


def _with_names(volumes: tuple[object, ...], named: list[str]) -> list[Manifest]:
    pairs = zip(volumes, named, strict=True)
    return [{**msgspec.to_builtins(volume), "volumeClaimName": name} for volume, name in pairs]


def is_forwarding(observed: ObservedState) -> bool:
    """Whether the queue forwards its jobs to other clusters."""
    return observed.queue is not None and bool(observed.queue.spec.extend_clusters)


# -- plugins


def attachments(builder: OutcomeBuilder) -> tuple[Attachment, ...]:
    """The attachments of all plugins; none if a plugin fails."""
    try:
        return _wanted_attachments(builder)
    except (PluginFailure, BadObject, SystemExit):
        return ()


def _wanted_attachments(builder: OutcomeBuilder) -> tuple[Attachment, ...]:
    job = builder.observed.job
    return tuple(attachment for plugin in _plugins_of(builder) for attachment in plugin.attachments(job))


def _plugins_of(builder: OutcomeBuilder) -> tuple[JobPlugin, ...]:
    if builder.plugins is None:
        builder.plugins, problems = builder.observed.plugins.for_job(builder.observed.job)
        builder.events += [UserEvent(names.WARNING, names.PLUGIN_ERROR, problem) for problem in problems]
    return builder.plugins


def _attach(builder: OutcomeBuilder) -> None:
    """Create or update the attachments unless they are known to be up to date."""
    try:
        wanted = _wanted_attachments(builder)
        digest = _digest(wanted)
    except (Exception, SystemExit) as error:
        raise _plugin_error(error) from error
    if wanted and digest != builder.observed.cache.attached:
        builder.writes.append(Attach(wanted))
    builder.attached = digest


def _digest(wanted: tuple[Attachment, ...]) -> str:
    manifests = msgspec.json.encode([attachment.manifest for attachment in wanted])
    return hashlib.sha256(manifests).hexdigest()[:16] if wanted else ""


def _plugin_error(error: BaseException) -> _CannotSync:
    text = str(error) if isinstance(error, PluginFailure | BadObject) else f"{type(error).__name__}: {error}"
    return _CannotSync(names.PLUGIN_ERROR, names.PLUGIN_FAILED.format(error=text[:500]))


# -- the group


def _sync_pod_group(builder: OutcomeBuilder) -> None:
    observed = builder.observed
    job = without_lost_pods(observed.job, observed.pods.lost_by_task)
    try:
        if observed.group is None:
            builder.writes.append(CreateGroup(group_of(job, observed.priorities)))
        elif observed.group.metadata.deletion_timestamp is None and not _is_synced(
            builder, job, observed.group
        ):
            changes = group_changes(job, observed.group, observed.priorities)
            if changes:
                builder.writes.append(PatchGroup(observed.group, changes))
    except BadObject as error:
        raise _CannotSync(names.POD_GROUP_ERROR, names.GROUP_FAILED.format(error=error)) from error


def _is_synced(builder: OutcomeBuilder, job: Job, group: PodGroup) -> bool:
    """Whether the group was compared with the job before, and both specs are still the same."""
    synced = builder.observed.cache.synced_group
    builder.synced_group = (group.metadata.uid, group.spec, job.spec)
    return synced == builder.synced_group


def _record_group_condition(builder: OutcomeBuilder) -> None:
    """The scheduler's latest condition of the group, unless that is Scheduled."""
    group, job = builder.observed.group, builder.observed.job
    conditions = group.status.conditions if group is not None else ()
    holding = [condition for condition in conditions if condition.status == "True"]
    if not holding:
        return
    latest = max(holding, key=lambda held: (held.last_transition_time is not None, held.last_transition_time))
    if latest.type != names.CONDITION_SCHEDULED:
        text = names.GROUP_CONDITION.format(
            namespace=job.namespace, job=job.name, type=latest.type.lower(), message=latest.message
        )
        builder.events.append(UserEvent(names.WARNING, names.POD_GROUP_PENDING, text))


# -- pods


def _sync_pods(builder: OutcomeBuilder) -> None:
    """Delete pods that are not wanted, and create missing ones once the group is enqueued."""
    observed = builder.observed
    for pod in observed.pods.named(observed.pods.unwanted):
        builder.delete(pod, out_of_sync=True)
    _lift_gates(builder)
    group = observed.group
    if group is None or group.status.phase in ("", names.GROUP_PENDING) or not observed.may_create:
        return
    size = 0
    for member in islice(_missing(builder), min(PODS_PER_RECONCILE, _room(builder))):
        manifest = _pod_manifest(builder, member)
        builder.writes.append(CreatePod(manifest))
        builder.changes_pods = True
        size += estimated_size(manifest)
        if size > ENTRIES_PER_RECONCILE:
            return


def _lift_gates(builder: OutcomeBuilder) -> None:
    """Let pods start once the jobs that theirs waited for have ended, or it waits for none any more."""
    observed = builder.observed
    if not observed.order.holds:
        waiting = [pod for pod in observed.pods.named(observed.pods.held) if pod.name not in builder.deleting]
        builder.writes += [LiftGate(pod) for pod in waiting]


def _room(builder: OutcomeBuilder) -> int:
    """How many pods may be created, where a job says how many of its pods may run at a time."""
    job = builder.observed.job
    most = parallelism_of(job.metadata.annotations)
    if most is None:
        return PODS_PER_RECONCILE
    return max(0, max(most, job.spec.min_available) - len(builder.observed.pods.live))


def _missing(builder: OutcomeBuilder) -> Iterator[Member]:
    """Pods that do not exist yet, of tasks that may start."""
    job, pods = builder.observed.job, builder.observed.pods
    if pods.is_complete:
        return
    started = StartedTasks(job, pods.ready)
    for position, task in enumerate(job.spec.tasks):
        if may_start(task, started):
            yield from pods.missing_members(job, position)


def _pod_manifest(builder: OutcomeBuilder, member: Member) -> Manifest:
    lost = builder.delayed.lost.get(member.name)
    try:
        observed = builder.observed
        pod = pod_of(member, is_forwarding(observed), lost.since if lost is not None else None)
        set_gate(pod, observed.job, observed.order.holds)
        for plugin in _plugins_of(builder):
            plugin.dress(member, pod)
    except (Exception, SystemExit) as error:
        raise _plugin_error(error) from error
    return pod
