"""Gives every pod of ours that has none a PodGroup, shared by all pods of one owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.types.meta import Object, OwnerReference
from stromboli.api.types.scheduling import PodGroup
from stromboli.controllers import selection
from stromboli.controllers.api_writer import decoded
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller
from stromboli.controllers.podgroup.implied_groups import (
    PREFIX,
    Marks,
    changes,
    controller_of,
    group_name,
    group_of,
)
from stromboli.controllers.store import Shelf, controller_uid
from stromboli.controllers.watched_kinds import PLACES, Pod, ReplicaSet, StatefulSet
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

REVISION = "controller-revision-hash"
LIVE = {
    ("apps/v1", "ReplicaSet"): PLACES[ReplicaSet],
    ("apps/v1", "StatefulSet"): PLACES[StatefulSet],
    ("apps/v1", "DaemonSet"): Resource("apps", "v1", "daemonsets", "DaemonSet"),
    ("batch/v1", "Job"): Resource("batch", "v1", "jobs", "Job"),
}
"""Owners whose annotations a group takes over."""
ENDED = frozenset({names.POD_SUCCEEDED, names.POD_FAILED})


class Key(NamedTuple):
    """A pod, or an owner of pods."""

    kind: str
    key: str


class Owner(Object):
    """Anything that made a pod, for its annotations alone."""


class PodGroupController(Controller[Key]):
    """Pods first; of ReplicaSets and StatefulSets, that they were scaled to nothing."""

    name = selection.POD_GROUP

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.workers = max(1, desk.options.worker_threads_for_podgroup)
        self._members = desk.shelf(Pod).index(_group)
        self._owned = desk.shelf(Pod).index(controller_uid)
        self.pods = self.watch(Pod, self._pod_changed)
        self.groups = self.watch(PodGroup, self._group_changed)
        self._owners: dict[str, Shelf[Any]] = {}
        if desk.options.gate("WorkLoadSupport"):
            self._owners["ReplicaSet"] = self.watch(ReplicaSet, self._owner_changed)
            self._owners["StatefulSet"] = self.watch(StatefulSet, self._owner_changed)

    # -- what concerns whom

    def _pod_changed(self, before: Pod | None, now: Pod | None) -> Iterable[Key]:
        return [Key("Pod", now.key)] if now is not None and self._lacks(now) else []

    def _group_changed(self, before: PodGroup | None, now: PodGroup | None) -> Iterable[Key]:
        """Without its group no pod is placed, so one that is deleted under living pods comes back."""
        if before is None or now is not None or not before.name.startswith(PREFIX):
            return []
        return [Key("Pod", pod.key) for pod in self._members[before.key]]

    def _owner_changed(
        self, before: ReplicaSet | StatefulSet | None, now: ReplicaSet | StatefulSet | None
    ) -> Iterable[Key]:
        """One that is scaled to nothing needs no group; one that grows again before its pods have gone does."""
        if now is None:
            return []
        if now.spec.replicas == 0:
            return [Key(type(now).__name__, now.key)]
        grows = before is not None and before.spec.replicas == 0
        return [Key("Pod", pod.key) for pod in self._owned[now.metadata.uid]] if grows else []

    def _lacks(self, pod: Pod) -> bool:
        """Whether a pod is ours and has no group, be it one of Kubernetes' own."""
        ours = pod.spec.scheduler_name in self.desk.options.scheduler_name
        return (
            ours and pod.spec.scheduling_group is None and not pod.metadata.annotations.get(names.GROUP_NAME)
        )

    # -- putting right

    async def sync(self, key: Key) -> float | None:
        if key.kind == "Pod":
            pod = self.pods.at(key.key)
            if pod is not None:
                await self._group(pod)
        else:
            await self._scaled_to_nothing(self._owners[key.kind].at(key.key))
        return None

    async def _group(self, pod: Pod) -> None:
        name = group_name(pod)
        lacks = self._lacks(pod)
        if not self._alive(pod) or not (lacks or _group(pod) == (f"{pod.namespace}/{name}",)):
            return
        group = self.groups.get(name, pod.namespace)
        if group is None:
            await self.desk.pen.create(PodGroup, await self._wanted(pod), pod.namespace)
        elif lacks and self._sets_the_tone(pod):
            patch = changes(group, await self._wanted(pod))
            if patch:
                self.groups.learn(await self.desk.pen.patch(group, patch))
        if lacks:
            patch = {"metadata": {"annotations": {names.GROUP_NAME: name}}}
            self.pods.learn(await self.desk.pen.patch(pod, patch, exact=False))

    def _alive(self, pod: Pod) -> bool:
        """Whether a pod will still need a group."""
        if pod.metadata.deletion_timestamp is not None or pod.status.phase in ENDED:
            return False
        owner = controller_of(pod)
        scaled = self._owner_on_shelf(pod, owner) if owner is not None else None
        return scaled is None or scaled.spec.replicas != 0

    def _sets_the_tone(self, pod: Pod) -> bool:
        """Whether a new pod of an owner says how the group of all of them should be: if it is of the newest make."""
        owner = controller_of(pod)
        found = self._owner_on_shelf(pod, owner) if owner is not None else None
        if isinstance(found, StatefulSet):
            return pod.metadata.labels.get(REVISION) == found.status.update_revision
        return found is not None

    def _owner_on_shelf(self, pod: Pod, owner: OwnerReference) -> Any:
        shelf = self._owners.get(owner.kind) if owner.api_version == "apps/v1" else None
        found = shelf.get(owner.name, pod.namespace) if shelf is not None else None
        return found if found is not None and found.metadata.uid == owner.uid else None

    async def _wanted(self, pod: Pod) -> dict[str, Any]:
        if not self.desk.options.inherit_owner_annotations:
            return group_of(pod)
        return group_of(pod, [await self._marks(pod, owner) for owner in pod.metadata.owner_references])

    async def _marks(self, pod: Pod, owner: OwnerReference) -> Marks:
        """The annotations of an owner; none if it is gone or not ours to read."""
        found: Object | None = self._owner_on_shelf(pod, owner)
        resource = LIVE.get((owner.api_version, owner.kind))
        if found is None and resource is not None:
            try:
                answer = await self.desk.pen.read_at(resource, owner.name, pod.namespace)
            except ApiError as error:
                if error.status != 403:
                    raise
                answer = None
            found = decoded(Owner, answer) if answer is not None else None
        return found.metadata.annotations if found is not None else {}

    async def _scaled_to_nothing(self, owner: Any) -> None:
        """A group without members goes; its owner is asked first, as it may have grown again meanwhile."""
        group = self.groups.get(PREFIX + owner.metadata.uid, owner.namespace) if owner is not None else None
        if group is None or owner.spec.replicas != 0:
            return
        fresh = await self.desk.pen.read(type(owner), owner.name, owner.namespace)
        if fresh is not None and fresh.metadata.uid == owner.metadata.uid and fresh.spec.replicas == 0:
            await self.desk.pen.delete(group)


def _group(pod: Pod) -> tuple[str, ...]:
    """The group that a pod says it is in."""
    name = pod.metadata.annotations.get(names.GROUP_NAME)
    return (f"{pod.namespace}/{name}",) if name else ()
