"""Volume claims of pods: those that they name, and those that are bound or wait for their first pod (spec 04 2.11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.api import names
from stromboli.api.types.pod import ClaimSource

if TYPE_CHECKING:
    from stromboli.api.types.pod import Volume
    from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.task import Task

_ANY_CLAIM = ClaimSource()


class ClaimName(NamedTuple):
    """A claim that a pod names, or that is created for one of its ephemeral volumes."""

    name: str
    ephemeral: bool


def bound_volumes(objects: LookupObjects, task: Task) -> Iterator[PersistentVolume]:
    """The volumes that the claims of a task name."""
    yield from _volumes(objects, task, task.volume_claims)


def named_volumes(objects: LookupObjects, task: Task) -> Iterator[PersistentVolume]:
    """The same without those of its ephemeral volumes."""
    yield from _volumes(objects, task, (claim for claim in task.volume_claims if not claim.ephemeral))


def _volumes(objects: LookupObjects, task: Task, claims: Iterable[ClaimName]) -> Iterator[PersistentVolume]:
    for reference in claims:
        claim = objects.claims.get(f"{task.namespace}/{reference.name}")
        volume = objects.volumes.get(claim.spec.volume_name) if claim is not None else None
        if volume is not None:
            yield volume


def claims_of(pod: str, volumes: tuple[Volume, ...]) -> tuple[ClaimName, ...]:
    """The claims that a pod of this name has by its volumes, each once."""
    claims: dict[ClaimName, None] = {}
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            claims[ClaimName(volume.persistent_volume_claim.claim_name, ephemeral=False)] = None
        elif volume.ephemeral is not None:
            claims[ClaimName(f"{pod}-{volume.name}", ephemeral=True)] = None
    return tuple(claims)


def without_claim_names(volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
    """Volumes as equal for all replicas: the claims of ephemeral volumes differ from pod to pod."""
    if not volumes or not any(volume.persistent_volume_claim is not None for volume in volumes):
        return volumes
    return tuple(
        volume
        if volume.persistent_volume_claim is None
        else msgspec.structs.replace(volume, persistent_volume_claim=_ANY_CLAIM)
        for volume in volumes
    )


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is bound to its volume, and the volume to it."""
    return bool(claim.spec.volume_name) and names.BIND_COMPLETED in claim.metadata.annotations


def waits_for_pod(objects: LookupObjects, claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is bound when its first pod is placed, and is not bound yet."""
    storage_class = objects.storage_classes.get(class_name(claim))
    return not claim.spec.volume_name and storage_class is not None and binds_late(storage_class)


def class_name(claim: PersistentVolumeClaim) -> str:
    """The name of a claim's storage class; the old annotation goes before the field."""
    annotated = claim.metadata.annotations.get(names.STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def binds_late(storage_class: StorageClass) -> bool:
    """Whether claims of a class are bound when their first pod is placed."""
    return storage_class.volume_binding_mode == names.WAIT_FOR_FIRST_CONSUMER
