"""What a StatefulSet does next: pods and claims to create, change and delete, and its status.

Pods are created by rising ordinal and deleted by falling ordinal. In order (OrderedReady), everything waits for a pod
that is not available, also for one of a broken revision, which stays until somebody deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from stromboli.api import names
from stromboli.api.int_or_percent import IntOrPercent, scaled_value
from stromboli.api.pods import is_available, is_finished, next_available
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.controllers.workloads.statefulset.claim_retention import (
    changed_owners,
    initial_owners,
    is_conflicting,
    is_stale,
)
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
from stromboli.controllers.workloads.statefulset.set_status import Revisions, revision_of, set_status
from stromboli.controllers.workloads.statefulset.stateful_set import (
    StatefulSet,
    StatefulSetStatus,
    ordinal_of,
)
from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_pods import (
    POD_INDEX,
    POD_NAME,
    stateful_claims,
    stateful_pod,
)

BURST = 500
"""Actions for the pods that a set wants, at most, in one look at it."""
BYTES_AT_ONCE = 4 * 1024 * 1024
"""Of the manifests of new pods in one look at a set; the last may go beyond."""
FindClaim = Callable[[str], PersistentVolumeClaim | None]
"""The claim of a name, None if there is none."""


@dataclass(slots=True)
class Outcome:
    """Actions in their order; what comes after one that fails is left out."""

    actions: list[Action] = field(default_factory=list)
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)
    requeue_after: float | None = None


def reconcile(
    stateful_set: StatefulSet,
    revisions: Revisions,
    pods: Sequence[Pod],
    claim_named: FindClaim,
    now: float,
) -> Outcome:
    """`pods` are those of the set, and `claim_named` finds claims of its namespace."""
    work = _Reconciliation(stateful_set, revisions, pods, claim_named, now)
    if stateful_set.metadata.deletion_timestamp is None:
        work.run()
    return Outcome(
        work.actions,
        set_status(stateful_set, revisions, work.pods.values(), work.replaced, now),
        next_available(pods, stateful_set.spec.min_ready_seconds, now),
    )


class _Reconciliation:
    """One look at a set; each step says whether the next has to wait."""

    def __init__(
        self,
        stateful_set: StatefulSet,
        revisions: Revisions,
        pods: Sequence[Pod],
        claim_named: FindClaim,
        now: float,
    ) -> None:
        self.set = stateful_set
        self.revisions = revisions
        self.claim_named = claim_named
        self.now = now
        self.actions: list[Action] = []
        self.created = 0
        """Bytes of manifests of new pods."""
        self.replaced = 0
        """Pods deleted for the sake of an update."""
        self.pods: dict[int, Pod] = {}
        for pod in pods:
            ordinal = ordinal_of(stateful_set.name, pod.name)
            if ordinal is not None:
                self.pods[ordinal] = pod
        start = stateful_set.spec.ordinals.start
        self.wanted = range(start, start + stateful_set.replicas)
        self.condemned = sorted(
            (ordinal for ordinal in self.pods if ordinal not in self.wanted), reverse=True
        )

    def run(self) -> None:
        in_order = self.set.in_order
        for ordinal in self.wanted:
            if (self._keep(ordinal) and in_order) or self._has_enough_to_do():
                return
        if any(isinstance(action, Blocked) for action in self.actions):
            return
        for ordinal in self.condemned:
            if changes := self._claim_changes(ordinal):
                self.actions.append(UpdateClaims(changes))
        for ordinal in self.condemned:
            self._scale_down(self.pods[ordinal])
            if in_order:
                return
        self._update()

    def _has_enough_to_do(self) -> bool:
        return len(self.actions) >= BURST or self.created >= BYTES_AT_ONCE

    # -- wanted pods

    def _keep(self, ordinal: int) -> bool:
        """Have a pod and its claims; True if later pods have to wait for it."""
        pod = self.pods.get(ordinal)
        if pod is None:
            return self._create(ordinal)
        if is_finished(pod):  # the next pod is created once this one is gone
            self._delete(pod)
            return True
        pending = pod.status.phase == "Pending"
        if pending:
            self._add_claims(ordinal, pod)
        if self.set.in_order and not self._runs(pod):
            return True
        labels = {} if pod.metadata.labels.get(POD_NAME) == pod.name else _identity(pod.name, ordinal)
        changes = () if pending else self._claim_changes(ordinal)
        if labels or changes:
            self.actions.append(UpdatePod(pod, labels, changes))
        return False

    def _create(self, ordinal: int) -> bool:
        current, update, _ = self.revisions
        rolling = self.set.rolling_update
        kept = rolling is not None and ordinal < self.set.spec.ordinals.start + rolling.partition
        revision = current if kept else update
        index = ordinal - self.set.spec.ordinals.start
        pod = stateful_pod(self.set, index, revision.template, revision.name)
        name = pod["metadata"]["name"]
        stored, missing = self._claims(ordinal)
        if any(is_stale(claim, self.set, name) for claim in stored):
            return True
        if reason := _leaving(stored):
            self.actions.append(Blocked(name, reason))
            return True
        self.actions += [Conflict(claim.name) for claim in stored if is_conflicting(claim, self.set, name)]
        self.actions.append(CreatePod(pod, missing))
        self.created += len(msgspec.json.encode((pod, missing)))
        return True

    def _add_claims(self, ordinal: int, pod: Pod) -> None:
        """A pod that does not start may lack claims that somebody deleted."""
        stored, missing = self._claims(ordinal)
        if missing:
            self.actions.append(CreateClaims(pod.name, missing))
        if reason := _leaving(stored):
            self.actions.append(Blocked(pod.name, reason))
        elif changes := self._claim_changes(ordinal):
            self.actions.append(UpdateClaims(changes))

    # -- others

    def _scale_down(self, pod: Pod) -> None:
        """Delete a pod that is wanted no more; in order, only when those before it are available."""
        if not self.set.in_order or self._runs(pod) or pod is self._first_unavailable():
            self._delete(pod)

    def _first_unavailable(self) -> Pod | None:
        """Of the pods that are wanted no more the lowest that is not available: it may go before it is."""
        return next(
            (self.pods[each] for each in reversed(self.condemned) if not self._is_up(self.pods[each])), None
        )

    def _update(self) -> None:
        """Delete pods of another revision, from the highest ordinal on; they are created anew."""
        rolling = self.set.rolling_update
        if rolling is None:
            return
        if rolling.max_unavailable is not None:
            self._update_several(rolling.partition, rolling.max_unavailable)
            return
        for ordinal in reversed(self.wanted[rolling.partition :]):
            pod = self.pods.get(ordinal)
            if pod is not None and self._is_old(pod):
                self._replace(pod)
                return
            if pod is None or not self._is_up(pod):
                return

    def _update_several(self, partition: int, max_unavailable: IntOrPercent) -> None:
        """So that no more are unavailable than allowed; in parallel, pods that are unavailable anyway go first."""
        allowed = max(1, scaled_value(max_unavailable, len(self.wanted), round_up=False))
        down = [
            ordinal
            for ordinal in self.wanted
            if ordinal not in self.pods or not self._is_up(self.pods[ordinal])
        ]
        targets = [
            self.pods[ordinal] for ordinal in reversed(self.wanted[partition:]) if ordinal in self.pods
        ]
        old = [pod for pod in targets if self._is_old(pod)]
        budget = max(0, allowed - len(down))
        if self.set.in_order:
            chosen = old[:budget]
        else:
            chosen = [pod for pod in old if not self._is_up(pod)]
            chosen += [pod for pod in old if self._is_up(pod)][:budget]
        for pod in chosen:
            self._replace(pod)

    def _is_old(self, pod: Pod) -> bool:
        return revision_of(pod) != self.revisions.update.name and pod.metadata.deletion_timestamp is None

    def _replace(self, pod: Pod) -> None:
        self._delete(pod)
        self.replaced += 1

    def _delete(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is None:
            self.actions.append(DeletePod(pod))

    def _is_up(self, pod: Pod) -> bool:
        """Whether a pod is available and stays."""
        wait = self.set.spec.min_ready_seconds
        return is_available(pod, wait, self.now) and pod.metadata.deletion_timestamp is None

    def _runs(self, pod: Pod) -> bool:
        return pod.status.phase == names.POD_RUNNING and self._is_up(pod)

    # -- claims

    def _claims(self, ordinal: int) -> tuple[list[PersistentVolumeClaim], tuple[Manifest, ...]]:
        """The claims of a pod that exist, and manifests of the others."""
        owners, selector = initial_owners(self.set), self.set.selector
        labels = selector.match_labels if selector is not None else {}
        index = ordinal - self.set.spec.ordinals.start
        stored: list[PersistentVolumeClaim] = []
        missing: list[Manifest] = []
        for manifest in stateful_claims(self.set, index, labels):
            claim = self.claim_named(manifest["metadata"]["name"])
            if claim is not None:
                stored.append(claim)
            else:
                missing.append({**manifest, "metadata": {**manifest["metadata"], "ownerReferences": owners}})
        return stored, tuple(missing)

    def _claim_changes(self, ordinal: int) -> tuple[ClaimChange, ...]:
        pod, scaled_down = self.pods[ordinal], ordinal not in self.wanted
        if not self.set.spec.volume_claim_templates:
            return ()
        stored, _ = self._claims(ordinal)
        owners = [(claim, changed_owners(claim, self.set, pod, scaled_down)) for claim in stored]
        return tuple((claim, changed) for claim, changed in owners if changed is not None)


def _identity(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def _leaving(claims: Sequence[PersistentVolumeClaim]) -> str:
    """What is wrong if claims are being deleted."""
    leaving = [claim for claim in claims if claim.metadata.deletion_timestamp is not None]
    return ", ".join(f"pvc {claim.name} is being deleted" for claim in leaving)
