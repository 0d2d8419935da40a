"""Objects as they will be once the pods that are being bound are bound: on their nodes, with all they were granted.

The API server may show none of it yet. A dump shows it, so that whoever replays the dump counts the same as held.
"""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api import names
from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.api.types.devices import DeviceClaim, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from stromboli.api.types.meta import Object, ObjectMeta, OwnerReference
from stromboli.api.types.pod import ExtendedResourceClaimStatus, Pod
from stromboli.api.types.storage import ClaimReference, PersistentVolume, PersistentVolumeClaim
from stromboli.model.cluster import Cluster
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.ledgers import Grant
from stromboli.model.status import Status
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes.prebind.extended_resource_writes import claim_name


class GrantedBind(NamedTuple):
    """Where a pod is being bound, and what it was granted there."""

    name: str
    node: str
    grants: tuple[Grant, ...]


class GrantedObjects:
    """Made in the cycle's thread; of plain data, so it may be used in another."""

    def __init__(self, cluster: Cluster):
        self._placements = {
            task.uid: GrantedBind(task.name, task.node.name, task.grants)
            for task in cluster.tasks.values()
            if task.status is Status.BINDING and task.node is not None
        }
        self._volume_grants: dict[str, tuple[str, VolumeGrant]] = {}
        """The nodes and grants of PersistentVolumeClaims."""
        self._volumes: dict[str, VolumeGrant] = {}
        self._claims: dict[str, list[ClaimGrant | ExtendedResourceGrant]] = {}
        self._made: dict[str, ResourceClaim] = {}
        """Claims for extended resources that were not seen yet."""
        for uid, placement in self._placements.items():
            for grant in placement.grants:
                self._note(uid, placement, grant)

    def _note(self, uid: str, placement: GrantedBind, grant: Grant) -> None:
        if isinstance(grant, VolumeGrant):
            self._volume_grants[f"{grant.namespace}/{grant.claim}"] = placement.node, grant
            if grant.volume:
                self._volumes[grant.volume] = grant
        elif isinstance(grant, ClaimGrant):
            self._claims.setdefault(f"{grant.namespace}/{grant.name}", []).append(grant)
        elif isinstance(grant, ExtendedResourceGrant):
            claim = _made_claim(uid, placement, grant)
            self._made[claim.key] = claim
            self._claims[claim.key] = [grant]

    def complete(self, object: Object) -> Object:
        """An object with what was granted, as far as it does not show that already."""
        match object:
            case Pod():
                self._complete_pod(object)
            case PersistentVolumeClaim() if object.key in self._volume_grants:
                node, grant = self._volume_grants[object.key]
                if not object.spec.volume_name:
                    object.spec.volume_name = grant.volume
                    key, value = (
                        (names.BIND_COMPLETED, "yes") if grant.volume else (names.SELECTED_NODE, node)
                    )
                    object.metadata.annotations[key] = value
            case PersistentVolume() if object.name in self._volumes and object.spec.claim_ref is None:
                grant = self._volumes[object.name]
                object.spec.claim_ref = ClaimReference(grant.namespace, grant.claim, grant.claim_uid)
            case ResourceClaim():
                self._made.pop(object.key, None)
                for held in self._claims.get(object.key, ()):
                    _complete_claim(object, held)
        return object

    def _complete_pod(self, pod: Pod) -> None:
        placement = self._placements.get(pod.metadata.uid)
        if placement is None or pod.spec.node_name:
            return
        pod.spec.node_name = placement.node
        for grant in placement.grants:
            pod.metadata.annotations |= dict(grant.annotations)
            if isinstance(grant, ExtendedResourceGrant):
                name = claim_name(placement.name, pod.metadata.uid)
                pod.status.extended_resource_claim_status = ExtendedResourceClaimStatus(grant.mappings, name)

    def made(self) -> list[ResourceClaim]:
        """Claims for extended resources that are about to be created: those that none of the objects was."""
        return list(self._made.values())


def _complete_claim(claim: ResourceClaim, grant: ClaimGrant | ExtendedResourceGrant) -> None:
    status = claim.status
    status.allocation = status.allocation or grant.allocation
    if grant.consumer not in status.reserved_for:
        status.reserved_for = (*status.reserved_for, grant.consumer)


def _made_claim(uid: str, placement: GrantedBind, grant: ExtendedResourceGrant) -> ResourceClaim:
    metadata = ObjectMeta(
        name=claim_name(placement.name, uid),
        namespace=grant.namespace,
        uid=f"{uid}-extended-resources",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(OwnerReference("v1", "Pod", placement.name, uid, controller=True),),
    )
    status = ResourceClaimStatus(grant.allocation, (grant.consumer,))
    return ResourceClaim(metadata, ResourceClaimSpec(DeviceClaim(grant.requests)), status)
