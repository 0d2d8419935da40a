"""Volume claims of pods: those that keep a pod from any node (missing, lost, terminating, unbound), and those that are
bound or wait for their first pod (spec 04 2.8, 2.10, 2.11)."""

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

MOST_IN_SELECTOR = 64
"""Labels, expressions and their values in the selector of a claim: each is compared with many volumes."""
_ANY_CLAIM = ClaimSource()


class ClaimName(NamedTuple):
    """A claim that a pod names, or that is created for one of its ephemeral volumes."""

    name: str
    ephemeral: bool


def zone_problem(objects: LookupObjects, task: Task) -> str | None:
    """Why the zones of a pod's volumes are unknown."""
    for reference in task.volume_claims:
        if not reference.ephemeral and (problem := _unknown_zone(objects, task.namespace, reference.name)):
            return problem
    return None


def _unknown_zone(objects: LookupObjects, namespace: str, name: str) -> str | None:
    if not name:
        return names.CLAIM_WITHOUT_NAME
    claim = objects.claims.get(f"{namespace}/{name}")
    if claim is None:
        return names.CLAIM_NOT_FOUND.format(name=name)
    volume = claim.spec.volume_name
    if volume:
        return None if volume in objects.volumes else names.VOLUME_NOT_FOUND.format(name=volume)
    name_of_class = class_name(claim)
    if not name_of_class:
        return names.CLAIM_WITHOUT_VOLUME_OR_CLASS
    storage_class = objects.storage_classes.get(name_of_class)
    if storage_class is None:
        return names.STORAGE_CLASS_NOT_FOUND.format(name=name_of_class)
    if not storage_class.volume_binding_mode:
        return names.CLASS_WITHOUT_BINDING_MODE.format(name=name_of_class)
    return None if binds_late(storage_class) else names.VOLUME_WITHOUT_NAME


def binding_problem(objects: LookupObjects, task: Task) -> str | None:
    """Why a pod's claims cannot be bound on any node."""
    claims: list[PersistentVolumeClaim] = []
    for reference in task.volume_claims:
        claim = objects.claims.get(f"{task.namespace}/{reference.name}")
        if claim is None:
            text = names.WAITING_FOR_EPHEMERAL_CLAIM if reference.ephemeral else names.CLAIM_NOT_FOUND
            return text.format(name=reference.name)
        if problem := _unusable(task, claim, reference.ephemeral):
            return problem
        claims.append(claim)
    if any(_is_unbound_immediate(objects, claim) for claim in claims):
        return names.UNBOUND_IMMEDIATE_CLAIMS
    return None


def unbound_problem(objects: LookupObjects, task: Task) -> str | None:
    """Why a pod's claims are not all bound to volumes that exist."""
    problem = binding_problem(objects, task)
    if problem:
        return problem
    for reference in task.volume_claims:
        claim = objects.claims[f"{task.namespace}/{reference.name}"]
        volume = claim.spec.volume_name
        if not volume:
            return names.UNBOUND_CLAIM.format(name=claim.name)
        if volume not in objects.volumes:
            return names.VOLUME_NOT_FOUND.format(name=volume)
    return None


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


def _unusable(task: Task, claim: PersistentVolumeClaim, ephemeral: bool) -> str | None:
    if claim.status.phase == names.CLAIM_LOST:
        return names.CLAIM_VOLUME_LOST.format(name=claim.name, volume=claim.spec.volume_name)
    if claim.metadata.deletion_timestamp is not None:
        return names.CLAIM_BEING_DELETED.format(name=claim.name)
    if ephemeral and not any(
        owner.controller and owner.uid == task.uid for owner in claim.metadata.owner_references
    ):
        return names.CLAIM_OF_ANOTHER_POD.format(namespace=task.namespace, name=claim.name, pod=task.name)
    if not is_bound(claim) and (count := _count_in_selector(claim)) > MOST_IN_SELECTOR:
        return names.CLAIM_SELECTOR_TOO_LONG.format(name=claim.name, count=count, most=MOST_IN_SELECTOR)
    return None


def _count_in_selector(claim: PersistentVolumeClaim) -> int:
    selector = claim.spec.selector
    if selector is None:
        return 0
    return len(selector.match_labels) + sum(1 + len(each.values) for each in selector.match_expressions)


def _is_unbound_immediate(objects: LookupObjects, claim: PersistentVolumeClaim) -> bool:
    if is_bound(claim):
        return False
    storage_class = objects.storage_classes.get(class_name(claim))
    return bool(claim.spec.volume_name) or storage_class is None or not binds_late(storage_class)


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
    """Volumes as all replicas have them: which claim is meant differs from pod to pod."""
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
