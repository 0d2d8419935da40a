"""Volumes and claims that are being deleted: they stay while they are in use."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.admission.volume_admission import CLAIM_FINALIZER, CLAIMS, VOLUME_FINALIZER, VOLUMES
from stromboli.embedded.kinds.object_metadata import remove_finalizer
from stromboli.embedded.kube_controllers.controller import Controller
from stromboli.embedded.kube_controllers.volumes.pod_volume_claims import claim_names
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices


class VolumeProtection(Controller):
    """Lets a claim go once no pod on a node uses it, and a volume once no claim is bound to it."""

    def initial_keys(self) -> Iterator[Key]:
        for resource in (VOLUMES, CLAIMS):
            for record in self._objects.store.list(resource):
                if record.meta.deletion_timestamp:
                    yield record.key

    def keys_for(self, change: Change) -> Iterator[Key]:
        resource, namespace = change.key.resource, change.key.namespace
        if resource in (VOLUMES, CLAIMS):
            if change.after is not None and change.after.meta.deletion_timestamp:
                yield change.key
        elif resource == "pods" and change.after is None and len(self._objects.store.table(CLAIMS)):
            for name in claim_names(change.before.object()) if change.before is not None else ():
                yield Key(CLAIMS, namespace, name)

    async def reconcile(self, key: Key) -> None:
        if key.resource not in (VOLUMES, CLAIMS) or (record := self._objects.store.get(*key)) is None:
            return
        if not record.meta.deletion_timestamp:
            return
        if key.resource == VOLUMES:
            if record.field("status.phase") != "Bound":
                self._release(record, VOLUME_FINALIZER)
        elif not await self._is_used(key):
            self._release(record, CLAIM_FINALIZER)

    def _release(self, record: Record, finalizer: str) -> None:
        self._objects.system_update(record, lambda content: remove_finalizer(content, finalizer))

    async def _is_used(self, claim: Key) -> bool:
        slices = TimeSlices()
        for pod in self._objects.store.list("pods", claim.namespace):
            if pod.field("spec.nodeName") and claim.name in claim_names(pod.object()):
                return True
            if slices.due:
                await slices.pause()
        return False
