"""The StatefulSet controller: revisions, then pods and claims in their order, then the status."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.controllers.api_writer import is_namespace_terminating
from stromboli.controllers.controller import Context
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.workloads.controller_revisions import ControllerRevision, oldest
from stromboli.controllers.workloads.pod_control import OwnedPods, slow_start
from stromboli.controllers.workloads.revision_history import RevisionHistory
from stromboli.controllers.workloads.statefulset.reconcile import reconcile
from stromboli.controllers.workloads.statefulset.set_actions import (
    Action,
    Blocked,
    ClaimChange,
    Conflict,
    CreateClaims,
    CreatePod,
    DeletePod,
    UpdateClaims,
    UpdatePod,
)
from stromboli.controllers.workloads.statefulset.set_status import Revision, Revisions
from stromboli.controllers.workloads.statefulset.stateful_set import StatefulSet, ordinal_of
from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.controllers.workloads.workload_pods import REVISION
from stromboli.kube.request import ApiError, NoResponse

HASH = "controller.kubernetes.io/hash"


class StatefulSetController(WorkloadController[StatefulSet]):
    """Keeps pods with names and claims of their own."""

    name = "statefulset-controller"
    kind = StatefulSet
    status_counts = ("replicas", "availableReplicas")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = OwnedPods(self)
        self.history = RevisionHistory(self, HASH)
        self.claims = self.watch(PersistentVolumeClaim, self._claim_changed)

    def _claim_changed(
        self, before: PersistentVolumeClaim | None, now: PersistentVolumeClaim | None
    ) -> Iterable[str]:
        """A pod may wait until a claim of its name is gone."""
        if before is None or now is not None:
            return []
        return [owner.key for owner in self.owners_in(before.namespace) if owner.spec.volume_claim_templates]

    async def sync_owner(self, owner: StatefulSet) -> float | None:
        """Claim revisions and pods, carry out what is to be done, and write the status; an error is raised then."""
        history = await self.history.past_and_present(owner)
        pods = await self.pods.claim(owner, is_member=partial(_is_member, owner))
        revisions, live = await self._revisions(owner, history)
        now = self.context.clock()
        with self.computing(owner):
            find_claim = partial(self.claims.get, namespace=owner.namespace)
            outcome = reconcile(owner, revisions, pods, find_claim, now)
        error = await self._carry_out(owner, outcome.actions)
        await self.write_status(owner, outcome.status)
        await self._forget_revisions(owner, [each for each in history if each.name not in live], pods)
        if error is not None:
            raise error
        return self.pods.look_again(owner, outcome.requeue_after)

    # -- revisions

    async def _revisions(
        self, owner: StatefulSet, history: list[ControllerRevision]
    ) -> tuple[Revisions, set[str]]:
        """The revisions that pods have and are to have, and the names of both."""
        if owner.metadata.deletion_timestamp is not None:
            status = owner.status
            names = Revision(status.current_revision, {}), Revision(status.update_revision, {})
            return Revisions(*names, status.collision_count or 0), {revision.name for revision in history}
        collisions = owner.status.collision_count or 0
        update, _, collisions = await self.history.newest(owner, history, collisions)
        current = next((each for each in history if each.name == owner.status.current_revision), update)
        revisions = Revisions(
            Revision(current.name, current.template), Revision(update.name, update.template), collisions
        )
        return revisions, {current.name, update.name}

    async def _forget_revisions(
        self, owner: StatefulSet, past: list[ControllerRevision], pods: list[Pod]
    ) -> None:
        """Keep as many revisions as the set says besides those that pods have."""
        limit = owner.spec.revision_history_limit
        live = {pod.metadata.labels.get(REVISION, "") for pod in pods}
        idle = [revision for revision in past if revision.name not in live]
        if limit >= 0:
            await self.history.delete_all(owner, oldest(idle, len(idle) - limit))

    # -- pods and claims

    async def _carry_out(self, owner: StatefulSet, actions: list[Action]) -> Exception | None:
        """One after another, or in batches if the set is Parallel; an error is returned, and the rest left out."""
        problems: list[str] = []
        writes = [partial(self._act, owner, action, problems) for action in actions]
        try:
            if owner.in_order:
                for write in writes:
                    await write()
            else:
                await slow_start(writes)
        except (ApiError, NoResponse) as error:
            return error
        return SyncError(", ".join(problems)) if problems else None

    async def _act(self, owner: StatefulSet, action: Action, problems: list[str]) -> None:
        match action:
            case CreatePod():
                await self._create_pod(owner, action, problems)
            case DeletePod():
                await self._delete_pod(owner, action.pod)
            case UpdatePod():
                await self._update_pod(owner, action)
            case CreateClaims():
                await self._create_claims(owner, action.pod, action.claims)
            case UpdateClaims():
                await self._update_claims(owner, action.claims)
            case Conflict():
                self._tell_conflict(owner, action.claim)
            case Blocked():
                self._tell_failure(owner, "Create", action.pod, action.reason)
                problems.append(f"pod {owner.namespace}/{action.pod}: {action.reason}")

    async def _create_pod(self, owner: StatefulSet, action: CreatePod, problems: list[str]) -> None:
        name = action.pod["metadata"]["name"]
        try:
            await self._create_claims(owner, name, action.claims)
            created = await self.pods.create(owner, action.pod)
        except (ApiError, NoResponse) as error:
            if not is_namespace_terminating(error):
                self._tell_failure(owner, "Create", name, error)
                raise
            return
        if created is not None:
            self._tell_success(owner, "Create", name)
        else:
            problems.append(f"pod {owner.namespace}/{name} exists already")

    async def _delete_pod(self, owner: StatefulSet, pod: Pod) -> None:
        try:
            await self.pods.delete(owner, pod)
        except (ApiError, NoResponse) as error:
            self._tell_failure(owner, "Delete", pod.name, error)
            raise
        self._tell_success(owner, "Delete", pod.name)

    async def _update_pod(self, owner: StatefulSet, action: UpdatePod) -> None:
        pod = action.pod
        try:
            await self._update_claims(owner, action.claims)
            if action.labels:
                patch = {"metadata": {"labels": dict(action.labels)}}
                self.pods.store.mutated(await self.context.writer.patch(pod, patch, exact=False))
        except (ApiError, NoResponse) as error:
            self._tell_failure(owner, "Update", pod.name, error)
            raise
        self._tell_success(owner, "Update", pod.name)

    async def _create_claims(self, owner: StatefulSet, pod: str, claims: Iterable[Manifest]) -> None:
        for claim in claims:
            name = claim["metadata"]["name"]
            try:
                created = await self.context.writer.create(PersistentVolumeClaim, claim, owner.namespace)
            except (ApiError, NoResponse) as error:
                text = f"Create Claim {name} for Pod {pod} in StatefulSet {owner.name} failed error: {error}"
                self.recorder.warning(owner, "FailedCreate", text)
                raise
            if created is not None:
                text = f"Create Claim {name} Pod {pod} in StatefulSet {owner.name} success"
                self.recorder.normal(owner, "SuccessfulCreate", text)

    async def _update_claims(self, owner: StatefulSet, changes: Iterable[ClaimChange]) -> None:
        for claim, owners in changes:
            if owners.conflict:
                self._tell_conflict(owner, claim.name)
            patch = {"metadata": {"ownerReferences": owners.references or None}}
            self.claims.mutated(await self.context.writer.patch(claim, patch))

    # -- events

    def _tell_conflict(self, owner: StatefulSet, claim: str) -> None:
        text = (
            f"PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a managing controller, "
            "the retention policy is ignored for this claim"
        )
        self.recorder.warning(owner, "ConflictingController", text)

    def _tell_success(self, owner: StatefulSet, verb: str, pod: str) -> None:
        text = f"{verb} Pod {pod} in StatefulSet {owner.name} successful"
        self.recorder.normal(owner, f"Successful{verb}", text)

    def _tell_failure(self, owner: StatefulSet, verb: str, pod: str, error: object) -> None:
        text = f"{verb} Pod {pod} in StatefulSet {owner.name} failed error: {error}"
        self.recorder.warning(owner, f"Failed{verb}", text)


def _is_member(owner: StatefulSet, pod: Pod) -> bool:
    """Whether a pod has a name of the set."""
    return ordinal_of(owner.name, pod.name) is not None
