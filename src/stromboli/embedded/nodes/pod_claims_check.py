"""What a node waits for before it starts a pod: bound claims of volumes, and devices that are reserved for the pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, NoResponse

VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEVICE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
FAILED_MOUNT, FAILED_DEVICES = "FailedMount", "FailedPrepareDynamicResources"


class MissingClaim(NamedTuple):
    """Why a pod cannot start, as an event."""

    reason: str
    message: str


def volume_claims(pod: NodePod) -> Iterator[str]:
    """Names of the PersistentVolumeClaims of a pod."""
    for volume in pod.spec.volumes or ():
        if isinstance(claim := volume.get("persistentVolumeClaim"), dict):
            yield str(claim.get("claimName", ""))
        elif volume.get("ephemeral") is not None:
            yield f"{pod.name}-{volume.get('name', '')}"


def needs_claims(pod: NodePod) -> bool:
    return bool(pod.spec.resource_claims or pod.status.extended_resource_claim_status) or any(
        volume_claims(pod)
    )


def device_claims(pod: NodePod) -> Iterator[tuple[str, str]]:
    """The ResourceClaims of a pod: their names in the pod, and their own if they are known."""
    made = {entry.get("name"): entry for entry in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims or ():
        name = str(entry.get("name", ""))
        status = made.get(name)
        if status is not None and not status.get("resourceClaimName"):
            continue  # none is needed
        yield name, str(entry.get("resourceClaimName") or (status or {}).get("resourceClaimName") or "")
    if extended := (pod.status.extended_resource_claim_status or {}).get("resourceClaimName"):
        yield "extended resources", str(extended)


async def missing_claim(client: Client, pod: NodePod) -> MissingClaim | None:
    """What a pod still waits for."""
    for name in volume_claims(pod):
        if problem := _volume_problem(await _get(client, VOLUME_CLAIMS, pod, name)):
            return MissingClaim(FAILED_MOUNT, f'persistentvolumeclaim "{name}": {problem}')
    for name, claim in device_claims(pod):
        content = await _get(client, DEVICE_CLAIMS, pod, claim) if claim else None
        if problem := _device_problem(content, pod):
            message = (
                f"prepare dynamic resources: {name}: resourceclaim {claim or '(not made yet)'}: {problem}"
            )
            return MissingClaim(FAILED_DEVICES, message)
    return None


def _volume_problem(claim: Content | None) -> str:
    if claim is None:
        return "not found"
    bound = (claim.get("status") or {}).get("phase") == "Bound"
    return "" if bound else "the claim is not bound to a volume"


def _device_problem(claim: Content | None, pod: NodePod) -> str:
    if claim is None:
        return "not found"
    status = claim.get("status") or {}
    if status.get("allocation") is None:
        return "it has no devices yet"
    group = (pod.spec.scheduling_group or {}).get("podGroupName")
    for consumer in status.get("reservedFor") or ():
        if consumer.get("uid") == pod.uid:
            return ""
        if group and consumer.get("resource") == "podgroups" and consumer.get("name") == group:
            return ""
    return f"it is not reserved for pod {pod.name}"


async def _get(client: Client, resource: Resource, pod: NodePod, name: str) -> Content | None:
    """An object; None if there is none, or it cannot be read now."""
    try:
        content: Content = msgspec.json.decode(await client.get(resource, name, pod.namespace))
    except (ApiError, NoResponse):
        return None
    return content
