"""ResourceClaims: a claim gets its allocation, and its pods the right to use it, before any of the pods is bound.

All pods of a gang that share a claim are entered by one write. When a gang is given up, each of its pods that is not
bound is taken out again; with the last of them goes the allocation, if it is the gang's own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from weakref import WeakSet

import msgspec
from msgspec import to_builtins

from stromboli.api import names
from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.api.go_scalars import timestamp
from stromboli.api.pods import FINISHED
from stromboli.api.types.devices import AllocatedDevice, AllocationResult, ConsumerReference, ResourceClaim
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind, ReleaseClaim
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import ApiError, GuardedClient, Request, is_gone
from stromboli.model.devices.binding_conditions import BINDING_TIMEOUT, true_conditions
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.prebind.grant_writer import (
    LOOK_AGAIN,
    AwaitedObjects,
    GrantObjects,
    Json,
    uid_of,
)
from stromboli.scheduler.writes.write_orders import Gang, GangMember, PreBindFailed, WriteOrder

log = logging.getLogger(__name__)

_OF_AN_ALLOCATION = ("allocation", "reservedFor", "devices")
"""What is in the status of a claim as long as that is allocated."""


class ClaimWrites:
    """Writes `ClaimGrant`s."""

    doing = "allocating devices: "

    def __init__(
        self,
        objects: GrantObjects,
        awaited: AwaitedObjects,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._objects = objects
        self._awaited = awaited
        self._wall = wall
        self._clock = clock
        self._gangs: WeakSet[Gang] = WeakSet()
        self.releasing: set[str] = set()
        """Uids of claims that are being released: nothing is written about them meanwhile."""

    def is_in_use(self, uid: str) -> bool:
        """Whether a gang that is not all bound, or given up, uses a claim."""
        return any(gang.unbound and uid in gang.claims for gang in self._gangs)

    # -- allocation and reservation

    async def write(self, member: GangMember, bind: Bind, grant: ClaimGrant) -> None:
        gang = member.gang
        self._gangs.add(gang)
        gang.claims.add(grant.uid)
        if grant.uid in self.releasing:
            raise ApiError(409, "Conflict", f"resourceclaim {grant.namespace}/{grant.name} is being released")
        claim = await self._claim(grant)
        self._check(claim, grant)
        await self.allocate(claim, grant.allocation, self._consumers_of(gang, grant))

    def _check(self, claim: Json, grant: ClaimGrant) -> None:
        allocation = claim.get("status", {}).get("allocation")
        name = f"{grant.namespace}/{grant.name}"
        if claim["metadata"].get("deletionTimestamp"):
            raise PreBindFailed(f"resourceclaim {name} is being deleted")
        if grant.allocation is None and allocation is None:
            raise PreBindFailed(f"resourceclaim {name} is no longer allocated")
        if allocation and grant.allocation is not None and not same_devices(allocation, grant.allocation):
            raise PreBindFailed(f"resourceclaim {name} was allocated elsewhere meanwhile")

    async def allocate(
        self, claim: Json, allocation: AllocationResult | None, consumers: Iterable[ConsumerReference]
    ) -> None:
        """Write what of allocation and reservations is not there yet."""
        status = claim.get("status", {})
        reserved = list(status.get("reservedFor") or ())
        present = {consumer["uid"] for consumer in reserved}
        added = [to_builtins(consumer) for consumer in consumers if consumer.uid not in present]
        changes: Json = {"reservedFor": reserved + added} if added else {}
        if allocation is not None and not status.get("allocation"):
            finalizers = claim["metadata"].get("finalizers") or []
            if names.CLAIM_FINALIZER not in finalizers:
                metadata = {"finalizers": [*finalizers, names.CLAIM_FINALIZER]}
                claim = await self._objects.patch(ResourceClaim, claim, {"metadata": metadata})
            changes["allocation"] = self._as_written(allocation)
        if changes:
            await self._objects.set_status(ResourceClaim, claim, {**status, **changes})

    def _as_written(self, allocation: AllocationResult) -> Json:
        """With the time from which on drivers have to set the conditions of the devices, if there are any."""
        return {**to_builtins(allocation), "allocationTimestamp": timestamp(self._wall())}

    def _consumers_of(self, gang: Gang, grant: ClaimGrant) -> list[ConsumerReference]:
        """All of a gang that share a claim, the owner of this grant among them."""
        if gang.consumers is None:
            gang.consumers = {}
            for order in gang.unbound.values():
                for other in getattr(order.decision, "grants", ()):
                    if isinstance(other, ClaimGrant):
                        gang.consumers.setdefault(other.uid, {})[other.consumer.uid] = other.consumer
        return list(gang.consumers[grant.uid].values())

    async def _claim(self, grant: ClaimGrant) -> Json:
        claim = await self._objects.read(ResourceClaim, grant.namespace, grant.name)
        if claim is None or uid_of(claim) != grant.uid:
            raise PreBindFailed(f"resourceclaim {grant.namespace}/{grant.name} is gone")
        return claim

    # -- taking back

    async def give_back(self, member: GangMember, grant: ClaimGrant) -> None:
        """Take a pod out of a claim that it does not use; the last of its gang deallocates what the gang allocated.

        As long as no pod of the gang may be bound, all of them go: a write for one enters the others too.
        """
        claim = await self._objects.read(ResourceClaim, grant.namespace, grant.name)
        if claim is None or uid_of(claim) != grant.uid or not self._may_leave(member, grant):
            return
        gang = member.gang
        leaving = {grant.consumer.uid}
        if not gang.begun and gang.consumers is not None:
            leaving |= gang.consumers.get(grant.uid, {}).keys()
        status = claim.get("status", {})
        before = status.get("reservedFor") or []
        reserved = [consumer for consumer in before if consumer["uid"] not in leaving]
        allocation = status.get("allocation")
        ours = grant.allocation is not None and (not allocation or same_devices(allocation, grant.allocation))
        if ours and not reserved:
            await self.deallocate(claim)
        elif len(reserved) < len(before):
            await self._objects.set_status(ResourceClaim, claim, {**status, "reservedFor": reserved})

    @staticmethod
    def _may_leave(member: GangMember, grant: ClaimGrant) -> bool:
        """A group of pods keeps its reservation once any of its pods may be bound."""
        return grant.consumer.resource == "pods" or not member.gang.begun

    async def deallocate(self, claim: Json) -> Json:
        """Take allocation and reservations off a claim, and the finalizer that protects allocated ones."""
        status = claim.get("status", {})
        left_over = {field: value for field, value in status.items() if field not in _OF_AN_ALLOCATION}
        if len(left_over) < len(status):
            claim = await self._objects.set_status(ResourceClaim, claim, left_over)
        finalizers = claim["metadata"].get("finalizers") or []
        if names.CLAIM_FINALIZER not in finalizers:
            return claim
        left = [finalizer for finalizer in finalizers if finalizer != names.CLAIM_FINALIZER]
        return await self._objects.patch(ResourceClaim, claim, {"metadata": {"finalizers": left}})

    # -- conditions that drivers set

    async def time_to_wait(self, member: GangMember, bind: Bind, grant: ClaimGrant) -> float:
        if grant.allocation is not None and not _conditional(grant.allocation):
            return 0.0
        return await self.wait_for_conditions(member, grant.namespace, grant.name, grant.consumer)

    async def wait_for_conditions(
        self, member: GangMember, namespace: str, name: str, consumer: ConsumerReference
    ) -> float:
        """As `time_to_wait`, for the devices that a claim has by now."""
        self._awaited.expect(member.key, ResourceClaim, f"{namespace}/{name}")
        claim = await self._objects.decoded(ResourceClaim, namespace, name)
        if claim is None or claim.status.allocation is None:
            raise PreBindFailed(f"resourceclaim {namespace}/{name} was deallocated meanwhile")
        if consumer not in claim.status.reserved_for:  # as in another claim that has its name by now
            raise PreBindFailed(f"resourceclaim {namespace}/{name} is no longer reserved for the pod")
        missing = [
            condition
            for device in _conditional(claim.status.allocation)
            for condition in _missing_conditions(claim, device)
        ]
        if not missing:
            return 0.0
        left = member.waiting_since + BINDING_TIMEOUT - self._clock()
        if left <= 0:
            raise PreBindFailed(
                f"resourceclaim {namespace}/{name}: {', '.join(missing)} not true within {BINDING_TIMEOUT:.0f} seconds"
            )
        return min(left, LOOK_AGAIN)


def _conditional(allocation: AllocationResult) -> list[AllocatedDevice]:
    return [device for device in allocation.devices.results if device.binding_conditions]


def _missing_conditions(claim: ResourceClaim, device: AllocatedDevice) -> list[str]:
    """The conditions that a device still lacks; one that says that it will never be ready is a failure."""
    true = true_conditions(claim, device)
    for failed in device.binding_failure_conditions:
        if failed in true:
            text = f"device {device.device} has {failed}: {true[failed].message}"
            raise PreBindFailed(f"resourceclaim {claim.key}: {text}")
    return [wanted for wanted in device.binding_conditions if wanted not in true]


def _id(device: AllocatedDevice) -> tuple[str, str, str, str]:
    return device.driver, device.pool, device.device, device.share_id


def same_devices(written: Json, allocation: AllocationResult) -> bool:
    """Whether an allocation that stands in a claim gives the same devices to the same requests."""
    there = msgspec.convert(written, AllocationResult)
    return [(device.request, *_id(device)) for device in there.devices.results] == [
        (device.request, *_id(device)) for device in allocation.devices.results
    ]


# -- extended resources that devices stand for: a ResourceClaim is made for the pod, whose status names it


NAME_LENGTH = 253
"""The most characters that the name of an object may have."""


class ExtendedResourceWrites:
    """Writes `ExtendedResourceGrant`s.

    The name of the claim follows from the uid of the pod, so that a lost response never leaves two claims. The claim is
    deleted if the pod is not bound after all.
    """

    doing = "allocating devices: "

    def __init__(self, client: GuardedClient, objects: GrantObjects, claims: ClaimWrites):
        self._client = client
        self._objects = objects
        self._claims = claims

    async def write(self, member: GangMember, bind: Bind, grant: ExtendedResourceGrant) -> None:
        name = claim_name(bind.name, bind.uid)
        if not member.made_claim:
            member.made_claim = name
            member.take_back.append(partial(self.remove, bind, name))
        claim = await self._objects.read(ResourceClaim, grant.namespace, name) or await self._create(
            bind, grant, name
        )
        allocation = claim.get("status", {}).get("allocation")
        if _controller(claim) != bind.uid:
            raise PreBindFailed(f"resourceclaim {grant.namespace}/{name} belongs to another pod")
        if allocation and not same_devices(allocation, grant.allocation):
            raise PreBindFailed(f"resourceclaim {grant.namespace}/{name} is left from an earlier attempt")
        await self._claims.allocate(claim, grant.allocation, [grant.consumer])
        status = {"requestMappings": to_builtins(grant.mappings), "resourceClaimName": name}
        await self._client.send(decision_requests.extended_resource_status(bind, status))

    async def _create(self, bind: Bind, grant: ExtendedResourceGrant, name: str) -> Json:
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": bind.name,
            "uid": bind.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": grant.namespace,
                "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
                "finalizers": [names.CLAIM_FINALIZER],
                "ownerReferences": [owner],
            },
            "spec": {"devices": {"requests": to_builtins(grant.requests)}},
        }
        path = RESOURCES[ResourceClaim].path(grant.namespace)
        answer = await self._client.send(Request("POST", path, msgspec.json.encode(body)))
        return msgspec.json.decode(answer, type=dict)

    async def remove(self, bind: Bind, name: str) -> None:
        """Delete the claim, if it is that pod's, and let the pod forget it."""
        claim = await self._objects.read(ResourceClaim, bind.namespace, name)
        if claim is not None and _controller(claim) == bind.uid:
            await self._objects.delete(ResourceClaim, await self._claims.deallocate(claim))
        try:
            await self._client.send(decision_requests.extended_resource_status(bind, None))
        except ApiError as error:
            if not is_gone(error):
                raise

    async def time_to_wait(self, member: GangMember, bind: Bind, grant: ExtendedResourceGrant) -> float:
        if not any(device.binding_conditions for device in grant.allocation.devices.results):
            return 0.0
        return await self._claims.wait_for_conditions(
            member, grant.namespace, claim_name(bind.name, bind.uid), grant.consumer
        )


def claim_name(pod: str, uid: str) -> str:
    """`<pod>-extended-resources-` and five letters that follow from the pod's uid."""
    ending = f"-extended-resources-{sha256(uid.encode()).hexdigest()[:5]}"
    return pod[: NAME_LENGTH - len(ending)] + ending


def _controller(claim: Json) -> str:
    owners = claim["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


# -- releases an unused ResourceClaim that was allocated for pods which were not placed after all


class ClaimRelease:
    """Executes `ReleaseClaim`; what has changed since it was decided stays, and is looked at again in a later cycle."""

    def __init__(self, objects: GrantObjects, claims: ClaimWrites):
        self._objects = objects
        self._claims = claims

    async def release(self, _: WriteOrder, decision: ReleaseClaim) -> None:
        if self._claims.is_in_use(decision.uid):
            return
        self._claims.releasing.add(decision.uid)
        try:
            await self._release(decision)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        finally:
            self._claims.releasing.discard(decision.uid)

    async def _release(self, decision: ReleaseClaim) -> None:
        claim = await self._objects.read(ResourceClaim, decision.namespace, decision.name)
        if claim is None or uid_of(claim) != decision.uid:
            return
        if claim["metadata"]["resourceVersion"] != decision.resource_version:
            return
        for consumer in claim.get("status", {}).get("reservedFor") or ():
            if await self._runs(decision.namespace, consumer):
                log.warning("resourceclaim %s/%s is in use, so it stays", decision.namespace, decision.name)
                return
        claim = await self._claims.deallocate(claim)
        if decision.delete:
            await self._objects.delete(ResourceClaim, claim)

    async def _runs(self, namespace: str, consumer: Json) -> bool:
        """Whether a consumer may use the claim by now; of a group of pods we cannot know."""
        if consumer.get("resource") != "pods":
            return False
        pod = await self._objects.read(Pod, namespace, str(consumer["name"]))
        if pod is None or uid_of(pod) != consumer["uid"]:
            return False
        phase = pod.get("status", {}).get("phase")
        return bool(pod["spec"].get("nodeName")) and phase not in FINISHED
