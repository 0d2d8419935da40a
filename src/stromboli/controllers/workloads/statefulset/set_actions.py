"""What may be done for a StatefulSet: pods and claims to create, change and delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.controllers.workloads.statefulset.claim_retention import ClaimOwners
from stromboli.controllers.workloads.workload import Manifest

ClaimChange = tuple[PersistentVolumeClaim, ClaimOwners]
"""A claim, and the owners that it is to have."""


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create the claims that are missing, then the pod."""

    pod: Manifest
    claims: tuple[Manifest, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateClaims:
    """Create claims of a pod that waits for them."""

    pod: str
    claims: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class UpdatePod:
    """Give a pod its identity, and its claims the owners of the retention policy."""

    pod: Pod
    labels: Mapping[str, str]
    claims: tuple[ClaimChange, ...]


@dataclass(frozen=True, slots=True)
class UpdateClaims:
    """Give claims the owners of the retention policy."""

    claims: tuple[ClaimChange, ...]


@dataclass(frozen=True, slots=True)
class DeletePod:
    pod: Pod


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod that cannot be created, or lacks claims, and why; it is tried again."""

    pod: str
    reason: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A claim that something else controls, so that the retention policy is ignored."""

    claim: str


Action = Conflict | CreatePod | CreateClaims | UpdatePod | UpdateClaims | DeletePod | Blocked
