"""Releases a ResourceClaim that was allocated for pods which were not placed after all, and that nobody uses."""

from __future__ import annotations

import logging

from stromboli.api import names
from stromboli.api.types.devices import ResourceClaim
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import ReleaseClaim
from stromboli.kube.request import ApiError
from stromboli.scheduler.writes.prebind.claim_writes import ClaimWrites
from stromboli.scheduler.writes.prebind.grant_writer import GrantObjects, Json, uid_of
from stromboli.scheduler.writes.write_orders import WriteOrder

log = logging.getLogger(__name__)

_FINISHED = (names.POD_SUCCEEDED, names.POD_FAILED)


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
        return bool(pod["spec"].get("nodeName")) and phase not in _FINISHED
