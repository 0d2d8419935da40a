"""A pod: what it requests, where it may run, and its status."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, convert, field

from stromboli.api.types.meta import (
    Condition,
    Int32,
    Int64,
    LabelSelector,
    Object,
    Record,
    Requirement,
    ResourceList,
    Time,
    Value,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Port = Annotated[int, Meta(ge=0, le=65535)]


class NodeSelectorTerm(Value, frozen=True):
    """Requirements on a node's labels and name, all of which must hold."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Value, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNodeTerm(Value, frozen=True):
    """A node term that is worth `weight` points."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True):
    """Nodes that the pod requires and nodes that it prefers."""

    required: NodeSelector | None = field(default=None, name=REQUIRED)
    preferred: tuple[PreferredNodeTerm, ...] = field(default=(), name=PREFERRED)


class PodAffinityTerm(Value, frozen=True):
    """Pods, by labels and namespace, with which to share, or not to share, a topology domain."""

    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPodTerm(Value, frozen=True):
    """A pod term that is worth `weight` points."""

    weight: Int32 = 0
    term: PodAffinityTerm = field(default=PodAffinityTerm(), name="podAffinityTerm")


class PodAffinity(Value, frozen=True):
    """Pods to be near to (affinity) or away from (anti-affinity)."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name=REQUIRED)
    preferred: tuple[PreferredPodTerm, ...] = field(default=(), name=PREFERRED)


class Affinity(Value, frozen=True):
    """All three kinds of affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Value, frozen=True):
    """A taint that the pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Value, frozen=True):
    """How unevenly matching pods may be spread over the domains of a topology key."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class ClaimedDevice(Value, frozen=True):
    """A device claim of the pod that a container uses."""

    name: str = ""
    request: str = ""


class Resources(Record):
    """Requests and limits of a container, or of a whole pod, and the device claims that it uses."""

    requests: ResourceList = field(default_factory=dict)
    limits: ResourceList = field(default_factory=dict)
    claims: tuple[ClaimedDevice, ...] = ()


class ContainerPort(Value, frozen=True):
    """A port, of interest only where it takes one of the host."""

    container_port: Port = 0
    host_port: Port = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ContainerResources(Record):
    """The part of a container that quotas and QoS classes are computed from."""

    resources: Resources = field(default_factory=Resources)
    restart_policy: str = ""


class Container(ContainerResources):
    """One container: its image, its requests and limits, its host ports."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()


class ClaimSource(Value, frozen=True):
    """A volume that is a PersistentVolumeClaim of that name."""

    claim_name: str = ""


class ClaimTemplateSpec(Value, frozen=True):
    """What the claim of an ephemeral volume requests."""

    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str = ""
    resources: Resources | None = None


class ClaimTemplate(Value, frozen=True):
    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class EphemeralSource(Value, frozen=True):
    """A volume whose claim, named `<pod>-<volume>`, is made for this pod alone."""

    volume_claim_template: ClaimTemplate | None = None


class ImageSource(Value, frozen=True):
    """A volume that is the content of an image."""

    reference: str = ""


class UnnamedDisk(Value, frozen=True):
    """A volume that a node attaches; only its presence is read."""


class Disk(Value, frozen=True):
    """A volume of which a node can attach so many, or that one node can attach.

    The fields that tell one disk from another are those of all sources: a source has some of them.
    """

    volume_id: str = field(default="", name="volumeID")
    """Of `awsElasticBlockStore`, `cinder` and `portworxVolume`."""
    pd_name: str = ""
    """Of `gcePersistentDisk`."""
    disk_uri: str = field(default="", name="diskURI")
    """Of `azureDisk`."""
    iqn: str = ""
    """Of `iscsi`."""
    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    """Of `rbd`, with `monitors` and `pool`."""
    read_only: bool = False


class Volume(Value, frozen=True):
    """A volume, where it matters for placement; other sources are left out."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    image: ImageSource | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None
    csi: UnnamedDisk | None = None
    gce_persistent_disk: Disk | None = None
    iscsi: Disk | None = None
    portworx_volume: Disk | None = None
    rbd: Disk | None = None
    vsphere_volume: UnnamedDisk | None = None

    @property
    def attached_disk(self) -> bool:
        """Whether a node attaches it without a claim."""
        return any(
            disk is not None
            for disk in (
                self.aws_elastic_block_store,
                self.azure_disk,
                self.cinder,
                self.csi,
                self.gce_persistent_disk,
                self.iscsi,
                self.portworx_volume,
                self.rbd,
                self.vsphere_volume,
            )
        )


class SchedulingGate(Value, frozen=True):
    """Must be removed before the pod may be scheduled."""

    name: str = ""


class PodResourceClaim(Value, frozen=True):
    """A device claim, by name or made from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class OperatingSystem(Value, frozen=True):
    """The operating system that a pod needs."""

    name: str = ""


class SchedulingGroup(Value, frozen=True):
    """The group of Kubernetes' own that a pod belongs to."""

    pod_group_name: str = ""


class PodResources(Record):
    """The part of a pod's spec that quotas and QoS classes are computed from."""

    containers: tuple[ContainerResources, ...] = ()
    init_containers: tuple[ContainerResources, ...] = ()
    overhead: ResourceList = field(default_factory=dict)
    resources: Resources | None = None


def pod_resources(pod: Mapping[str, Any]) -> PodResources:
    """The resources of a pod that is given as its JSON; `msgspec.ValidationError` if its types are wrong."""
    return convert(pod.get("spec") or {}, PodResources)


class PodSpec(PodResources):
    """The spec. An absent nodeSelector (None) is not the same as an empty one."""

    scheduler_name: str = ""
    node_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["", "PreemptLowerPriority", "Never"] = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    os: OperatingSystem | None = None


class ActualResources(Value, frozen=True):
    """The requests in force on the node. Limits are not read: a kubelet reports "no limit" as a huge number."""

    requests: ResourceList = field(default_factory=dict)


class ContainerStatus(Value, frozen=True):
    """The actual resources of a container, while or after it is resized in place."""

    name: str = ""
    resources: ActualResources | None = None
    allocated_resources: ResourceList = field(default_factory=dict)


class ResourceClaimStatus(Value, frozen=True):
    """The claim that was made from a template; no name means that none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Value, frozen=True):
    """The request of a claim that serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Value, frozen=True):
    """The claim that was made for the extended resources of a pod."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Record):
    """The status, as far as it matters for scheduling."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: Time | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ActualResources | None = None
    allocated_resources: ResourceList = field(default_factory=dict)
    resize: str = ""
    qos_class: str = ""
    resource_claim_statuses: tuple[ResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(Object):
    """One pod."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)
