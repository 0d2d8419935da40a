"""What a task is given for its ResourceClaims on its node: devices, and the right to use them."""

from __future__ import annotations

from stromboli.api.types.devices import AllocationResult, ConsumerReference, DeviceRequest
from stromboli.api.types.pod import ContainerExtendedResourceRequest
from stromboli.model.ledgers import Grant


class ClaimGrant(Grant, frozen=True):
    """How a task comes to use a ResourceClaim; a task has a grant for each of its claims.

    Before the pod is bound, the claim gets this allocation (with the finalizer of allocated claims), unless there is
    none to write, and its consumer in `status.reservedFor`. Pods that share a claim hold equal allocations, so writing
    an allocation that stands there already changes nothing; if another stands there, the bind fails.
    """

    namespace: str
    """The namespace of the claim."""
    name: str
    """The name of the claim."""
    uid: str
    """The uid of the claim: another claim of the same name is not meant."""
    consumer: ConsumerReference
    """Who reserves the claim: the pod, or the native PodGroup whose claim it is."""
    allocation: AllocationResult | None = None
    """What is written into `status.allocation`; none if the claim was allocated already."""


class ExtendedResourceGrant(Grant, frozen=True):
    """Devices for extended resources of a pod, by a ResourceClaim that is made for it.

    Before the pod is bound, the claim is created: owned and controlled by the pod, with the annotation
    `resource.kubernetes.io/extended-resource-claim: "true"` and a name generated from `<pod>-extended-resources-`. It
    gets its allocation and the pod in `status.reservedFor`, and the pod its `status.extendedResourceClaimStatus`. If
    the bind fails, the claim is deleted, finalizer and all.
    """

    namespace: str
    """The namespace of the pod and of its claim."""
    consumer: ConsumerReference
    """The pod."""
    requests: tuple[DeviceRequest, ...]
    """What the claim asks for (`spec.devices.requests`)."""
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    """Which request serves which resource of which container (`requestMappings` of the pod's status)."""
    allocation: AllocationResult
    """What is written into `status.allocation`."""
