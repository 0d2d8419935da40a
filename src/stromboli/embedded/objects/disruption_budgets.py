"""Pod disruption budgets: how many pods may be evicted, and whether this one may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from stromboli.api import names
from stromboli.api.int_or_percent import scaled_value
from stromboli.api.pods import FINISHED, is_finished, is_ready
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Record
from stromboli.embedded.store.stored_pods import Owner, StoredPod, stored_pod

BUDGETS = "poddisruptionbudgets.policy"


class Budget(NamedTuple):
    """Expected, healthy and desired healthy pods of a budget."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        return max(self.healthy - self.desired, 0) if self.expected else 0


def _selector(budget: Content) -> LabelSelector | None:
    try:
        return msgspec.convert((budget.get("spec") or {}).get("selector"), LabelSelector | None)
    except msgspec.ValidationError:
        return None


class _PodCounts:
    """The pods that a budget selects and that have not finished: how many are healthy, how many of each owner."""

    def __init__(self, selector: LabelSelector | None) -> None:
        self._selector = selector
        self.healthy = 0
        self.owners: Counter[Owner | None] = Counter()

    def add(self, record: Record, sign: int = 1) -> None:
        if not matches_labels(self._selector, record.labels):
            return
        pod = stored_pod(record)
        if is_finished(pod):
            return
        self.healthy += sign * _is_healthy(pod)
        self.owners[pod.owner] += sign
        if not self.owners[pod.owner]:
            del self.owners[pod.owner]


class DisruptionBudgets:
    """The pods of all budgets, counted once and kept up to date with every write."""

    def __init__(self, store: Store, registry: KindRegistry) -> None:
        self._store = store
        self._registry = registry
        self._counts: dict[str, dict[str, _PodCounts]] = {}
        """By namespace and name of the budget; missing ones are counted when they are needed."""
        store.on_apply(self._on_apply)

    def _on_apply(self, change: Change) -> None:
        """A write took effect (or was undone)."""
        resource, namespace, name = change.key
        counts = self._counts.get(namespace)
        if counts is None:
            return
        if resource == BUDGETS:
            before, after = (
                version and _selector(version.object()) for version in (change.before, change.after)
            )
            if before != after or change.after is None:
                counts.pop(name, None)
                if not counts:
                    del self._counts[namespace]
        elif resource == "pods":
            try:
                for budget in counts.values():
                    if change.before is not None:
                        budget.add(change.before, -1)
                    if change.after is not None:
                        budget.add(change.after)
            except (
                msgspec.DecodeError
            ):  # a pod of damaged data stops no write, but an eviction that has to count it
                del self._counts[namespace]

    def _pods_of(self, record: Record) -> _PodCounts:
        namespace, name = record.key[1:]
        counts = self._counts.get(namespace, {}).get(name)
        if counts is None:
            counts = _PodCounts(_selector(record.object()))
            for pod in self._store.list("pods", namespace):
                counts.add(pod)
            self._counts.setdefault(namespace, {})[name] = counts
        return counts

    def count(self, record: Record) -> Budget:
        """The counts of a budget for its current pods."""
        pods = self._pods_of(record)
        expected = self._expected(record.key.namespace, pods.owners)
        spec = record.object().get("spec") or {}
        if spec.get("maxUnavailable") is not None:
            desired = max(expected - scaled_value(spec["maxUnavailable"], expected, round_up=True), 0)
        else:
            desired = scaled_value(spec.get("minAvailable", 1), expected, round_up=True)
        return Budget(expected, pods.healthy, desired)

    def _expected(self, namespace: str, owners: Mapping[Owner | None, int]) -> int:
        """The replicas of the pods' controllers; a pod without such a controller counts as one."""
        replicas_by_owner: dict[str, int] = {}
        uncontrolled = 0
        for owner, pods in owners.items():
            kind = self._registry.by_kind(owner.api_version, owner.kind) if owner else None
            controller = self._store.get(kind.id, namespace, owner.name) if owner and kind else None
            replicas = controller.field("spec.replicas") if controller is not None else ""
            if owner and replicas.isdecimal():
                replicas_by_owner[owner.uid] = int(replicas)
            else:
                uncontrolled += pods
        return uncontrolled + sum(replicas_by_owner.values())

    def check_eviction(self, pod: Record) -> None:
        """Refuse an eviction that a budget does not allow."""
        if pod.field("status.phase") in (*FINISHED, names.POD_PENDING, "") or pod.meta.deletion_timestamp:
            return
        budgets = [
            record
            for record in self._store.list(BUDGETS, pod.key.namespace)
            if matches_labels(_selector(record.object()), pod.labels)
        ]
        if len(budgets) > 1:
            raise StatusError(
                500,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        for record in budgets:
            budget = self.count(record)
            if not _is_healthy(stored_pod(pod)):
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


def _is_healthy(pod: StoredPod) -> bool:
    return is_ready(pod) and pod.metadata.deletion_timestamp is None


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
