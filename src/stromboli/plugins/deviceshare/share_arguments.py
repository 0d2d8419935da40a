"""The arguments of `deviceshare`, under Volcano's names (spec 04 10.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.policy.arguments import arg

_APART = "share GPUs in one way only: set one of deviceshare.{} and deviceshare.{} to false"


@dataclass(frozen=True, slots=True)
class ShareArguments:
    """The shared cards, how they are chosen, and where their configuration is."""

    gpu_sharing: bool = arg(
        "deviceshare.GPUSharingEnable", False, "Assign memory of GPUs (`volcano.sh/gpu-memory`)."
    )
    gpu_number: bool = arg(
        "deviceshare.GPUNumberEnable", False, "Assign whole GPUs by number (`volcano.sh/gpu-number`)."
    )
    vgpu: bool = arg(
        "deviceshare.VGPUEnable",
        False,
        "Assign parts of GPUs by memory, cores and MIG slots (`volcano.sh/vgpu-*`).",
    )
    mind_cluster: bool = arg(
        "deviceshare.AscendMindClusterVNPUEnable",
        False,
        "Share out Ascend 310P NPUs by MindCluster's templates (`huawei.com/npu-core`).",
        not_yet=True,
    )
    npus: bool = arg(
        "deviceshare.AscendHAMiVNPUEnable",
        False,
        "Assign parts of Ascend NPUs that HAMi's device plugin registers.",
    )
    node_lock: bool = arg(
        "deviceshare.NodeLockEnable",
        False,
        "Lock a node before its cards are assigned, until its device plugin has served the pod: one pod at a time.",
    )
    policy: str = arg(
        "deviceshare.SchedulePolicy",
        "",
        "Which cards to take first: `binpack` the fullest, `spread` the emptiest, any other value the last ones.",
    )
    weight: int = arg(
        "deviceshare.ScheduleWeight",
        0,
        "Weight of the policy in the score of nodes; 0 disables it. "
        "As in Volcano, `spread` chooses among the GPUs of a node only.",
    )
    config_name: str = arg(
        "deviceshare.KnownGeometriesCMName",
        "volcano-vgpu-device-config",
        "ConfigMap with `device-config.yaml`: names of resources, MIG geometries, models of NPUs.",
    )
    config_namespace: str = arg(
        "deviceshare.KnownGeometriesCMNamespace", "kube-system", "Namespace of this ConfigMap."
    )
    exclusive_rules: tuple[Mapping[str, object], ...] = arg(
        "deviceshare.GPUExclusiveRules",
        (),
        "Label maps: pods that have all labels of the same map share no GPU with each other.",
    )

    def __post_init__(self) -> None:
        if self.gpu_sharing and self.gpu_number:
            raise ValueError(_APART.format("GPUSharingEnable", "GPUNumberEnable"))
        if self.vgpu and (self.gpu_sharing or self.gpu_number):
            other = "GPUSharingEnable" if self.gpu_sharing else "GPUNumberEnable"
            raise ValueError(_APART.format("VGPUEnable", other))

    @property
    def rules(self) -> tuple[Mapping[str, str], ...]:
        """The exclusive rules: of each the pairs of texts, without those that have none."""
        texts = (
            {key: value for key, value in rule.items() if isinstance(value, str)}
            for rule in self.exclusive_rules
        )
        return tuple(rule for rule in texts if rule)
