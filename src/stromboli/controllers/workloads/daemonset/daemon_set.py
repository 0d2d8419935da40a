"""A DaemonSet and the nodes, as the DaemonSet controller reads them."""

from __future__ import annotations

from msgspec import field

from stromboli.api.int_or_percent import IntOrPercent, scaled_value
from stromboli.api.types.meta import Count, Int32, Int64, LabelSelector, Object, Record, Value
from stromboli.api.types.node import Taint
from stromboli.controllers.workloads.workload import WorkloadSpec, WorkloadStatus
from stromboli.controllers.workloads.workload_kinds import SelectingWorkload

ON_DELETE = "OnDelete"


class RollingDaemons(Value, frozen=True):
    """How many nodes may lack a pod during an update, and how many may have two."""

    max_unavailable: IntOrPercent = 1
    max_surge: IntOrPercent = 0


class DaemonUpdateStrategy(Value, frozen=True):
    type: str = "RollingUpdate"
    rolling_update: RollingDaemons | None = None


class DaemonSetSpec(WorkloadSpec):
    selector: LabelSelector | None = None
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 = 10
    update_strategy: DaemonUpdateStrategy = DaemonUpdateStrategy()


class DaemonSetStatus(WorkloadStatus):
    """Counts of nodes."""

    number_misscheduled: Count = 0
    desired_number_scheduled: Count = 0
    number_ready: Count = 0
    observed_generation: Int64 = 0
    updated_number_scheduled: Count = 0
    number_available: Count = 0
    number_unavailable: Count = 0
    collision_count: Count | None = None


class DaemonSet(SelectingWorkload):
    kind: str = "DaemonSet"
    api_version: str = "apps/v1"
    spec: DaemonSetSpec = field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector

    @property
    def rolling_update(self) -> RollingDaemons | None:
        """None if pods are replaced only when somebody deletes them."""
        strategy = self.spec.update_strategy
        return None if strategy.type == ON_DELETE else strategy.rolling_update or RollingDaemons()

    def limits(self, desired: int) -> tuple[int, int]:
        """How many of the desired pods may be unavailable and how many may come on top; never none of both."""
        rolling = self.rolling_update
        if rolling is None:
            return 0, 0
        unavailable = scaled_value(rolling.max_unavailable, desired, round_up=True)
        surge = scaled_value(rolling.max_surge, desired, round_up=True)
        return (unavailable or int(not surge)), surge

    @property
    def surges(self) -> bool:
        """Whether a node may have two pods during an update."""
        return self.limits(1)[1] > 0


class NodeSpec(Record):
    taints: tuple[Taint, ...] = ()


class Node(Object):
    """A node: its name, labels and taints."""

    spec: NodeSpec = field(default_factory=NodeSpec)

    def __post_init__(self) -> None:
        """Keep no annotations, which are of no use here."""
        self.metadata.annotations = {}
