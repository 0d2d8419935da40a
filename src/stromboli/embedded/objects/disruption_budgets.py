"""Pod disruption budgets: how many pods may be evicted, and whether this one may."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from stromboli.api.int_or_percent import scaled_value
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Record

BUDGETS = "poddisruptionbudgets.policy"
_FINISHED = ("Succeeded", "Failed")


class Budget(NamedTuple):
    """Expected, healthy and desired healthy pods of a budget."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        return max(self.healthy - self.desired, 0) if self.expected else 0


class _Owner(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    owner_references: tuple[_Owner, ...] | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, gc=False):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None


class _Pod(msgspec.Struct, gc=False):
    """What is read of a pod; the rest, which is most of it, is not decoded."""

    metadata: _Metadata
    status: _Status | None = None

    @property
    def ready(self) -> bool:
        conditions = (self.status.conditions if self.status else None) or ()
        return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)

    @property
    def owner(self) -> _Owner | None:
        return next((owner for owner in self.metadata.owner_references or () if owner.controller), None)


_decode_pod = msgspec.json.Decoder(_Pod, strict=False).decode


def _selector(budget: Content) -> LabelSelector | None:
    try:
        return msgspec.convert((budget.get("spec") or {}).get("selector"), LabelSelector | None)
    except msgspec.ValidationError:
        return None


def count_pods(objects: Objects, record: Record) -> Budget:
    """The counts of a budget for its current pods."""
    budget = record.object()
    selector = _selector(budget)
    namespace, healthy, owners = record.key.namespace, 0, list[_Owner | None]()
    for candidate in objects.store.list("pods", namespace):
        if matches_labels(selector, candidate.labels):
            pod = _decode_pod(candidate.data)
            if pod.status is None or pod.status.phase not in _FINISHED:
                owners.append(pod.owner)
                healthy += pod.ready and not candidate.meta.deletion_timestamp
    expected = _expected(objects, namespace, owners)
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        desired = max(expected - scaled_value(spec["maxUnavailable"], expected, round_up=True), 0)
    else:
        desired = scaled_value(spec.get("minAvailable", 1), expected, round_up=True)
    return Budget(expected, healthy, desired)


def _expected(objects: Objects, namespace: str, owners: Iterable[_Owner | None]) -> int:
    """The replicas of the pods' controllers; a pod without such a controller counts as one."""
    replicas_by_owner: dict[str, int] = {}
    uncontrolled = 0
    for owner in owners:
        kind = objects.registry.by_kind(owner.api_version, owner.kind) if owner else None
        controller = objects.store.get(kind.id, namespace, owner.name) if owner and kind else None
        replicas = controller.field("spec.replicas") if controller is not None else ""
        if owner and replicas.isdecimal():
            replicas_by_owner[owner.uid] = int(replicas)
        else:
            uncontrolled += 1
    return uncontrolled + sum(replicas_by_owner.values())


def is_healthy(pod: Record) -> bool:
    return _decode_pod(pod.data).ready and not pod.meta.deletion_timestamp


def check_eviction(objects: Objects, pod: Record) -> None:
    """Refuse an eviction that a budget does not allow."""
    if pod.field("status.phase") in (*_FINISHED, "Pending", "") or pod.meta.deletion_timestamp:
        return
    budgets = [
        record
        for record in objects.store.list(BUDGETS, pod.key.namespace)
        if matches_labels(_selector(record.object()), pod.labels)
    ]
    if len(budgets) > 1:
        raise StatusError(
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )
    for record in budgets:
        budget = count_pods(objects, record)
        if not is_healthy(pod):
            policy = (record.object().get("spec") or {}).get("unhealthyPodEvictionPolicy")
            if policy == "AlwaysAllow" or (budget.healthy >= budget.desired and budget.desired > 0):
                return
        if budget.allowed < 1:
            needed = f"needs {budget.desired} healthy pods and has {budget.healthy} currently"
            message = f"The disruption budget {record.key.name} {needed}"
            raise StatusError(
                429,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={"causes": [{"reason": "DisruptionBudget", "message": message}]},
            )


def status(record: Record, budget: Budget) -> Content:
    """The status of a budget."""
    content = record.object()
    return {
        **(content.get("status") or {}),
        "observedGeneration": content["metadata"].get("generation", 1),
        "expectedPods": budget.expected,
        "currentHealthy": budget.healthy,
        "desiredHealthy": budget.desired,
        "disruptionsAllowed": budget.allowed,
    }
