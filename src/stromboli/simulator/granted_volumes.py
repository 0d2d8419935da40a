"""What an API server with its controllers and drivers makes of volumes that a task was given: its claims are bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stromboli.api import names
from stromboli.api.resources.quantity import format_bytes
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import ObjectMeta, Requirement
from stromboli.api.types.pod import NodeSelector, NodeSelectorTerm
from stromboli.api.types.storage import (
    ClaimReference,
    CSISource,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
    VolumePhase,
)
from stromboli.model.volumes.claim_kind import amount_of, kind_of
from stromboli.model.volumes.volume_claims import class_name, is_bound
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.model.volumes.volume_ledger import IGNORED_PROVISIONERS

if TYPE_CHECKING:
    from stromboli.model.intake.object_intake import Intake
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task

BOUND = "Bound"


def bind_granted_volumes(intake: Intake, task: Task) -> None:
    """Bind the claims of a task to the volumes that it was given, and make those that are to be provisioned."""
    objects = intake.cluster.objects
    for grant in task.grants:
        if not isinstance(grant, VolumeGrant) or task.node is None:
            continue
        claim = objects.claims.get(f"{grant.namespace}/{grant.claim}")
        if claim is None or is_bound(claim) or claim.metadata.uid != grant.claim_uid:
            continue
        volume = objects.volumes.get(grant.volume) if grant.volume else _provisioned(intake, claim, task.node)
        if volume is not None:
            _bind(intake, claim, volume)


def _bind(intake: Intake, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
    reference = ClaimReference(claim.namespace, claim.name, claim.metadata.uid)
    spec = replace(volume.spec, claim_ref=reference)
    intake.put(replace(volume, spec=spec, status=VolumePhase(BOUND)))
    annotations = {**claim.metadata.annotations, names.BIND_COMPLETED: "yes"}
    metadata = replace(claim.metadata, annotations=annotations)
    bound = replace(claim.spec, volume_name=volume.name)
    intake.put(replace(claim, metadata=metadata, spec=bound, status=VolumePhase(BOUND)))


def _provisioned(intake: Intake, claim: PersistentVolumeClaim, node: Node) -> PersistentVolume:
    """The volume that a driver makes for a claim on a node; its storage has so much less then."""
    kind, storage_class = kind_of(claim), class_name(claim)
    known = intake.cluster.objects.storage_classes.get(storage_class)
    driver = known.provisioner if known is not None else ""
    for report in list(intake.cluster.objects.storage_capacities.values()):
        if report.storage_class_name == storage_class and matches_labels(report.node_topology, node.labels):
            _shrink(intake, report, kind.request)
    name = f"pvc-{claim.metadata.uid or claim.key.replace('/', '-')}"
    return PersistentVolume(
        ObjectMeta(
            name=name, uid=f"PersistentVolume/{name}", creation_timestamp=claim.metadata.creation_timestamp
        ),
        spec=PersistentVolumeSpec(
            capacity={names.STORAGE: format_bytes(kind.request)},
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class,
            volume_mode=kind.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            csi=CSISource(driver, name) if "/" not in driver else None,
            node_affinity=_affinity(intake, driver, node),
        ),
    )


def _shrink(intake: Intake, report: CSIStorageCapacity, amount: int) -> None:
    if report.capacity is not None:
        left = max(amount_of(report.capacity) - amount, 0)
        intake.put(replace(report, capacity=format_bytes(left)))


def _affinity(intake: Intake, driver: str, node: Node) -> VolumeNodeAffinity | None:
    """From where a new volume can be reached: by the labels that its driver names on the node; elsewhere from all."""
    storage_node = intake.cluster.objects.storage_nodes.get(node.name)
    keys = [
        key
        for each in (storage_node.spec.drivers if storage_node is not None else ())
        if each.name == driver
        for key in each.topology_keys or ()
    ]
    if driver in IGNORED_PROVISIONERS:
        keys.append(names.HOSTNAME)
    here = tuple(Requirement(key, "In", (node.labels[key],)) for key in keys if key in node.labels)
    return VolumeNodeAffinity(NodeSelector((NodeSelectorTerm(here),))) if here else None
