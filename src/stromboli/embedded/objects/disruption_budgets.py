"""Disruption budgets: how many pods may go, and whether this one may."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.kinds.status_errors import Refusal
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.records import Record

Content = dict[str, Any]
BUDGETS = "poddisruptionbudgets.policy"
_OVER = ("Succeeded", "Failed")


class Budget(NamedTuple):
    """How many of a budget's pods there should be and are, and how many have to stay."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        return max(self.healthy - self.desired, 0) if self.expected else 0


def budgets_of(objects: Objects, pod: Record) -> list[Record]:
    """The budgets that speak of a pod."""
    return [
        record
        for record in objects.store.all(BUDGETS, pod.key.namespace)
        if matches_labels(_selector(record.object()), pod.labels)
    ]


def _selector(budget: Content) -> LabelSelector | None:
    try:
        return msgspec.convert((budget.get("spec") or {}).get("selector"), LabelSelector | None)
    except msgspec.ValidationError:
        return None


def counted(objects: Objects, record: Record) -> Budget:
    """A budget as its pods are now."""
    budget = record.object()
    chosen = _selector(budget)
    pods = [
        one
        for one in objects.store.all("pods", record.key.namespace)
        if matches_labels(chosen, one.labels) and one.field("status.phase") not in _OVER
    ]
    expected = _expected(objects, pods)
    healthy = sum(is_healthy(one) for one in pods)
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        desired = max(expected - _share(spec["maxUnavailable"], expected), 0)
    else:
        desired = _share(spec.get("minAvailable", 1), expected)
    return Budget(expected, healthy, desired)


def _expected(objects: Objects, pods: Iterable[Record]) -> int:
    """As many as their controllers want; pods without one count themselves."""
    wanted: dict[str, int] = {}
    alone = 0
    for pod in pods:
        references = pod.object()["metadata"].get("ownerReferences") or ()
        owner = next((one for one in references if one.get("controller")), None)
        kind = objects.registry.by_kind(owner["apiVersion"], owner["kind"]) if owner else None
        found = objects.store.get(kind.id, pod.key.namespace, owner["name"]) if owner and kind else None
        replicas = found.field("spec.replicas") if found is not None else ""
        if owner and replicas.isdecimal():
            wanted[owner["uid"]] = int(replicas)
        else:
            alone += 1
    return alone + sum(wanted.values())


def is_healthy(pod: Record) -> bool:
    conditions = (pod.object().get("status") or {}).get("conditions") or ()
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return ready and not pod.meta.deletion_timestamp


def _share(value: Any, of: int) -> int:
    """A number, or a percentage, rounded up."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        return math.ceil(int(value[:-1]) * of / 100)
    return value if isinstance(value, int) else 0


def check(objects: Objects, pod: Record) -> None:
    """Refuse an eviction that a budget does not allow."""
    if pod.field("status.phase") in (*_OVER, "Pending", "") or pod.meta.deletion_timestamp:
        return
    found = budgets_of(objects, pod)
    if len(found) > 1:
        raise Refusal(
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )
    for record in found:
        budget = counted(objects, record)
        if not is_healthy(pod):
            policy = (record.object().get("spec") or {}).get("unhealthyPodEvictionPolicy")
            if policy == "AlwaysAllow" or (budget.healthy >= budget.desired and budget.desired > 0):
                return
        if budget.allowed < 1:
            _refuse(record.key.name, budget)


def _refuse(name: str, budget: Budget) -> None:
    message = (
        f"The disruption budget {name} needs {budget.desired} healthy pods and has {budget.healthy} currently"
    )
    raise Refusal(
        429,
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": message}]},
    )


def status(record: Record, budget: Budget) -> Content:
    """What a budget says about itself."""
    content = record.object()
    return {
        **(content.get("status") or {}),
        "observedGeneration": content["metadata"].get("generation", 1),
        "expectedPods": budget.expected,
        "currentHealthy": budget.healthy,
        "desiredHealthy": budget.desired,
        "disruptionsAllowed": budget.allowed,
    }
