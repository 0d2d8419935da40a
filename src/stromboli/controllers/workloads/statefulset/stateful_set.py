"""A StatefulSet as its controller reads it, and the ordinals of its pods."""

from __future__ import annotations

import re

from msgspec import field

from stromboli.api.int_or_percent import IntOrPercent
from stromboli.api.types.meta import Count, Int32, Int64, LabelSelector, Value
from stromboli.controllers.workloads.workload import WorkloadSpec, WorkloadStatus
from stromboli.controllers.workloads.workload_kinds import SelectingWorkload

RETAIN, DELETE = "Retain", "Delete"
ROLLING_UPDATE, ON_DELETE = "RollingUpdate", "OnDelete"
PARALLEL = "Parallel"
_POD_NAME = re.compile(r"(.*)-([0-9]+)", re.DOTALL)
_LAST_ORDINAL = 2**31 - 1


class RetentionPolicy(Value, frozen=True):
    """Whether claims go when the set is deleted, and when it has no pod for them any more."""

    when_deleted: str = RETAIN
    when_scaled: str = RETAIN


class RollingUpdate(Value, frozen=True):
    """Pods before the partition keep their revision; without `max_unavailable`, pods are replaced one by one."""

    partition: Count = 0
    max_unavailable: IntOrPercent | None = None


class UpdateStrategy(Value, frozen=True):
    type: str = ROLLING_UPDATE
    rolling_update: RollingUpdate | None = None


class StatefulSetSpec(WorkloadSpec):
    selector: LabelSelector | None = None
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 = 10
    update_strategy: UpdateStrategy = UpdateStrategy()
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()


class StatefulSetStatus(WorkloadStatus):
    """Counts of pods, and the names of the revisions that they have and are to have."""

    observed_generation: Int64 = 0
    ready_replicas: Count = 0
    available_replicas: Count = 0
    current_replicas: Count = 0
    updated_replicas: Count = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Count | None = None


class StatefulSet(SelectingWorkload):
    """A StatefulSet, with what its controller needs."""

    kind: str = "StatefulSet"
    api_version: str = "apps/v1"
    spec: StatefulSetSpec = field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector

    @property
    def replicas(self) -> int:
        """How many pods are wanted."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def in_order(self) -> bool:
        """Whether each pod waits until those before it are available."""
        return self.spec.pod_management_policy != PARALLEL

    @property
    def rolling_update(self) -> RollingUpdate | None:
        """None if pods are replaced only when somebody deletes them."""
        strategy = self.spec.update_strategy
        return None if strategy.type == ON_DELETE else strategy.rolling_update or RollingUpdate()

    def wants(self, ordinal: int) -> bool:
        """Whether a pod with this ordinal is among those that are wanted."""
        start = self.spec.ordinals.start
        return start <= ordinal < start + self.replicas


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """The number in the name of a pod; None if the name is not that of a pod of the set."""
    match = _POD_NAME.fullmatch(pod_name)
    if match is None or match[1] != set_name:
        return None
    ordinal = int(match[2]) if len(match[2]) <= len(str(_LAST_ORDINAL)) else _LAST_ORDINAL + 1
    return ordinal if ordinal <= _LAST_ORDINAL else None
