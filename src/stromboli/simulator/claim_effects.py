"""ResourceClaims in a world in memory: what the API server, its controllers and drivers would make of decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.api.types.devices import (
    AllocationResult,
    ConsumerReference,
    DeviceClaim,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from stromboli.api.types.meta import ObjectMeta, OwnerReference
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.decisions import Bind, ReleaseClaim
    from stromboli.model.intake.object_intake import Intake
    from stromboli.model.task import Task


class ClaimEffects:
    """Claims are made, allocated, reserved and released."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._claims = intake.cluster.objects.resource_claims

    def make_from_templates(self) -> None:
        """Pending pods get the claims that are made from templates."""
        cluster = self._intake.cluster
        if not cluster.objects.resource_claim_templates:
            return
        for job in cluster.backlog:
            for task in job.by_status[Status.PENDING]:
                if any(not claim.claim for claim in task.claims):
                    self._make_claims(task)

    def _make_claims(self, task: Task) -> None:
        claims = list(task.claims)
        for place, claim in enumerate(claims):
            key = f"{task.namespace}/{claim.template}"
            template = self._intake.cluster.objects.resource_claim_templates.get(key)
            if not claim.claim and template is not None:
                name, meta = f"{task.name}-{claim.name}", template.spec.metadata
                self._create(task, name, template.spec.spec, meta.labels, meta.annotations)
                claims[place] = claim._replace(claim=name)
        task.claims = tuple(claims)

    def grant(self, bind: Bind) -> None:
        """What a bind carries is written: allocations and reservations."""
        for grant in bind.grants:
            if isinstance(grant, ClaimGrant):
                self._reserve(f"{grant.namespace}/{grant.name}", grant.consumer, grant.allocation)
            elif isinstance(grant, ExtendedResourceGrant) and (
                task := self._intake.cluster.tasks.get(bind.uid)
            ):
                spec = ResourceClaimSpec(DeviceClaim(grant.requests))
                name = f"{bind.name}-extended-resources"
                self._create(task, name, spec, {}, {EXTENDED_RESOURCE_CLAIM: "true"})
                self._reserve(f"{bind.namespace}/{name}", grant.consumer, grant.allocation)
                task.extended_claim = name

    def release(self, decision: ReleaseClaim) -> None:
        """An unused claim loses its devices, or is deleted."""
        claim = self._claims.get(f"{decision.namespace}/{decision.name}")
        if claim is None or claim.metadata.uid != decision.uid:
            return
        if decision.delete:
            self._intake.drop(claim)
        else:
            self._intake.put(replace(claim, status=ResourceClaimStatus()))

    def pod_ended(self, task: Task, gone: bool) -> None:
        """A pod needs its claims no longer: the last consumer frees the devices, and its own claims go with it."""
        if not task.claims and not task.extended_claim:
            return
        names: Iterable[str] = (*(claim.claim for claim in task.claims), task.extended_claim)
        for key in dict.fromkeys(f"{task.namespace}/{name}" for name in names):
            claim = self._claims.get(key)
            if claim is None:
                continue
            if gone and any(owner.uid == task.uid for owner in claim.metadata.owner_references):
                self._intake.drop(claim)
                continue
            left = tuple(consumer for consumer in claim.status.reserved_for if consumer.uid != task.uid)
            if len(left) < len(claim.status.reserved_for):
                status = replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
                self._intake.put(replace(claim, status=status))

    def _reserve(self, key: str, consumer: ConsumerReference, allocation: AllocationResult | None) -> None:
        claim = self._claims.get(key)
        if claim is None:
            return
        status = claim.status
        reserved = {each.uid: each for each in (*status.reserved_for, consumer)}
        status = ResourceClaimStatus(
            status.allocation or allocation, tuple(reserved.values()), status.devices
        )
        self._intake.put(replace(claim, status=status))

    def _create(
        self,
        task: Task,
        name: str,
        spec: ResourceClaimSpec,
        labels: dict[str, str],
        annotations: dict[str, str],
    ) -> None:
        owner = OwnerReference("v1", "Pod", task.name, task.uid, True)
        uid = f"ResourceClaim/{task.namespace}/{name}"
        meta = ObjectMeta(
            name, task.namespace, uid, labels=labels, annotations=annotations, owner_references=(owner,)
        )
        self._intake.put(ResourceClaim(meta, spec))
