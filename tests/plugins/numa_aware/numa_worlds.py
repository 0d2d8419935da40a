"""Small clusters whose nodes have NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.testing import World
from tests.manifests import group, node, pod, policy

Manifest = dict[str, Any]
POLICY = "volcano.sh/numa-topology-policy"


def numa_topology(
    name: str,
    topology: str = "restricted",
    *,
    manager: str = "static",
    numa: int = 2,
    each: int = 4,
    allocatable: str | None = "",
    reserved: str = "",
    listed: Iterable[Manifest] = (),
) -> Manifest:
    """Some NUMA nodes of as many CPUs each, every CPU a core of its own; all are allocatable unless given."""
    spec: Manifest = {
        "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": topology},
        "cpuDetail": {
            str(cpu): {"numa": cpu // each, "socket": cpu // each, "core": cpu} for cpu in range(numa * each)
        },
        "podAllocations": list(listed),
    }
    if allocatable is not None:
        spec["numares"] = {"cpu": {"allocatable": allocatable or f"0-{numa * each - 1}"}}
    if reserved:
        spec["resReserved"] = {"cpu": reserved}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": spec,
    }


def numa_pod(name: str, *cpus: str | int, policy: str = "", **more: Any) -> Manifest:
    """A Guaranteed pod with a container for each number of CPUs."""
    annotations = {**({POLICY: policy} if policy else {}), **more.pop("annotations", {})}
    made = pod(name, more.pop("group", "j"), annotations=annotations, **more)
    made["spec"]["containers"] = [
        {
            "name": f"c{index}",
            "image": "busybox",
            "resources": {
                "requests": {"cpu": str(cpu), "memory": "1Gi"},
                "limits": {"cpu": str(cpu), "memory": "1Gi"},
            },
        }
        for index, cpu in enumerate(cpus)
    ]
    return made


def numa_world(*objects: Manifest, nodes: str = "n", weight: int = 1, actions: str = "allocate") -> World:
    """Nodes of 16 CPUs, a group `j` and what else is given, under a policy with numa-aware."""
    world = World(policy=policy(actions, "gang predicates", ("numa-aware", {"weight": weight})))
    world.add(*(node(name, cpu=16) for name in nodes.split()), group("j", 1), *objects)
    return world


def cpus_of(world: World, name: str) -> str:
    """The CPUs that a pod was given."""
    return ",".join(getattr(grant, "cpus", "") for grant in world.task(name).grants)
