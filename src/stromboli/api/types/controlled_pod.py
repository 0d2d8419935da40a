"""A pod with the fields that controllers read."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types.meta import Condition, Int32, Int64, Object, ObjectMeta, Record, Time, Value
from stromboli.api.types.pod import ContainerResources, NodeAffinity, PodResources, SchedulingGroup


class PodMeta(ObjectMeta):
    finalizers: tuple[str, ...] = ()
    deletion_grace_period_seconds: Int64 | None = None


class Affinity(Value, frozen=True):
    """The part of an affinity that names the node of a DaemonSet's pod."""

    node_affinity: NodeAffinity | None = None


class InitContainer(ContainerResources):
    name: str = ""


class PodSpec(PodResources):
    scheduler_name: str = ""
    node_name: str = ""
    priority_class_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    affinity: Affinity | None = None
    init_containers: tuple[InitContainer, ...] = ()


class Terminated(Value, frozen=True):
    """How and when a container terminated."""

    exit_code: Int32 = 0
    finished_at: Time | None = None


class ContainerState(Value, frozen=True):
    terminated: Terminated | None = None


class ContainerStatus(Value, frozen=True):
    """The state of a container, and how often it was restarted."""

    name: str = ""
    ready: bool = False
    restart_count: Int32 = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(Record):
    phase: str = ""
    start_time: Time | None = None
    pod_ip: str = field(default="", name="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Object):
    """One pod."""

    metadata: PodMeta
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)
