"""Volume claims of pods: those that keep a pod from any node (missing, lost, terminating, unbound), and the nodes
from which volumes of bound ones can be reached (spec 04 2.8, 2.11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.model.constraints.node_selection import matching_selector

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Bools, Columns
    from stromboli.model.task import Task

_ZONE_LABELS = {
    names.OLD_ZONE: names.ZONE,
    names.OLD_REGION: names.REGION,
    names.ZONE: names.ZONE,
    names.REGION: names.REGION,
}
"""The labels of a volume that say where it is, each with the label that means the same today."""


class ClaimName(NamedTuple):
    """A claim that a pod names, or that is created for one of its ephemeral volumes."""

    name: str
    ephemeral: bool


def zone_problem(objects: LookupObjects, task: Task) -> str | None:
    """Why the zones of a pod's volumes are unknown."""
    for reference in _claims_of(task):
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
    class_name = _class_name(claim)
    if not class_name:
        return names.CLAIM_WITHOUT_VOLUME_OR_CLASS
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        return names.STORAGE_CLASS_NOT_FOUND.format(name=class_name)
    if not storage_class.volume_binding_mode:
        return names.CLASS_WITHOUT_BINDING_MODE.format(name=class_name)
    return None if _binds_late(storage_class) else names.VOLUME_WITHOUT_NAME


def binding_problem(objects: LookupObjects, task: Task) -> str | None:
    """Why a pod's claims cannot be bound on any node."""
    claims: list[PersistentVolumeClaim] = []
    for reference in _claims_of(task):
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
    for reference in _claims_of(task):
        claim = objects.claims[f"{task.namespace}/{reference.name}"]
        volume = claim.spec.volume_name
        if not volume:
            return names.UNBOUND_CLAIM.format(name=claim.name)
        if volume not in objects.volumes:
            return names.VOLUME_NOT_FOUND.format(name=volume)
    return None


def restricted_volumes(objects: LookupObjects, task: Task) -> list[PersistentVolume]:
    """The volumes of a pod's bound claims that cannot be reached from every node."""
    return [volume for volume in _bound_volumes(objects, task) if _affinity(volume) or _zones(volume)]


def nodes_with_affinity(columns: Columns, volume: PersistentVolume) -> Bools:
    """Nodes from which a volume can be reached by its node affinity."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity else None
    return np.ones(len(columns), dtype=bool) if required is None else matching_selector(columns, required)


def nodes_in_zones(columns: Columns, volume: PersistentVolume) -> Bools:
    """Nodes in the zones and regions that a volume's labels name; a node that names none counts as near."""
    unnamed = np.ones(len(columns), dtype=bool)
    for label in _ZONE_LABELS:
        unnamed &= columns.label_codes(label)[0] < 0
    matching = np.ones(len(columns), dtype=bool)
    for label, zones in _zones(volume).items():
        named = np.zeros(len(columns), dtype=bool)
        for key in {label, _ZONE_LABELS[label]}:
            codes, values = columns.label_codes(key)
            named |= np.isin(codes, [values[zone] for zone in zones if zone in values])
        matching &= named
    return matching | unnamed


def _affinity(volume: PersistentVolume) -> bool:
    return volume.spec.node_affinity is not None and volume.spec.node_affinity.required is not None


def _zones(volume: PersistentVolume) -> dict[str, list[str]]:
    """The values of its labels for zones and regions, of which each may list several."""
    labels = volume.metadata.labels
    listed = {label: labels[label].split("__") for label in _ZONE_LABELS if label in labels}
    return {label: zones for label, zones in listed.items() if all(zones)}


def _bound_volumes(objects: LookupObjects, task: Task) -> Iterator[PersistentVolume]:
    for reference in _claims_of(task):
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
    return None


def _is_unbound_immediate(objects: LookupObjects, claim: PersistentVolumeClaim) -> bool:
    if claim.spec.volume_name and names.BIND_COMPLETED in claim.metadata.annotations:
        return False
    storage_class = objects.storage_classes.get(_class_name(claim))
    return bool(claim.spec.volume_name) or storage_class is None or not _binds_late(storage_class)


def _claims_of(task: Task) -> Iterator[ClaimName]:
    for volume in task.shape.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimName(volume.persistent_volume_claim.claim_name, ephemeral=False)
        elif volume.ephemeral is not None:
            yield ClaimName(f"{task.name}-{volume.name}", ephemeral=True)


def _class_name(claim: PersistentVolumeClaim) -> str:
    annotated = claim.metadata.annotations.get(names.STORAGE_CLASS)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def _binds_late(storage_class: StorageClass) -> bool:
    return storage_class.volume_binding_mode == names.WAIT_FOR_FIRST_CONSUMER
