"""Labels and annotations that nodes read."""

from stromboli.api import names

NODE = "stromboli.sh/node"
"""Label of a node that we run: `simulated` or `real`."""
SIMULATED, REAL = "simulated", "real"
FAILED = "stromboli.sh/failed"
"""Annotation of a node that is to fail, as if its power were cut."""
DEVICES = "stromboli.sh/devices"
"""Annotation of a node that we run: its GPUs for DRA, such as `8`, `8x80Gi` or `8x80Gi,H100`."""
MACHINE = "stromboli.sh/machine"
"""Annotation of the node that is this machine as it is."""
GPU_PRESENT, GPU_COUNT = "nvidia.com/gpu.present", "nvidia.com/gpu.count"
GPU_PRODUCT, GPU_MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
GPU_LABELS = (GPU_PRESENT, GPU_COUNT, GPU_PRODUCT, GPU_MEMORY)
"""Labels of a real node with GPUs, as GPU feature discovery sets them."""
RUN_TIME = names.RUN_TIME
START_DELAY = "stromboli.sh/start-delay"
"""Annotation of a pod: how long it takes to start on a simulated node."""
EXIT_CODE = "stromboli.sh/exit-code"
"""Annotation of a pod: its exit code on a simulated node; 0 unless given."""

UNREACHABLE = "node.kubernetes.io/unreachable"
AGENT = "stromboli-node"
