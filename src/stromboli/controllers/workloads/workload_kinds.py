"""Kubernetes' workloads with just the fields that the workload controllers read."""

from __future__ import annotations

from msgspec import field

from stromboli.api.int_or_percent import IntOrPercent
from stromboli.api.types.meta import (
    Condition,
    Count,
    Int64,
    LabelSelector,
    ObjectMeta,
    Time,
    Value,
)
from stromboli.controllers.workloads.workload import Workload, WorkloadSpec, WorkloadStatus


class WorkloadMeta(ObjectMeta):
    """Metadata with what a controller needs beyond that of all objects."""

    generation: Int64 = 0
    finalizers: tuple[str, ...] = ()


class WorkloadCondition(Condition, frozen=True):
    """A condition in the status of a workload."""

    last_update_time: Time | None = None


class SelectingWorkload(Workload):
    """A workload that finds its pods by their labels."""

    metadata: WorkloadMeta

    @property
    def selector(self) -> LabelSelector | None:
        """Which pods are its own; None selects none."""
        raise NotImplementedError


class ReplicaSetSpec(WorkloadSpec):
    selector: LabelSelector | None = None
    min_ready_seconds: Count = 0


class ReplicaSetStatus(WorkloadStatus):
    fully_labeled_replicas: Count = 0
    ready_replicas: Count = 0
    available_replicas: Count = 0
    terminating_replicas: Count | None = None
    observed_generation: Int64 = 0
    conditions: tuple[WorkloadCondition, ...] = ()


class ReplicaSet(SelectingWorkload):
    kind: str = "ReplicaSet"
    api_version: str = "apps/v1"
    spec: ReplicaSetSpec = field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = field(default_factory=ReplicaSetStatus)

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector


class ReplicationControllerSpec(WorkloadSpec):
    selector: dict[str, str] = field(default_factory=dict)
    min_ready_seconds: Count = 0


class ReplicationController(SelectingWorkload):
    kind: str = "ReplicationController"
    api_version: str = "v1"
    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)
    status: ReplicaSetStatus = field(default_factory=ReplicaSetStatus)

    @property
    def selector(self) -> LabelSelector | None:
        """An empty selector of a ReplicationController selects nothing."""
        return LabelSelector(self.spec.selector) if self.spec.selector else None


class RollingUpdate(Value, frozen=True):
    """Numbers, or percentages of the replicas."""

    max_surge: IntOrPercent = "25%"
    max_unavailable: IntOrPercent = "25%"


class DeploymentStrategy(Value, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(WorkloadSpec):
    selector: LabelSelector | None = None
    strategy: DeploymentStrategy = DeploymentStrategy()
    min_ready_seconds: Count = 0
    revision_history_limit: Count | None = None
    progress_deadline_seconds: Count | None = None
    paused: bool = False


class DeploymentStatus(WorkloadStatus):
    updated_replicas: Count = 0
    ready_replicas: Count = 0
    available_replicas: Count = 0
    unavailable_replicas: Count = 0
    terminating_replicas: Count | None = None
    collision_count: Count | None = None
    observed_generation: Int64 = 0
    conditions: tuple[WorkloadCondition, ...] = ()


class Deployment(SelectingWorkload):
    kind: str = "Deployment"
    api_version: str = "apps/v1"
    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: DeploymentStatus = field(default_factory=DeploymentStatus)

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector
