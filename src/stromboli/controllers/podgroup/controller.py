"""The PodGroup controller: gives pods of our schedulers that have no PodGroup one, shared by all pods of an owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import field

from stromboli.api import names
from stromboli.api.object_bounds import pod_sizes
from stromboli.api.pods import is_active, is_placed_elsewhere
from stromboli.api.types.meta import Int64, Object, OwnerReference, Record
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.controllers import selection
from stromboli.controllers.api_writer import decode_response, is_denied
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.job.owned_objects import NameTaken, refuse_foreign
from stromboli.controllers.owner_references import controller_of, controller_uid, owned_by, owner_key
from stromboli.controllers.pod_group_queues import QueueNotOpen, admitted_queue
from stromboli.controllers.podgroup.implied_groups import (
    PREFIX,
    Annotations,
    annotations_of,
    changes,
    group_name,
    group_of,
)
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.store import Store
from stromboli.controllers.watched_kinds import Pod, ReplicaSet, StatefulSet
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

NAME_TAKEN_RETRY = 60.0
"""Seconds until a pod is looked at again whose group would have the name of somebody else's."""
REVISION = "controller-revision-hash"
OWNER_RESOURCES = {
    ("apps/v1", "ReplicaSet"): WATCHED_RESOURCES[ReplicaSet],
    ("apps/v1", "StatefulSet"): WATCHED_RESOURCES[StatefulSet],
    ("apps/v1", "DaemonSet"): Resource("apps", "v1", "daemonsets", "DaemonSet"),
    ("batch/v1", "Job"): Resource("batch", "v1", "jobs", "Job"),
}
"""Owners from which a group inherits annotations."""


class Key(NamedTuple):
    """A pod, or an owner of pods."""

    kind: str
    key: str


class OwnerSpec(Record):
    """What the pods of an owner inherit of its spec: the deadline of a Job."""

    active_deadline_seconds: Int64 | None = None


class Owner(Object):
    """Any owner of a pod, for its annotations."""

    spec: OwnerSpec = field(default_factory=OwnerSpec)


class PodGroupController(Controller[Key]):
    """Keys are pods, and ReplicaSets and StatefulSets that were scaled to zero."""

    name = selection.POD_GROUP

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.workers = max(1, context.options.worker_threads_for_podgroup)
        self._members = context.store(Pod).index(_group)
        self._owned = context.store(Pod).index(owned_by)
        self.pods = self.watch(Pod, self._pod_changed)
        self.groups = self.watch(PodGroup, self._group_changed)
        self.watch(Queue)
        self._owners: dict[str, Store[Any]] = {}
        self._warned: dict[str, str] = {}
        """Why pods have no group, by key."""
        if context.options.gate("WorkLoadSupport"):
            self._owners["ReplicaSet"] = self.watch(ReplicaSet, self._owner_changed)
            self._owners["StatefulSet"] = self.watch(StatefulSet, self._owner_changed)

    # -- what a change enqueues

    def _pod_changed(self, before: Pod | None, now: Pod | None) -> Iterable[Key]:
        if now is None and before is not None:
            self._warned.pop(before.key, None)
        return [Key("Pod", now.key)] if now is not None and self._needs_group(now) else []

    def _group_changed(self, before: PodGroup | None, now: PodGroup | None) -> Iterable[Key]:
        """Pods without their group are not scheduled, so a group that is deleted while it has pods is created again."""
        if before is None or now is not None or not before.name.startswith(PREFIX):
            return []
        return [Key("Pod", pod.key) for pod in self._members[before.key]]

    def _owner_changed(
        self, before: ReplicaSet | StatefulSet | None, now: ReplicaSet | StatefulSet | None
    ) -> Iterable[Key]:
        """One scaled to zero needs no group; one scaled up again before its pods are gone does."""
        if now is None:
            return []
        if now.spec.replicas == 0:
            return [Key(type(now).__name__, now.key)]
        scaled_up = before is not None and before.spec.replicas == 0
        return [Key("Pod", pod.key) for pod in self._owned[owner_key(now)]] if scaled_up else []

    def _needs_group(self, pod: Pod) -> bool:
        """Whether a pod is for our schedulers and has no group, Volcano's or Kubernetes' own."""
        ours = pod.spec.scheduler_name in self.context.options.scheduler_name and not is_placed_elsewhere(pod)
        return (
            ours and pod.spec.scheduling_group is None and not pod.metadata.annotations.get(names.GROUP_NAME)
        )

    # -- one key

    async def sync(self, key: Key) -> float | None:
        if key.kind != "Pod":
            await self._sync_scaled_down(self._owners[key.kind].get(key.key))
            return None
        pod = self.pods.get(key.key)
        if pod is None:
            self._warned.pop(key.key, None)
            return None
        for size in pod_sizes(len(pod.spec.containers) + len(pod.spec.init_containers), terms=0):
            self._warn_once(pod, names.TOO_LARGE, f"the pod {size}: {size.remedy}")
            return None
        try:
            await self._sync_pod(pod)
        except NameTaken as error:
            self._warn_once(pod, names.NAME_TAKEN, str(error))
            return NAME_TAKEN_RETRY
        except QueueNotOpen as error:
            self._warn_once(pod, names.REJECTED, names.GROUP_NOT_CREATED.format(error=error))
            raise
        except ApiError as error:  # it is tried again, and the user must know meanwhile
            if is_denied(error):
                self.gave_up(key, error)
            elif error.status >= 500:
                self._warn_once(pod, names.FAILED_CREATE, names.GROUP_NOT_CREATED.format(error=error))
            raise
        self._warned.pop(key.key, None)
        return None

    def gave_up(self, key: Key, error: Exception) -> None:
        pod = self.pods.get(key.key) if key.kind == "Pod" else None
        if pod is not None:
            self._warn_once(pod, names.REJECTED, f"The API server refuses the PodGroup of the pod: {error}")

    def _warn_once(self, pod: Pod, reason: str, why: str) -> None:
        """Record once why a pod has no group."""
        if self._warned.get(pod.key) != why:
            self._warned[pod.key] = why
            self.context.recorder.warning(pod, reason, why)

    async def _sync_pod(self, pod: Pod) -> None:
        name = group_name(pod)
        needs_group = self._needs_group(pod)
        if not self._alive(pod) or not (needs_group or _group(pod) == (f"{pod.namespace}/{name}",)):
            return
        group = self.groups.get(name, pod.namespace)
        if group is not None:
            _refuse_foreign(pod, group)
        elif needs_group or not await self._is_owner_gone(pod):
            await self._create_group(pod)
        if group is not None and needs_group and self._is_current_revision(pod):
            wanted = await self._group_manifest(pod)
            if wanted["spec"].get("queue", group.spec.queue) != group.spec.queue:
                await self._set_queue(pod, wanted)
            patch = changes(group, wanted)
            if patch:
                self.groups.mutated(await self.context.writer.patch(group, patch))
        if needs_group:
            patch = {"metadata": {"annotations": {names.GROUP_NAME: name}}}
            self.pods.mutated(await self.context.writer.patch(pod, patch, exact=False))

    async def _create_group(self, pod: Pod) -> None:
        """Create the group of a pod, unless another pod of its owner was first."""
        manifest = await self._group_manifest(pod)
        await self._set_queue(pod, manifest)
        if await self.context.writer.create(PodGroup, manifest, pod.namespace) is None:
            existing = await self.context.writer.read(PodGroup, group_name(pod), pod.namespace)
            if existing is None:
                raise SyncError(f"PodGroup {group_name(pod)} was there and is gone")
            _refuse_foreign(pod, existing)

    async def _set_queue(self, pod: Pod, manifest: dict[str, Any]) -> None:
        spec = manifest["spec"]
        spec["queue"] = await admitted_queue(self.context, spec.get("queue", ""), pod.namespace)

    def _alive(self, pod: Pod) -> bool:
        """Whether a pod still needs a group."""
        if not is_active(pod):
            return False
        owner = self._owner_in_store(pod, controller_of(pod))
        return owner is None or owner.spec.replicas != 0

    async def _is_owner_gone(self, pod: Pod) -> bool:
        """Whether the owner of a pod that has had a group is gone or going: the pod goes too, as its group did."""
        reference = controller_of(pod)
        if reference is None or (reference.api_version, reference.kind) not in OWNER_RESOURCES:
            return False
        if reference.kind in self._owners:
            owner = self._owner_in_store(pod, reference)
        else:
            try:
                owner = await self._read_owner(pod, reference)
            except ApiError as error:
                if error.status != 403:
                    raise
                return False
        return (
            owner is None
            or owner.metadata.uid != reference.uid
            or owner.metadata.deletion_timestamp is not None
        )

    def _is_current_revision(self, pod: Pod) -> bool:
        """Whether the group of all pods of an owner follows this new pod: not if it is of an old revision."""
        owner = self._owner_in_store(pod, controller_of(pod))
        if isinstance(owner, StatefulSet):
            return pod.metadata.labels.get(REVISION) == owner.status.update_revision
        return owner is not None

    def _owner_in_store(self, pod: Pod, owner: OwnerReference | None) -> Any:
        if owner is None or owner.api_version != "apps/v1":
            return None
        store = self._owners.get(owner.kind)
        stored = store.get(owner.name, pod.namespace) if store is not None else None
        return stored if stored is not None and stored.metadata.uid == owner.uid else None

    async def _group_manifest(self, pod: Pod) -> dict[str, Any]:
        if not self.context.options.inherit_owner_annotations:
            return group_of(pod)
        return group_of(pod, [await self._annotations(pod, owner) for owner in pod.metadata.owner_references])

    async def _annotations(self, pod: Pod, reference: OwnerReference) -> Annotations:
        """The annotations of an owner; none if it is gone or we may not read it."""
        owner: Object | None = self._owner_in_store(pod, reference)
        if owner is None and (reference.api_version, reference.kind) in OWNER_RESOURCES:
            try:
                owner = await self._read_owner(pod, reference)
            except ApiError as error:
                if error.status != 403:
                    raise
        return annotations_of(owner) if owner is not None else {}

    async def _read_owner(self, pod: Pod, reference: OwnerReference) -> Owner | None:
        resource = OWNER_RESOURCES[reference.api_version, reference.kind]
        answer = await self.context.writer.read_at(resource, reference.name, pod.namespace)
        return decode_response(Owner, answer) if answer is not None else None

    async def _sync_scaled_down(self, owner: Any) -> None:
        """Delete the group of an owner with zero replicas; the owner is read first, as it may have been scaled up."""
        group = self.groups.get(PREFIX + owner.metadata.uid, owner.namespace) if owner is not None else None
        if group is None or owner.spec.replicas != 0 or owner.metadata.uid not in controller_uid(group):
            return
        fresh = await self.context.writer.read(type(owner), owner.name, owner.namespace)
        if fresh is not None and fresh.metadata.uid == owner.metadata.uid and fresh.spec.replicas == 0:
            await self.context.writer.delete(group)


def _refuse_foreign(pod: Pod, group: PodGroup) -> None:
    """The owner of the pod, or the pod itself, must control the group."""
    owner = controller_of(pod)
    if owner is None or owner.uid not in controller_uid(group):
        refuse_foreign(pod, "PodGroup", group.name, controller_uid(group))


def _group(pod: Pod) -> tuple[str, ...]:
    """The group that a pod's annotation names."""
    name = pod.metadata.annotations.get(names.GROUP_NAME)
    return (f"{pod.namespace}/{name}",) if name else ()
