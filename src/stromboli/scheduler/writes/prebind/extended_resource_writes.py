"""Extended resources that devices stand for: a ResourceClaim is made for the pod, and the pod is told of it.

The claim's name follows from the pod's uid, so that a lost response never leaves two. It is deleted if the pod is not
bound after all.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256

import msgspec
from msgspec import to_builtins

from stromboli.api import names
from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.api.types.devices import ResourceClaim
from stromboli.engine.decisions import Bind
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.guarded_client import GuardedClient
from stromboli.kube.request import ApiError, Request, is_gone
from stromboli.model.devices.claim_use import ExtendedResourceGrant
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.prebind.claim_writes import ClaimWrites, same_devices
from stromboli.scheduler.writes.prebind.gang_binds import GangMember, PreBindFailed
from stromboli.scheduler.writes.prebind.grant_writer import GrantObjects, Json

NAME_LENGTH = 253
"""The most characters that the name of an object may have."""


class ExtendedResourceWrites:
    """Writes `ExtendedResourceGrant`s."""

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
