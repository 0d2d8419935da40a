"""The objects that workloads are made of, as the plain dictionaries an API server would serve."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Manifest = dict[str, Any]
Request = dict[str, str]

NAMESPACE = "bench"
ZONES = 3
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
VOLCANO = "scheduling.volcano.sh/v1beta1"

MACHINE = {"cpu": "32", "memory": "256Gi", "pods": "110", GPU: "8"}


def node_name(index: int) -> str:
    return f"node-{index:05d}"


def node(index: int) -> Manifest:
    """A machine with 32 cores, 256 GiB and 8 GPUs, in one of three zones."""
    name = node_name(index)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"z{index % ZONES}"}},
        "status": {"allocatable": dict(MACHINE)},
    }


def numa_topology(name: str, cores: int = 32) -> Manifest:
    """What the kubelet of a node reports: two NUMA nodes, with exclusive CPUs."""
    detail = {
        str(cpu): {"numa": 2 * cpu // cores, "socket": 2 * cpu // cores, "core": cpu} for cpu in range(cores)
    }
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "best-effort"},
            "cpuDetail": detail,
            "numares": {"cpu": {"allocatable": f"0-{cores - 1}"}},
        },
    }


def queue(name: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True, **spec},
        "status": {"state": "Open"},
    }


def priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def pod_group(name: str, minimum: int, requests: Iterable[Request], phase: str, **spec: Any) -> Manifest:
    """A gang that needs `minimum` members, which together ask for `requests`."""
    return {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": minimum, "queue": "default", "minResources": total(requests), **spec},
        "status": {"phase": phase},
    }


def pod(group: str, index: int, request: Request, role: str = "worker", host: int | None = None) -> Manifest:
    """A member of a gang: running on a node if it has a host, else pending."""
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "containers": [{"name": role, "image": "busybox", "resources": {"requests": request}}],
    }
    if host is not None:
        spec["nodeName"] = node_name(host)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{group}-{role}-{index}",
            "namespace": NAMESPACE,
            "labels": {"volcano.sh/task-spec": role, "volcano.sh/job-name": group},
            "annotations": {
                "scheduling.k8s.io/group-name": group,
                "volcano.sh/task-spec": role,
                "volcano.sh/preemptable": "true",
            },
        },
        "spec": spec,
        "status": {"phase": "Pending" if host is None else "Running"},
    }


def gang(
    name: str,
    members: int,
    request: Request,
    *,
    phase: str = "Pending",
    minimum: int | None = None,
    host: Callable[[int], int] | None = None,
    priority: tuple[str, int] | None = None,
    **spec: Any,
) -> Iterator[Manifest]:
    """A PodGroup and its identical members; with a `host` for each, they run."""
    least = members if minimum is None else minimum
    if priority is not None:
        spec["priorityClassName"] = priority[0]
    yield pod_group(name, least, [request] * least, phase if host is None else "Running", **spec)
    for index in range(members):
        member = pod(name, index, request, host=None if host is None else host(index))
        if priority is not None:
            member["spec"]["priorityClassName"], member["spec"]["priority"] = priority
        yield member


def milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)


def gibi(memory: str) -> int:
    return int(memory.removesuffix("Gi"))


def total(requests: Iterable[Request]) -> Request:
    """Several requests together."""
    cpu = memory = gpus = 0
    for request in requests:
        cpu += milli(request["cpu"])
        memory += gibi(request["memory"])
        gpus += int(request.get(GPU, 0))
    return {"cpu": f"{cpu}m", "memory": f"{memory}Gi"} | ({GPU: str(gpus)} if gpus else {})
