"""PodGroups that are being deleted: their finalizer goes when none of their pods is active any more."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api.pods import FINISHED
from stromboli.embedded.kinds.builtin.pod_group import FINALIZER, POD_GROUPS
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import StoreController
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices

_POD_GROUP = "spec.schedulingGroup.podGroupName"


class PodGroupProtection(StoreController):
    name = "podgroup-protection-controller"

    def initial_keys(self) -> Iterator[Key]:
        return (record.key for record in self._objects.store.list(POD_GROUPS))

    def keys_for(self, change: Change) -> Iterator[Key]:
        key = change.key
        if key.resource == POD_GROUPS:
            yield key
        elif key.resource == "pods" and len(self._objects.store.table(POD_GROUPS)):
            pod = change.before if change.after is None else change.after
            if (
                pod is not None
                and not (change.after and _is_active(pod))
                and (group := pod.field(_POD_GROUP))
            ):
                yield Key(POD_GROUPS, key.namespace, group)

    async def reconcile(self, key: Key) -> None:
        if key.resource != POD_GROUPS or (record := self._objects.store.get(*key)) is None:
            return
        if record.meta.deletion_timestamp and not await self._has_active_pods(key):
            self._objects.system_update(record, _remove_finalizer)

    async def _has_active_pods(self, group: Key) -> bool:
        slices = TimeSlices()
        for pod in self._objects.store.list("pods", group.namespace):
            if pod.field(_POD_GROUP) == group.name and _is_active(pod):
                return True
            if slices.due:
                await slices.pause()
        return False


def _is_active(pod: Record) -> bool:
    return pod.field("status.phase") not in FINISHED


def _remove_finalizer(group: Content) -> None:
    meta = group["metadata"]
    meta["finalizers"] = [name for name in meta.get("finalizers") or () if name != FINALIZER]
