"""The DaemonSet controller: revisions, then pods on all nodes that are eligible, then the status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from stromboli.api.errors import BadObject
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.node import Taint
from stromboli.controllers.controller import Context
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.workloads.controller_revisions import ControllerRevision, oldest
from stromboli.controllers.workloads.daemonset.daemon_set import DaemonSet, Node
from stromboli.controllers.workloads.daemonset.failed_pods import FailedPods
from stromboli.controllers.workloads.daemonset.node_eligibility import Eligibility, NodeEligibility
from stromboli.controllers.workloads.daemonset.reconcile import Outcome, reconcile
from stromboli.controllers.workloads.pod_control import OwnedPods
from stromboli.controllers.workloads.revision_history import RevisionHistory
from stromboli.controllers.workloads.workload import Workload
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.controllers.workloads.workload_pods import REVISION, daemon_pod
from stromboli.kube.request import ApiError, NoResponse


class DaemonSetController(WorkloadController[DaemonSet]):
    """Keeps a pod on every eligible node."""

    name = "daemonset-controller"
    kind = DaemonSet
    status_counts = (
        "currentNumberScheduled",
        "desiredNumberScheduled",
        "numberMisscheduled",
        "numberReady",
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = OwnedPods(self)
        self.history = RevisionHistory(self, REVISION)
        self._eligibility: dict[str, tuple[int, NodeEligibility]] = {}
        """What each DaemonSet asks of nodes, with the generation that asks it, by uid."""
        self._failed_pods = FailedPods()
        self.nodes = self.watch(Node, self._node_changed)
        self.on_owner_gone.append(self._forget)

    def _forget(self, owner: Workload) -> None:
        self._eligibility.pop(owner.metadata.uid, None)
        self._failed_pods.forget(owner.metadata.uid)

    def _node_changed(self, before: Node | None, now: Node | None) -> Iterable[str]:
        """Those for whom the node becomes eligible, or ceases to be."""
        if before is not None and now is not None and _placement(before) == _placement(now):
            return []
        return [
            owner.key
            for owner in self.owners
            if isinstance(owner, DaemonSet) and self._of(owner, before) != self._of(owner, now)
        ]

    def _of(self, owner: DaemonSet, node: Node | None) -> Eligibility | None:
        if node is None:
            return None
        try:
            return self._eligible(owner).of(*_placement(node))
        except BadObject:
            return None

    def _eligible(self, owner: DaemonSet) -> NodeEligibility:
        generation, uid = owner.metadata.generation, owner.metadata.uid
        known = self._eligibility.get(uid)
        if known is None or known[0] != generation:
            known = self._eligibility[uid] = generation, NodeEligibility(owner)
        return known[1]

    async def sync_owner(self, owner: DaemonSet) -> float | None:
        """One that is being deleted is left alone: its revisions may be gone before its pods."""
        if owner.metadata.deletion_timestamp is not None:
            return None
        revision, past, collisions = await self._revision(owner)
        pods = await self.pods.claim(owner)
        revision_hash = revision.metadata.labels[REVISION]
        self._failed_pods.forget(owner.metadata.uid, owner.status.observed_generation)
        now = self.context.clock()
        with self.computing(owner):
            eligible = self._all_nodes(owner)
            outcome = reconcile(owner, revision_hash, pods, eligible, self._failed_pods, now)
        outcome.status.collision_count = collisions or owner.status.collision_count
        error = await self._carry_out(owner, revision_hash, outcome)
        await self.write_status(owner, outcome.status)
        await self._forget_revisions(owner, past, pods)
        if error is not None:
            raise error
        return self.pods.look_again(owner, outcome.requeue_after)

    def _all_nodes(self, owner: DaemonSet) -> dict[str, Eligibility]:
        eligibility = self._eligible(owner)
        return {node.name: eligibility.of(*_placement(node)) for node in self.nodes}

    async def _carry_out(self, owner: DaemonSet, revision: str, outcome: Outcome) -> Exception | None:
        for event in outcome.events:
            self.recorder.record(owner, event)
        try:
            await self.pods.create_all(
                owner, [partial(daemon_pod, owner, node, revision=revision) for node in outcome.create]
            )
            await self.pods.delete_all(owner, outcome.delete)
        except (ApiError, NoResponse) as error:
            return error
        return None

    # -- revisions

    async def _revision(self, owner: DaemonSet) -> tuple[ControllerRevision, list[ControllerRevision], int]:
        """The revision of the present template, those of the past, and how often names were taken."""
        history = [await self._labelled(each) for each in await self.history.past_and_present(owner)]
        collisions = owner.status.collision_count or 0
        revision, wanted, collisions = await self.history.newest(owner, history, collisions)
        if wanted.duplicates:
            await self._merge(owner, wanted.duplicates, revision)
        present = {revision.name, *(each.name for each in wanted.duplicates)}
        return revision, [each for each in history if each.name not in present], collisions

    async def _merge(
        self, owner: DaemonSet, duplicates: Sequence[ControllerRevision], revision: ControllerRevision
    ) -> None:
        """Give the pods of revisions with the same template to one of them, and delete the others."""
        hashes = {each.metadata.labels[REVISION] for each in duplicates}
        patch = {"metadata": {"labels": {REVISION: revision.metadata.labels[REVISION]}}}
        for pod in self.pods.of(owner):
            if pod.metadata.labels.get(REVISION) in hashes:
                self.pods.store.mutated(await self.context.writer.patch(pod, patch, exact=False))
        await self.history.delete_all(owner, duplicates)

    async def _labelled(self, revision: ControllerRevision) -> ControllerRevision:
        """A revision that lacks the label with its hash gets its name for it."""
        if REVISION in revision.metadata.labels:
            return revision
        patch = {"metadata": {"labels": {REVISION: revision.name}}}
        changed = await self.context.writer.patch(revision, patch)
        if changed is None:
            raise SyncError(f"ControllerRevision {revision.key} is gone")
        self.history.store.mutated(changed)
        return changed

    async def _forget_revisions(
        self, owner: DaemonSet, past: list[ControllerRevision], pods: list[Pod]
    ) -> None:
        """Keep as many past revisions as the DaemonSet says, but all that pods have."""
        live = {pod.metadata.labels.get(REVISION, "") for pod in pods}
        idle = [revision for revision in past if revision.metadata.labels[REVISION] not in live]
        excess = len(past) - owner.spec.revision_history_limit
        await self.history.delete_all(owner, oldest(idle, excess))


def _placement(node: Node) -> tuple[str, dict[str, str], tuple[Taint, ...]]:
    """What decides about pods on a node: name, labels and taints."""
    return node.name, node.metadata.labels, node.spec.taints
