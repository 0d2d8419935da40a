"""Resources and annotations by which a scheduler and device plugins of shared cards understand each other."""

# -- vGPU: resources, annotations of nodes, of pods by their users, of pods by the scheduler

VGPU_NUMBER = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_CORES = "volcano.sh/vgpu-cores"
VGPU_REGISTER = "volcano.sh/node-vgpu-register"
VGPU_MODE = "volcano.sh/vgpu-mode"
VGPU_USE_UUID = "volcano.sh/vgpu-use-gpuuuid"
VGPU_AVOID_UUID = "volcano.sh/vgpu-nouse-gpuuuid"
VGPU_GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"
USE_GPU_TYPE = "nvidia.com/use-gputype"
AVOID_GPU_TYPE = "nvidia.com/nouse-gputype"
VGPU_NODE = "volcano.sh/vgpu-node"
VGPU_TIME = "volcano.sh/vgpu-time"
VGPU_IDS = "volcano.sh/vgpu-ids-new"
VGPU_IDS_TO_ALLOCATE = "volcano.sh/devices-to-allocate"
BIND_PHASE = "volcano.sh/bind-phase"
BIND_TIME = "volcano.sh/bind-time"
VGPU_LOCK = "hamivgpu"
ALLOCATING = "allocating"
NVIDIA = "NVIDIA"
HAMI_CORE = "hami-core"
MIG = "mig"
SPREAD = "spread"
BINPACK = "binpack"
GROUP_NAME_ALIAS = "scheduling.volcano.sh/group-name"

# -- gpu-share

GPU_MEMORY = "volcano.sh/gpu-memory"
GPU_NUMBER = "volcano.sh/gpu-number"
GPU_UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
GPU_INDEX = "volcano.sh/gpu-index"
PREDICATE_TIME = "volcano.sh/predicate-time"
GPU_LOCK = "gpu"

# -- Ascend NPUs shared by HAMi; a format takes the common word of the model

NPU_REGISTER_PREFIX = "hami.io/node-register-"
NPU_REGISTER = NPU_REGISTER_PREFIX + "{}"
NPU_TO_ALLOCATE = "hami.io/{}-devices-to-allocate"
NPU_ALLOCATED = "hami.io/{}-devices-allocated"
NPU_RUNTIME = "huawei.com/{}"
NPU_NODE = "hami.io/vgpu-node"
NPU_TIME = "hami.io/vgpu-time"
NPU_BIND_PHASE = "hami.io/bind-phase"
NPU_BIND_TIME = "hami.io/bind-time"
NPU_PREDICATE_TIME = "predicate-time"
NPU_LOCK = "hami.io/mutex.lock"
NPU_POD_MODE = "huawei.com/vnpu-mode"
NPU_NODE_MODE = "hami-vnpu-core"
NPU_CORE = "huawei.com/npu-core"
_ASCEND = "huawei.com/Ascend"
_PARTS = ("-memory", "-core")

HANDSHAKE_SUFFIX = "-handshake"
"""How annotations end in which a device plugin says twice a minute that it is alive."""

# -- the models of cards, as Volcano registers them

VGPU = "hamivgpu"
GPU_SHARE = "GpuShare"


def is_part_of_npu(resource: str) -> bool:
    """Whether a resource is memory or cores of an Ascend NPU that HAMi shares out (spec 04 10.6)."""
    return resource.startswith(_ASCEND) and resource.endswith(_PARTS)
