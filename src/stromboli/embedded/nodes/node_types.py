"""Pods and nodes with the fields that running them takes."""

from __future__ import annotations

from typing import Any

from msgspec import field

from stromboli.api.pods import is_finished
from stromboli.api.types.meta import Condition, Object, ObjectMeta, Record, Time
from stromboli.api.types.pod import Toleration

Content = dict[str, Any]


class PodMeta(ObjectMeta):
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] | None = None


class TimedToleration(Toleration, frozen=True):
    toleration_seconds: int | None = None


class PodSpec(Record):
    node_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    service_account_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    readiness_gates: list[Content] | None = None
    tolerations: tuple[TimedToleration, ...] | None = None
    containers: list[Content] = field(default_factory=list)
    init_containers: list[Content] | None = None
    resources: Content | None = None
    volumes: list[Content] | None = None
    resource_claims: list[Content] | None = None
    scheduling_group: Content | None = None


class PodStatus(Record):
    phase: str = ""
    pod_ip: str = field(default="", name="podIP")
    start_time: Time | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: list[Content] | None = None
    init_container_statuses: list[Content] | None = None
    resource_claim_statuses: list[Content] | None = None
    extended_resource_claim_status: Content | None = None


class NodePod(Object):
    """A pod as a kubelet reads it; containers and volumes as they were written."""

    metadata: PodMeta
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def finished(self) -> bool:
        return is_finished(self)

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def needs_final_status(self) -> bool:
        """It stays when its node has deleted it, and those who wait for its end must see that it ended."""
        return bool(self.metadata.finalizers) and not self.finished


class NodeSpec(Record):
    taints: list[Content] | None = None
    unschedulable: bool = False
    pod_cidr: str = field(default="", name="podCIDR")


class NodeStatus(Record):
    conditions: tuple[Condition, ...] | None = None
    capacity: dict[str, Any] | None = None
    allocatable: dict[str, Any] | None = None
    addresses: list[Content] | None = None
    node_info: Content | None = None
    daemon_endpoints: Content | None = None


class NodeView(Object):
    """A node as the service that runs it reads it."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)
