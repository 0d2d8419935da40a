"""Volumes and claims that are being deleted: they stay while they are in use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stromboli.embedded.kinds.builtin.persistent_volume import VOLUME_FINALIZER, VOLUMES
from stromboli.embedded.kinds.builtin.persistent_volume_claim import CLAIM_FINALIZER, CLAIMS
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.object_metadata import add_finalizer, remove_finalizer
from stromboli.embedded.kube_controllers.controller import StoreController
from stromboli.embedded.kube_controllers.volumes.pod_volume_claims import (
    claim_names,
    claims_in_use,
    is_shut_down,
    may_use,
)
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.time_slices import TimeSlices

_FINALIZERS = {VOLUMES: VOLUME_FINALIZER, CLAIMS: CLAIM_FINALIZER}


class VolumeProtection(StoreController):
    """Lets a claim go once no pod on a node uses it, and a volume once no claim is bound to it."""

    name = "persistentvolume-protection-controller"

    def initial_keys(self) -> Iterator[Key]:
        for resource in _FINALIZERS:
            for record in self._objects.store.list(resource):
                if _needs_protection(record):
                    yield record.key

    def keys_for(self, change: Change) -> Iterator[Key]:
        resource, namespace = change.key.resource, change.key.namespace
        if resource in (VOLUMES, CLAIMS):
            if change.after is not None and _needs_protection(change.after):
                yield change.key
        elif resource == "pods" and len(self._objects.store.table(CLAIMS)):
            for name in claim_names(_ended(change) or {}):
                yield Key(CLAIMS, namespace, name)

    async def reconcile(self, key: Key) -> None:
        finalizer = _FINALIZERS.get(key.resource)
        record = self._objects.store.get(*key) if finalizer is not None else None
        if record is None or finalizer is None:
            return
        if not record.meta.deletion_timestamp:
            if finalizer not in (record.meta.finalizers or ()):
                self._objects.system_update(record, partial(add_finalizer, name=finalizer))
        elif not await self._is_used(record):
            self._objects.system_update(record, partial(remove_finalizer, name=finalizer))

    async def _is_used(self, record: Record) -> bool:
        if record.key.resource == VOLUMES:
            return record.field("status.phase") == "Bound"
        slices, name = TimeSlices(), record.key.name
        for pod in self._objects.store.list("pods", record.key.namespace):
            if may_use(pod, name) and pod.field("spec.nodeName") and name in claims_in_use(pod.object()):
                return True
            if slices.due:
                await slices.pause()
        return False


def _needs_protection(record: Record) -> bool:
    """Whether a volume or claim is being deleted, or lacks the finalizer that protects it."""
    meta = record.meta
    return bool(meta.deletion_timestamp) or _FINALIZERS[record.key.resource] not in (meta.finalizers or ())


def _ended(change: Change) -> Content | None:
    """The pod, if it is gone or was shut down."""
    if change.after is None:
        return None if change.before is None else change.before.object()
    pod = change.after.object() if change.after.meta.deletion_timestamp else None
    return pod if pod is not None and is_shut_down(pod) else None
