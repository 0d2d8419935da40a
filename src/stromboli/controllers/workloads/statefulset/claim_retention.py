"""Who owns the claims of a StatefulSet, so that garbage collection deletes them when the retention policy says so."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api.types.meta import Object, OwnerReference
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.controllers.workloads.statefulset.stateful_set import DELETE, RETAIN, StatefulSet
from stromboli.controllers.workloads.workload import Manifest

Owner = tuple[str, str, str]
"""API version, kind and name."""


@dataclass(frozen=True, slots=True)
class ClaimOwners:
    """Owner references that a claim is to have; `conflict` if another controller has it, and the policy is ignored."""

    references: list[Manifest]
    conflict: bool = False


def initial_owners(stateful_set: StatefulSet) -> list[Manifest]:
    """Owner references of the claims of a new pod."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return (
        [_reference(_set(stateful_set), stateful_set.metadata.uid)] if policy.when_deleted == DELETE else []
    )


def changed_owners(
    claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Object, scaled_down: bool
) -> ClaimOwners | None:
    """What the owner references of a claim should become; None if they are right, or not to be touched."""
    set_owner, pod_owner = _set(stateful_set), _pod(pod.name)
    uids = {set_owner: stateful_set.metadata.uid, pod_owner: pod.metadata.uid}
    present = claim.metadata.owner_references
    if any(reference.uid != uids.get(_owner(reference), reference.uid) for reference in present):
        return None  # of a set or pod of the same name that is gone: garbage collection deals with it
    ours = [reference for reference in present if _owner(reference) in uids]
    others = [reference for reference in present if _owner(reference) not in uids]
    if is_conflicting(claim, stateful_set, pod.name):
        return ClaimOwners([_manifest(reference) for reference in others], conflict=True) if ours else None
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    wanted = None
    if scaled_down and policy.when_scaled == DELETE:
        wanted = pod_owner
    elif policy.when_deleted == DELETE:
        wanted = set_owner
    if [(_owner(reference), reference.controller) for reference in ours] == (
        [(wanted, True)] if wanted is not None else []
    ):
        return None
    added = [_reference(wanted, uids[wanted])] if wanted is not None else []
    return ClaimOwners([*map(_manifest, others), *added])


def is_conflicting(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod_name: str) -> bool:
    """Whether a claim that the policy would delete is controlled by something else."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    if policy.when_deleted == policy.when_scaled == RETAIN:
        return False
    ours = (_set(stateful_set), _pod(pod_name))
    return any(
        reference.controller and _owner(reference) not in ours
        for reference in claim.metadata.owner_references
    )


def is_stale(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod_name: str) -> bool:
    """Whether a claim goes with an earlier pod of this name, so that the new pod has to wait until it is gone."""
    if stateful_set.spec.persistent_volume_claim_retention_policy.when_scaled == RETAIN:
        return False
    return any(_owner(reference) == _pod(pod_name) for reference in claim.metadata.owner_references)


def _set(stateful_set: StatefulSet) -> Owner:
    return stateful_set.api_version, stateful_set.kind, stateful_set.name


def _pod(name: str) -> Owner:
    return "v1", "Pod", name


def _owner(reference: OwnerReference) -> Owner:
    return reference.api_version, reference.kind, reference.name


def _reference(owner: Owner, uid: str) -> Manifest:
    version, kind, name = owner
    return {
        "apiVersion": version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _manifest(reference: OwnerReference) -> Manifest:
    kept: Manifest = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
    }
    return {**kept, "controller": True} if reference.controller else kept
