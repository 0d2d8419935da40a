"""The Deployment controller: writes what `reconcile` decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.pods import is_finished
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.meta import LabelSelector
from stromboli.controllers.api_writer import is_namespace_terminating
from stromboli.controllers.controller import Context
from stromboli.controllers.owner_references import controller_of, controller_uid, owned_by, owner_key
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.workloads.dependents import Dependents
from stromboli.controllers.workloads.deployment.reconcile import Outcome, Update, reconcile
from stromboli.controllers.workloads.deployment.revisions import revisions_of
from stromboli.controllers.workloads.deployment.rollout_limits import RECREATE, size
from stromboli.controllers.workloads.deployment.rollout_status import (
    PROGRESSING,
    condition,
    has_deadline,
    with_condition,
)
from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.controllers.workloads.workload_kinds import Deployment, DeploymentStatus, ReplicaSet
from stromboli.controllers.workloads.workload_pods import REVISION_ANNOTATION
from stromboli.kube.request import ApiError, NoResponse

CREATE_ERROR = "ReplicaSetCreateError"


class DeploymentController(WorkloadController[Deployment]):
    """Owns ReplicaSets, whose controller makes the pods."""

    name = "deployment-controller"
    kind = Deployment

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.replica_sets = Dependents(self, ReplicaSet)
        self._pods = self.watch(Pod, self._pod_changed).index(owned_by)

    def _pod_changed(self, before: Pod | None, now: Pod | None) -> Iterable[str]:
        """A Recreate waits until the last old pod is gone."""
        owner = controller_of(before) if before is not None and now is None else None
        if before is None or owner is None or owner.kind != "ReplicaSet":
            return
        replica_set = self.replica_sets.store.get(owner.name, before.namespace)
        deployment = controller_of(replica_set) if replica_set is not None else None
        if deployment is not None and deployment.kind == "Deployment":
            key = f"{before.namespace}/{deployment.name}"
            found: Any = self.owners.get(key)
            if found is not None and found.spec.strategy.type == RECREATE:
                yield key

    async def sync_owner(self, owner: Deployment) -> float | None:
        if owner.spec.selector == LabelSelector():
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self.recorder.warning(owner, "SelectingAll", text)
            seen = msgspec.structs.replace(owner.status, observed_generation=owner.metadata.generation)
            await self.write_status(owner, seen)
            return None
        replica_sets = await self.replica_sets.claim(owner)
        with self.computing(owner):
            outcome = reconcile(
                owner, replica_sets, self._old_pods(owner, replica_sets), self.context.clock()
            )
        await self._write(owner, outcome)
        return self.replica_sets.look_again(owner, outcome.requeue_after)

    def _old_pods(self, owner: Deployment, replica_sets: list[ReplicaSet]) -> bool:
        """Whether pods of old ReplicaSets exist that have not ended."""
        if owner.spec.strategy.type != RECREATE:
            return False
        old = revisions_of(owner, replica_sets).old
        return any(not is_finished(pod) for each in old for pod in self._pods[owner_key(each)])

    async def _write(self, owner: Deployment, outcome: Outcome) -> None:
        for update in outcome.updates:
            await self._update(owner, update)
        if outcome.create is not None and not await self._create(owner, outcome.create):
            return
        for replica_set in outcome.delete:
            await self.replica_sets.delete(owner, replica_set)
        await self._write_revision(owner, outcome.revision)
        await self.write_status(owner, outcome.status)

    async def _write_revision(self, owner: Deployment, revision: str) -> None:
        if revision and owner.metadata.annotations.get(REVISION_ANNOTATION) != revision:
            await self.patch_status(owner, {"metadata": {"annotations": {REVISION_ANNOTATION: revision}}})

    # -- ReplicaSets

    async def _update(self, owner: Deployment, update: Update) -> None:
        replica_set, before = update.replica_set, size(update.replica_set)
        patch = {
            "metadata": {"annotations": update.annotations},
            "spec": {"replicas": update.size, "minReadySeconds": update.min_ready_seconds},
        }
        self.replica_sets.store.mutated(await self.context.writer.patch(replica_set, patch, exact=False))
        if update.size != before:
            self._scaled(owner, replica_set.name, before, update.size)

    def _scaled(self, owner: Deployment, name: str, before: int, now: int) -> None:
        direction = "up" if now > before else "down"
        text = f"Scaled {direction} replica set {name} from {before} to {now}"
        self.recorder.normal(owner, "ScalingReplicaSet", text)

    async def _create(self, owner: Deployment, manifest: Manifest) -> bool:
        """Create the new ReplicaSet; False if the namespace goes. A name that is taken is counted as a collision."""
        name = manifest["metadata"]["name"]
        try:
            created = await self.replica_sets.create(owner, manifest)
        except (ApiError, NoResponse) as error:
            if is_namespace_terminating(error):
                return False
            await self._create_failed(owner, f'Failed to create new replica set "{name}": {error}')
            raise
        if created is None:
            await self._collided(owner, name)
        elif manifest["spec"]["replicas"]:
            self._scaled(owner, name, 0, manifest["spec"]["replicas"])
        return True

    async def _create_failed(self, owner: Deployment, text: str) -> None:
        self.recorder.warning(owner, CREATE_ERROR, text)
        if has_deadline(owner):
            failed = condition(PROGRESSING, "False", CREATE_ERROR, text, self.context.clock())
            conditions = with_condition(owner.status.conditions, failed)
            await self.write_status(owner, msgspec.structs.replace(owner.status, conditions=conditions))

    async def _collided(self, owner: Deployment, name: str) -> None:
        """Another object has the name: unless it is ours already, the next sync takes another name."""
        existing = await self.context.writer.read(ReplicaSet, name, owner.namespace)
        if existing is not None:
            ours = controller_uid(existing) == (owner.metadata.uid,)
            if not ours or revisions_of(owner, [existing]).new is None:
                status: DeploymentStatus = owner.status
                count = (status.collision_count or 0) + 1
                await self.write_status(owner, msgspec.structs.replace(status, collision_count=count))
        raise SyncError(f"{owner.subject}: ReplicaSet {name} exists already")
