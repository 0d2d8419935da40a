"""The table of everything that objects may require of their placement and that not every policy honours.

A plugin that honours a requirement names it in `Plugin.honours`. Without such a plugin in the policy a hard requirement
keeps its pods pending, and a soft one is reported in an event. A new feature only needs a plugin that names it; nothing
in this table changes.
"""

from __future__ import annotations

from typing import NamedTuple


class PlacementRequirement(NamedTuple):
    """A row of the table."""

    name: str
    """What a plugin lists in `honours`."""
    hard: bool
    """Whether pods stay pending without it."""
    field: str
    """The field that requires it, for the documentation."""
    unmet: str
    """What is missing, for users whose object requires it."""
    remedy: str
    plugin: str = ""
    """The built-in plugin that honours it; none if there is none."""
    depends_on_cluster: bool = False
    """Whether other objects, or defaults of the API server, are needed to detect that it is not met."""


class Demand(NamedTuple):
    """A requirement of an object, with the field and the value that state it."""

    requirement: PlacementRequirement
    field: str
    value: str
    registration: str = ""
    """The annotation by which nodes offer the feature; while no node has it, nothing is required."""

    @property
    def asks(self) -> str:
        """`spec.networkTopology (hard, highestTierAllowed 1)`."""
        return f"{self.field} ({self.value})" if self.value else self.field

    @property
    def text(self) -> str:
        """The requirement, and what is missing."""
        return f"{self.asks}: {self.requirement.unmet}"


HARD_NETWORK_TOPOLOGY = PlacementRequirement(
    "hard-network-topology",
    True,
    "PodGroup: `networkTopology` of `spec` or of a `subGroupPolicy`, with `mode: hard` and a tier",
    "no plugin in the policy honours a hard network topology",
    "add network-topology-aware to the policy, or set mode: soft to allow any placement",
    "network-topology-aware",
)
SOFT_NETWORK_TOPOLOGY = PlacementRequirement(
    "soft-network-topology",
    False,
    "PodGroup: `networkTopology` of `spec` or of a `subGroupPolicy`, with `mode: soft`",
    "no plugin in the policy prefers nodes that are close in the network, so pods may be placed anywhere",
    "add network-topology-aware to the policy",
    "network-topology-aware",
)
TOPOLOGY_WITHOUT_TIER = PlacementRequirement(
    "network-topology-without-tier",
    False,
    "PodGroup: `networkTopology` with `mode: hard` and no tier",
    "it has no effect without a tier, so pods may be placed anywhere",
    "set highestTierAllowed or highestTierName",
)
TASK_TOPOLOGY = PlacementRequirement(
    "task-topology",
    False,
    "PodGroup: annotations `volcano.sh/task-topology-affinity`, `-anti-affinity`, `-task-order`",
    "no plugin in the policy prefers nodes by the roles of a job",
    "add task-topology to the policy, or use podAffinity and podAntiAffinity",
    "task-topology",
)
RESOURCE_CLAIMS = PlacementRequirement(
    "resource-claims",
    True,
    "Pod: `spec.resourceClaims`, `resources.claims` of containers, resources `deviceclass.resource.kubernetes.io/*`",
    "no plugin in the policy allocates devices to resource claims",
    "add predicates to the policy",
    "predicates",
)
DEVICE_SHARING = PlacementRequirement(
    "device-sharing",
    True,
    "Pod: resources `volcano.sh/gpu-memory`, `volcano.sh/gpu-number`, `huawei.com/*-memory`, and `volcano.sh/vgpu-*`"
    " where any node has the annotation `volcano.sh/node-vgpu-register`",
    "no plugin in the policy shares out parts of devices",
    "add deviceshare to the policy, or request whole devices such as nvidia.com/gpu",
    "deviceshare",
)
NPU_CORES = PlacementRequirement(
    "npu-cores",
    True,
    "Pod: resource `huawei.com/npu-core`, a slice of an Ascend 310P by MindCluster",
    "no plugin in the policy shares out NPUs by MindCluster's templates",
    "request whole NPUs, or share them with HAMi's device plugin (MindCluster slices are not supported)",
)
NUMA_POLICY = PlacementRequirement(
    "numa-policy",
    True,
    "Pod of class Guaranteed: annotation `volcano.sh/numa-topology-policy`, `restricted` or `single-numa-node`",
    "no plugin in the policy places pods by NUMA nodes",
    "add numa-aware to the policy, or set the annotation to none or best-effort",
    "numa-aware",
)
PREFERRED_NUMA_POLICY = PlacementRequirement(
    "preferred-numa-policy",
    False,
    "Pod of class Guaranteed: annotation `volcano.sh/numa-topology-policy`, `best-effort`",
    "no plugin in the policy prefers nodes by their NUMA nodes",
    "add numa-aware to the policy",
    "numa-aware",
)
VOLUME_BINDING = PlacementRequirement(
    "volume-binding",
    True,
    "Pod: `spec.volumes` with a claim that is missing, lost, being deleted or not bound",
    "no plugin in the policy binds volumes",
    "add predicates to the policy; kubectl get pvc shows whether the claim is bound",
    "predicates",
    depends_on_cluster=True,
)
VOLUME_TOPOLOGY = PlacementRequirement(
    "volume-topology",
    True,
    "Pod: `spec.volumes` with a bound claim whose volume is reachable from some nodes only",
    "no plugin in the policy checks from which nodes its volume is reachable",
    "add predicates to the policy",
    "predicates",
    depends_on_cluster=True,
)
VOLUME_LIMITS = PlacementRequirement(
    "volume-limits",
    False,
    "Pod: `spec.volumes` of `csi`, `awsElasticBlockStore`, `azureDisk`, `cinder`, `gcePersistentDisk`, `iscsi`, "
    "`portworxVolume`, `rbd`, `vsphereVolume`",
    "no plugin in the policy counts the volumes of a node, or knows which other pods use one",
    "add predicates to the policy",
    "predicates",
)
NODE_FILTERS = PlacementRequirement(
    "node-filters",
    False,
    "Pod: `nodeSelector`, required node and pod affinity, host ports, spread constraints with `DoNotSchedule`",
    "no plugin in the policy filters nodes by it, so the pod may be placed on any node",
    "add predicates to the policy",
    "predicates",
)
NODE_PREFERENCES = PlacementRequirement(
    "node-preferences",
    False,
    "Pod: preferred node and pod affinity, spread constraints with `ScheduleAnyway`",
    "no plugin in the policy prefers nodes by it",
    "add nodeorder to the policy",
    "nodeorder",
)
LABEL_KEYS = PlacementRequirement(
    "affinity-label-keys",
    True,
    "Pod: `matchLabelKeys` and `mismatchLabelKeys` of required pod affinity that are not in the `labelSelector`",
    "the API server has not written these keys into the labelSelector, which alone is read",
    "write them into the labelSelector, as Kubernetes' own API server does when a pod is created",
    depends_on_cluster=True,
)
PREFERRED_LABEL_KEYS = LABEL_KEYS._replace(
    name="preferred-affinity-label-keys",
    hard=False,
    field="Pod: the same of preferred pod affinity",
)
OPERATING_SYSTEM = PlacementRequirement(
    "operating-system",
    False,
    "Pod: `spec.os` other than linux, without a `nodeSelector` for `kubernetes.io/os`",
    "nodes are not chosen by it, by Kubernetes' own scheduler neither, and a kubelet refuses the pod on others",
    "add the nodeSelector kubernetes.io/os",
)
REVOCABLE_ZONE = PlacementRequirement(
    "revocable-zone",
    False,
    "Pod: annotation `volcano.sh/revocable-zone`",
    "no plugin in the policy supports revocable nodes",
    "add tdm to the policy",
    "tdm",
)
RESOURCE_STRATEGY = PlacementRequirement(
    "resource-strategy",
    False,
    "Pod: annotations `volcano.sh/resource-strategy-scoring-type`, `volcano.sh/resource-strategy-weight`",
    "no plugin in the policy scores nodes by a strategy of the pod",
    "add resource-strategy-fit to the policy",
    "resource-strategy-fit",
)
WAITING_TIME = PlacementRequirement(
    "waiting-time",
    False,
    "PodGroup: annotation `volcano.sh/sla-waiting-time`",
    "no plugin in the policy looks at how long a job has waited",
    "add sla to the policy",
    "sla",
)
NODE_GROUPS = PlacementRequirement(
    "node-groups",
    True,
    "Queue: `spec.affinity` with required node groups, or groups required to be avoided",
    "no plugin in the policy keeps a queue to its node groups",
    "add nodegroup to the policy, or remove spec.affinity from the queue",
    "nodegroup",
)
PREFERRED_NODE_GROUPS = PlacementRequirement(
    "preferred-node-groups",
    False,
    "Queue: `spec.affinity` with preferred node groups",
    "no plugin in the policy prefers the node groups of a queue",
    "add nodegroup to the policy",
    "nodegroup",
)
DEQUEUE_STRATEGY = PlacementRequirement(
    "dequeue-strategy",
    False,
    "Queue: `spec.dequeueStrategy: fifo`",
    "no plugin in the policy enforces FIFO order, so other jobs of the queue may start before a waiting one",
    "set it to traverse",
)

REQUIREMENTS = (
    HARD_NETWORK_TOPOLOGY,
    SOFT_NETWORK_TOPOLOGY,
    TOPOLOGY_WITHOUT_TIER,
    TASK_TOPOLOGY,
    RESOURCE_CLAIMS,
    DEVICE_SHARING,
    NPU_CORES,
    NUMA_POLICY,
    PREFERRED_NUMA_POLICY,
    VOLUME_BINDING,
    VOLUME_TOPOLOGY,
    VOLUME_LIMITS,
    NODE_FILTERS,
    NODE_PREFERENCES,
    LABEL_KEYS,
    PREFERRED_LABEL_KEYS,
    OPERATING_SYSTEM,
    REVOCABLE_ZONE,
    RESOURCE_STRATEGY,
    WAITING_TIME,
    NODE_GROUPS,
    PREFERRED_NODE_GROUPS,
    DEQUEUE_STRATEGY,
)
