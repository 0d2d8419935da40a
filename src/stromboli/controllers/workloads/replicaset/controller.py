"""The ReplicaSet controller, and the ReplicationController's, which is the same with another selector."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from stromboli.api.pods import is_active, is_terminating, next_available
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.controller import Context
from stromboli.controllers.owner_references import owned_by
from stromboli.controllers.workloads.pod_control import OwnedPods
from stromboli.controllers.workloads.replicaset import reconcile
from stromboli.controllers.workloads.replicaset.reconcile import Owner, Scale
from stromboli.controllers.workloads.workload import Workload
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.controllers.workloads.workload_kinds import ReplicaSet, ReplicationController
from stromboli.controllers.workloads.workload_pods import replica_pod
from stromboli.kube.request import ApiError, NoResponse


class ReplicaSetController(WorkloadController[Owner]):
    """Keeps as many active pods as wanted."""

    name = "replicaset-controller"
    kind: ClassVar[type[Workload]] = ReplicaSet

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = OwnedPods(self)
        self._siblings = self.owners.index(owned_by)

    async def sync_owner(self, owner: Owner) -> float | None:
        """Claim pods, scale, and write the status; an error of the scaling is in the status, and raised then."""
        pods = await self.pods.claim(owner)
        now = self.context.clock()
        with self.computing(owner):
            active = [pod for pod in pods if is_active(pod)]
            scale = reconcile.scale(owner, active, partial(self._related, owner, pods), now)
        error = await self._scale(owner, scale)
        with self.computing(owner):
            status = reconcile.status(owner, active, self._terminating(pods), error, now)
        await self.write_status(owner, status)
        if error is not None:
            raise error
        return self.pods.look_again(owner, next_available(active, owner.spec.min_ready_seconds, now))

    async def _scale(self, owner: Owner, scale: Scale) -> ApiError | NoResponse | None:
        try:
            await self.pods.create_all(owner, [partial(replica_pod, owner)] * scale.create)
            await self.pods.delete_all(owner, scale.delete)
        except (ApiError, NoResponse) as error:
            return error
        return None

    def _related(self, owner: Owner, pods: list[Pod]) -> list[Pod]:
        """The pods of all ReplicaSets of the same owner: a pod that shares its node with others of them goes first."""
        siblings = [each for key in owned_by(owner) for each in self._siblings[key]]
        others = [pod for each in siblings if each is not owner for pod in self.pods.of(each)]
        return [*pods, *others]

    def _terminating(self, pods: list[Pod]) -> list[Pod] | None:
        return [pod for pod in pods if is_terminating(pod)]


class ReplicationControllerController(ReplicaSetController):
    """Its status does not count pods that are being deleted."""

    name = "replication-controller"
    kind = ReplicationController

    def _terminating(self, pods: list[Pod]) -> list[Pod] | None:
        return None
