"""A dump shows what pods that are being bound were granted, so that whoever replays it counts the same."""

from __future__ import annotations

from typing import Any

from stromboli.api.types.devices import (
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ConsumerReference,
    DeviceRequest,
)
from stromboli.api.types.meta import Object
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.intake.object_intake import Intake
from stromboli.model.ledgers import Grant
from stromboli.model.status import Status
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.introspection import GrantedObjects
from tests.manifests import decoded, group, node, pod, queue

POD = pod("web-0", "web")


def granted(*grants: Grant) -> GrantedObjects:
    intake = Intake()
    for manifest in (queue(), node("n1"), group("web", 1), POD):
        intake.put(decoded(manifest))
    (task,) = intake.cluster.tasks.values()
    intake.cluster.move(task, Status.BINDING, intake.cluster.nodes["n1"], grants)
    return GrantedObjects(intake.cluster)


def made(api: str, kind: str, name: str, **content: Any) -> Any:
    metadata = {"name": name, "namespace": "default", "uid": f"uid of {name}"}
    return decoded({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {}, **content})


def completed(granted: GrantedObjects, object: Object) -> Any:
    return granted.complete(object)


def devices(name: str) -> AllocationResult:
    return AllocationResult(AllocatedDevices((AllocatedDevice("gpu", "d", "p", name),)))


def test_a_pod_that_is_being_bound_is_on_its_node_with_the_annotations_of_its_grants() -> None:
    shown = completed(granted(CardGrant("hamivgpu", (), (("a", "1"),))), decoded(POD))
    assert shown.spec.node_name == "n1"
    assert shown.metadata.annotations["a"] == "1"


def test_claims_have_their_volume_or_their_node() -> None:
    objects = granted(
        VolumeGrant("default", "c0", "uid of c0", "v0"), VolumeGrant("default", "c1", "uid of c1")
    )
    bound = completed(objects, made("v1", "PersistentVolumeClaim", "c0"))
    waiting = completed(objects, made("v1", "PersistentVolumeClaim", "c1"))
    volume = completed(
        objects, decoded({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v0"}})
    )
    assert (bound.spec.volume_name, volume.spec.claim_ref.name) == ("v0", "c0")
    assert "pv.kubernetes.io/bind-completed" in bound.metadata.annotations
    assert waiting.metadata.annotations == {"volume.kubernetes.io/selected-node": "n1"}
    other = completed(objects, made("v1", "PersistentVolumeClaim", "other"))
    assert not other.metadata.annotations


def test_resource_claims_are_allocated_and_those_for_extended_resources_exist() -> None:
    consumer = ConsumerReference("", "pods", "web-0", "u")
    objects = granted(
        ClaimGrant("default", "c0", "uid of c0", consumer, devices("g0")),
        ExtendedResourceGrant("default", consumer, (DeviceRequest("r"),), (), devices("g1")),
    )
    claim = completed(objects, made("resource.k8s.io/v1", "ResourceClaim", "c0"))
    assert claim.status.allocation == devices("g0")
    assert claim.status.reserved_for == (consumer,)
    shown = completed(objects, decoded(POD))
    (extended,) = objects.made()
    assert extended.status.allocation == devices("g1")
    assert shown.status.extended_resource_claim_status.resource_claim_name == extended.name
    assert extended.metadata.owner_references[0].uid == shown.metadata.uid


def test_a_claim_for_extended_resources_that_exists_already_is_completed_and_not_made_again() -> None:
    consumer = ConsumerReference("", "pods", "web-0", "u")
    objects = granted(
        ExtendedResourceGrant("default", consumer, (DeviceRequest("r"),), (), devices("g1")),
    )
    pod = completed(objects, decoded(POD))
    name = pod.status.extended_resource_claim_status.resource_claim_name
    created = completed(objects, made("resource.k8s.io/v1", "ResourceClaim", name))
    assert created.status.allocation == devices("g1")
    assert created.status.reserved_for == (consumer,)
    assert not objects.made()
