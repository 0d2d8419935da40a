"""Volumes and claims: bound to each other, made for classes of our own provisioner, and reclaimed.

The persistent volume controller of Kubernetes in small.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from stromboli.api import names
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.builtin.persistent_volume import VOLUMES
from stromboli.embedded.kinds.builtin.persistent_volume_claim import (
    CLAIMS,
    default_class,
    has_class,
    requested_size,
)
from stromboli.embedded.kinds.builtin.storage_class import PROVISIONER, STORAGE_CLASSES
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController
from stromboli.embedded.kube_controllers.volumes.folder_provisioner import FolderProvisioner
from stromboli.embedded.kube_controllers.volumes.pod_volume_claims import claim_names
from stromboli.embedded.kube_controllers.volumes.volume_matches import (
    PROVISIONED_BY,
    annotate,
    annotate_provisioner,
    annotations_of,
    bind_claim,
    bind_volume,
    capacity_of,
    class_of,
    goes_with_claim,
    is_for,
    is_ours,
    matches,
    mismatch,
    set_capacity,
    set_phase,
    smallest_first,
    unbind_volume,
)
from stromboli.embedded.store.records import Change, Key, Record

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Of classes whose volumes an administrator makes."""
Name = tuple[str, str]
"""Namespace and name of a claim."""
Size = tuple[Any, str]
"""Capacity and name of a volume."""


class PersistentVolumeController(StoreController):
    name = "persistentvolume-binder-controller"
    component = "persistentvolume-controller"

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._index = VolumeIndex()
        self._provisioner = FolderProvisioner(context.data)
        self._nodes: dict[Key, str] = {}
        """Nodes of pods that ran already when claims had no volumes yet, by claim."""

    def initial_keys(self) -> Iterator[Key]:
        unbound = False
        for resource in (VOLUMES, CLAIMS):
            for record in self._objects.store.list(resource):
                self._index.add(record)
                unbound = unbound or (resource == CLAIMS and not record.field("spec.volumeName"))
                yield record.key
        for pod in self._objects.store.list("pods") if unbound else ():
            if node := pod.field("spec.nodeName"):
                self._nodes |= {
                    Key(CLAIMS, pod.key.namespace, name): node for name in claim_names(pod.object())
                }

    def keys_for(self, change: Change) -> Iterable[Key]:
        resource = change.key.resource
        if resource in (VOLUMES, CLAIMS):
            self._index.update(change)
            return self._keys_of_volume(change) if resource == VOLUMES else self._keys_of_claim(change)
        if resource == STORAGE_CLASSES and change.after is not None:
            return [*self._index.unbound(change.key.name), *self._index.unbound("")]
        return ()

    def _keys_of_volume(self, change: Change) -> Iterator[Key]:
        yield change.key
        for record in (change.before, change.after):
            if record is not None and (reference := record.object()["spec"].get("claimRef")):
                yield Key(CLAIMS, str(reference.get("namespace", "")), str(reference.get("name", "")))
        if change.after is not None and self._index.is_free(change.key.name):
            storage_class = class_of(change.after.object())
            if not self._is_delayed(storage_class):
                yield from self._index.unbound(storage_class)

    def _keys_of_claim(self, change: Change) -> Iterator[Key]:
        yield change.key
        for name in self._index.taken_by(change.key.namespace, change.key.name):
            yield Key(VOLUMES, "", name)

    async def reconcile(self, key: Key) -> None:
        record = self._objects.store.get(*key)
        if record is None:
            return
        if key.resource == VOLUMES:
            await self._sync_volume(record)
        elif key.resource == CLAIMS:
            await self._sync_claim(record)

    # -- claims

    async def _sync_claim(self, record: Record) -> None:
        claim = record.object()
        name = claim["spec"].get("volumeName")
        volume = self._volume(name) if name else None
        if names.BIND_COMPLETED in annotations_of(claim):
            self._check_bound(record, claim, volume)
        elif claim["metadata"].get("deletionTimestamp"):
            return
        elif not name:
            await self._find_volume(record, claim)
        elif volume is None:
            self._set_claim_phase(record, "Pending")
        elif volume["spec"].get("claimRef"):
            if is_for(volume, claim):
                self._bind(record, volume)
            else:
                message = f'volume "{name}" already bound to a different claim.'
                self._record_event(claim, "FailedBinding", message)
        elif problem := mismatch(volume, claim):
            self._record_event(
                claim, "VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}'
            )
        else:
            self._bind(record, volume)

    def _check_bound(self, record: Record, claim: Content, volume: Content | None) -> None:
        """A claim that lost its volume stays lost."""
        if volume is not None and (not volume["spec"].get("claimRef") or is_for(volume, claim)):
            self._bind(record, volume)
            self._grow(record, claim, volume)
            return
        if (claim.get("status") or {}).get("phase") == "Lost":
            return
        reason, message = (
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        )
        if volume is not None:
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        self._record_event(claim, reason, message)
        self._set_claim_phase(record, "Lost")

    async def _find_volume(self, record: Record, claim: Content) -> None:
        storage_class = self._class(class_of(claim))
        delayed = self._is_delayed(class_of(claim))
        volume = self._reserved_volume(claim) or (None if delayed else self._free_volume(claim))
        if volume is not None:
            self._bind(record, volume)
        elif not has_class(claim) and (name := default_class(self._objects.store)):
            self._objects.system_update(record, lambda content: content["spec"].update(storageClassName=name))
        elif delayed and not self._selected_node(record, claim):
            message = "waiting for first consumer to be created before binding"
            self._record_event(claim, "WaitForFirstConsumer", message, names.NORMAL)
        elif class_of(claim):
            await self._provision(record, claim, storage_class)
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._record_event(claim, "FailedBinding", message, names.NORMAL)

    def _selected_node(self, record: Record, claim: Content) -> str:
        """The node for which a delayed claim is to be served; empty while no scheduler has chosen one."""
        selected = str(annotations_of(claim).get(names.SELECTED_NODE) or "")
        if not selected and (selected := self._nodes.pop(record.key, "")):
            self._objects.system_update(
                record, lambda content: annotate(content, names.SELECTED_NODE, selected)
            )
        return selected

    def _reserved_volume(self, claim: Content) -> Content | None:
        """A volume that was set aside for a claim."""
        meta = claim["metadata"]
        volumes = [self._volume(name) for name in self._index.taken_by(meta["namespace"], meta["name"])]
        reserved = [volume for volume in volumes if volume is not None and is_for(volume, claim)]
        return next(matches(claim, smallest_first(reserved)), None)

    def _free_volume(self, claim: Content) -> Content | None:
        """The smallest volume that serves a claim and that no other claim has been given since the last commit."""
        for volume in matches(claim, self._index.free(class_of(claim), requested_size(claim))):
            current = self._volume(volume["metadata"]["name"])
            if current is not None and not current["spec"].get("claimRef"):
                return current
        return None

    def _bind(self, claim: Record, volume: Content) -> None:
        """First the volume, then the claim: what is left half done is completed from the volume."""
        record = self._objects.store.get(VOLUMES, "", volume["metadata"]["name"])
        content = claim.object()
        if record is not None:
            bound = self._objects.system_update(record, partial(bind_volume, claim=content))
            if bound is not None:
                self._objects.system_update(claim, partial(bind_claim, volume=bound.object()))

    def _grow(self, record: Record, claim: Content, volume: Content) -> None:
        """A folder has room for whatever its claim asks for; last the volume, which tells what is left to do."""
        volume_record = self._objects.store.get(VOLUMES, "", volume["metadata"]["name"])
        grown = requested_size(claim) > capacity_of(volume)
        if grown and is_ours(volume) and volume_record is not None:
            size = claim["spec"]["resources"]["requests"]["storage"]
            for each in (record, volume_record):
                self._objects.system_update(each, partial(set_capacity, size=size))

    def _set_claim_phase(self, record: Record, phase: str) -> None:
        self._objects.system_update(record, partial(set_phase, phase=phase))

    # -- making volumes

    async def _provision(self, record: Record, claim: Content, storage_class: Content | None) -> None:
        name, failed = class_of(claim), "ProvisioningFailed"
        if storage_class is None:
            self._record_event(claim, failed, f'storageclass.storage.k8s.io "{name}" not found')
            return
        provisioner = storage_class["provisioner"]
        if provisioner == NO_PROVISIONER:
            self._record_event(claim, failed, f"no volume plugin matched name: {provisioner}")
            return
        self._objects.system_update(record, partial(annotate_provisioner, provisioner=provisioner))
        if provisioner != PROVISIONER:
            message = (
                f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually"
                " by the system administrator."
            )
            self._record_event(claim, "ExternalProvisioning", message, names.NORMAL)
        elif refusal := self._provisioner.refusal(claim):
            self._record_event(claim, failed, refusal)
        else:
            await self._make_volume(claim, storage_class)

    async def _make_volume(self, claim: Content, storage_class: Content) -> None:
        volume = self._provisioner.volume(claim, storage_class)
        name = volume["metadata"]["name"]
        if self._objects.store.get(VOLUMES, "", name) is None:
            try:
                await self._create(VOLUMES, "", volume)
            except StatusError as error:
                self._record_event(claim, "ProvisioningFailed", str(error))
                raise
            message = f"Successfully provisioned volume {name}"
            self._record_event(claim, "ProvisioningSucceeded", message, names.NORMAL)

    # -- volumes

    async def _sync_volume(self, record: Record) -> None:
        relocated = self._objects.system_update(record, self._provisioner.relocate)
        if relocated is None:
            return
        volume = relocated.object()
        reference = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            self._objects.system_update(record, partial(set_phase, phase="Available"))
            return
        claim = self._objects.store.get(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
        if claim is None or claim.meta.uid != reference["uid"]:
            await self._reclaim(record, volume)
        elif (bound_to := claim.field("spec.volumeName")) == record.key.name:
            self._objects.system_update(record, partial(set_phase, phase="Bound"))
        elif bound_to:
            if PROVISIONED_BY in annotations_of(volume) and goes_with_claim(volume):
                await self._reclaim(record, volume)
            else:
                self._objects.system_update(record, unbind_volume)

    async def _reclaim(self, record: Record, volume: Content) -> None:
        """A volume whose claim is gone is kept or, where we made it, deleted."""
        if not (is_ours(volume) and goes_with_claim(volume)):
            self._objects.system_update(record, partial(set_phase, phase="Released"))
            return
        try:
            await self._provisioner.remove(volume)
        except OSError as error:
            self._record_event(volume, "VolumeFailedDelete", str(error))
            self._objects.system_update(record, partial(set_phase, phase="Failed", message=str(error)))
            return
        self._objects.system_update(record, partial(set_phase, phase="Released"))
        if not record.meta.deletion_timestamp:
            await self._delete(record)

    # -- look-ups

    def _volume(self, name: str) -> Content | None:
        record = self._objects.store.get(VOLUMES, "", name)
        return None if record is None else record.object()

    def _class(self, name: str) -> Content | None:
        record = self._objects.store.get(STORAGE_CLASSES, "", name) if name else None
        return None if record is None else record.object()

    def _is_delayed(self, name: str) -> bool:
        """Whether claims of a class wait for a scheduler to choose their volumes."""
        record = self._objects.store.get(STORAGE_CLASSES, "", name) if name else None
        return record is not None and record.field("volumeBindingMode") == "WaitForFirstConsumer"


class VolumeIndex:
    """Kept up by changes, so that a claim costs what volumes of its class are free."""

    def __init__(self) -> None:
        self._free: dict[str, list[Size]] = {}
        """Volumes that are Available, by class, the smallest first."""
        self._volumes: dict[str, Content] = {}
        """The same volumes, by name."""
        self._taken: dict[Name, dict[str, None]] = {}
        """Volumes that are bound to a claim or set aside for it, by its name."""
        self._unbound: dict[str, dict[Key, None]] = {}
        """Claims without a volume, by class."""

    def update(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is not None:
            self._set(before, add=False)
        if after is not None:
            self._set(after, add=True)

    def add(self, record: Record) -> None:
        self._set(record, add=True)

    def free(self, storage_class: str, size: Any) -> Iterator[Content]:
        """Volumes of a class that have at least this size, the smallest first.

        The index follows what is committed: some of them may be bound by now.
        """
        volumes = self._free.get(storage_class, [])
        return (self._volumes[name] for _, name in volumes[bisect_left(volumes, (size, "")) :])

    def is_free(self, name: str) -> bool:
        return name in self._volumes

    def taken_by(self, namespace: str, name: str) -> list[str]:
        """Names of volumes that are bound to a claim of this name, or set aside for it."""
        return list(self._taken.get((namespace, name), ()))

    def unbound(self, storage_class: str) -> Iterator[Key]:
        return iter(list(self._unbound.get(storage_class, ())))

    def _set(self, record: Record, add: bool) -> None:
        content = record.object()
        if record.key.resource == VOLUMES:
            self._set_volume(content, add)
        elif record.key.resource == CLAIMS and not content["spec"].get("volumeName"):
            _put(self._unbound, class_of(content), record.key, add)

    def _set_volume(self, volume: Content, add: bool) -> None:
        name = volume["metadata"]["name"]
        if reference := volume["spec"].get("claimRef"):
            claim = str(reference.get("namespace", "")), str(reference.get("name", ""))
            _put(self._taken, claim, name, add)
        elif (volume.get("status") or {}).get("phase") == "Available":
            self._remove_free(name)
            if add:
                self._volumes[name] = volume
                insort(self._free.setdefault(class_of(volume), []), (capacity_of(volume), name))

    def _remove_free(self, name: str) -> None:
        if (volume := self._volumes.pop(name, None)) is None:
            return
        volumes = self._free[class_of(volume)]
        del volumes[bisect_left(volumes, (capacity_of(volume), name))]
        if not volumes:
            del self._free[class_of(volume)]


def _put(groups: dict[Any, dict[Any, None]], group: object, item: object, add: bool) -> None:
    if add:
        groups.setdefault(group, {})[item] = None
    elif group in groups:
        groups[group].pop(item, None)
        if not groups[group]:
            del groups[group]
