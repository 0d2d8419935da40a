"""Clusters with objects of every kind, each of which decides something, and policies in which it does.

Every property that follows changes in a model compares probes of these worlds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from stromboli.api import card_names, names
from stromboli.api.types.meta import Object
from stromboli.engine.plugin import Key, Plugin
from stromboli.engine.session import Session
from stromboli.model.feed import Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from tests.manifests import (
    Manifest,
    decoded,
    group,
    hyper_node,
    native_group,
    pod,
    policy,
    priority_class,
    queue,
    quota,
    sub_group_policy,
)
from tests.plugins.deviceshare.card_worlds import vgpu
from tests.plugins.numa_aware.numa_worlds import numa_pod
from tests.properties.grant_worlds import KINDS as GRANTS
from tests.properties.grant_worlds import GrantWorld, cluster_objects, job_objects

DRIVER = "csi.example.com"
"""Of volumes that nodes attach, two at most."""
SIBLINGS = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
"""Kinds by which pods are spread that say nothing of it themselves."""
DEVICES = {"deviceshare.VGPUEnable": True, "deviceshare.ScheduleWeight": 10}
EVERY_NODE_PLUGIN: tuple[Any, ...] = (
    "predicates nodeorder binpack overcommit resourcequota network-topology-aware task-topology",
    ("numa-aware", {"weight": 1}),
    ("nodegroup", {"strict": False}),
    ("resource-strategy-fit", {"resources": {"cpu": {"type": "MostAllocated", "weight": 3}}}),
    ("deviceshare", DEVICES),
)
USAGE = ("usage", {"thresholds": {"cpu": 100, "mem": 100}})
"""Reads the time, so that no cycle with it is the repetition of another."""
FIRST_TIER = "priority gang conformance pdb cdp sla | "
ACTIONS = "probe"


class Follower(Plugin):
    """Remembers of jobs and queues what may only change with an entry in `Dirty`, as a plugin of an author would."""

    name = "follower"

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything:
            self._jobs: dict[Job, Key] = {}
            self._queues: dict[Queue, Key] = {}
        for job in session.cluster.jobs.values() if dirty.everything else dirty.jobs:
            self._jobs[job] = (job.priority, *job.counts, job.pending_best_effort)
        for one in session.cluster.queues.values() if dirty.everything else dirty.queues:
            self._queues[one] = (sorted(job.key for job in one.jobs), one.priority)

    def job_order(self, job: Job) -> Key:
        return self._jobs.get(job, ())

    def queue_order(self, queue: Queue) -> Key:
        return self._queues.get(queue, ())


class Setting(NamedTuple):
    """How a scheduler is configured: its policy, and whether it uses the nodes of its shard alone."""

    policy: str
    strict_shard: bool = False


SETTINGS = {
    "proportion": Setting(policy(ACTIONS, FIRST_TIER + "drf proportion follower", *EVERY_NODE_PLUGIN)),
    "capacity": Setting(
        policy(
            ACTIONS,
            FIRST_TIER + "capacity",
            ("fairshare", {"betweenQueues": True}),
            USAGE,
            *EVERY_NODE_PLUGIN,
        )
    ),
    "still": Setting(
        policy(
            ACTIONS,
            "priority gang conformance pdb | drf proportion resourcequota predicates nodeorder follower",
        )
    ),
    "packing": Setting(
        policy(
            *(ACTIONS, FIRST_TIER + "tdm proportion predicates fgd"),
            *(("deviceshare", DEVICES), "backfill-reservation"),
        ),
        strict_shard=True,
    ),
}
"""In `still` a cycle that changes nothing is not repeated: whatever is not noted at all is missed."""


# -- a cluster with objects of every kind, most of which decide something


def _object(version: str, kind: str, name: str, *, namespace: str = "", **body: Any) -> Manifest:
    meta = {"name": name, **body.pop("metadata", {}), **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **body}


def _selecting(kind: str, name: str, selector: Manifest) -> Manifest:
    version = "v1" if kind in ("Service", "ReplicationController") else "apps/v1"
    return _object(version, kind, name, namespace="default", spec={"selector": selector})


def _surroundings() -> Iterator[Manifest]:
    """Queues, classes, budgets, quotas, HyperNodes, and what else pods are measured against."""
    yield queue("root")
    history = {names.FAIR_SHARE: '{"v": 1, "at": 0.0, "queue": [5, 5], "users": {"default": [3, 1]}}'}
    yield queue("heavy", weight=3, capability={"cpu": "6"}, annotations=history)
    affinity = {"nodeGroupAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["a"]}}
    yield queue("grouped", deserved={"cpu": "2"}, guarantee={"resource": {"cpu": "1"}}, affinity=affinity)
    yield priority_class("middle", 10, default=True)
    yield quota("quota", {"cpu": "5", "pods": "90"}, {"cpu": "2", "pods": "3"})
    web = {"matchLabels": {"app": "web"}}
    budget = {"spec": {"selector": web}, "status": {"disruptionsAllowed": 1}}
    yield _object("policy/v1", "PodDisruptionBudget", "budget", namespace="default", **budget)
    yield _object("v1", "Namespace", "default", metadata={"labels": {"team": "x"}})
    yield _object("v1", "Namespace", "other", metadata={"labels": {"team": "y"}})
    yield hyper_node("s0", 1, nodes=["n0"], tier_name="rack")
    yield hyper_node("s1", 1, nodes=["n1", "n2"], tier_name="rack")
    yield hyper_node("top", 2, children=["s0", "s1"], tier_name="spine")
    for kind in SIBLINGS:
        labels = {"siblings": kind}
        flat = kind in ("Service", "ReplicationController")
        yield _selecting(kind, "web", labels if flat else {"matchLabels": labels})
    yield from _storage()
    yield _object(
        "shard.volcano.sh/v1alpha1", "NodeShard", "volcano", spec={"nodesDesired": ["n0", "n1", "n2"]}
    )
    others = {"spec": {"nodesDesired": ["n2"]}, "status": {"nodesInUse": ["n2"]}}
    yield _object("shard.volcano.sh/v1alpha1", "NodeShard", "others", **others)
    data = {"device-config.yaml": "nvidia:\n  resourceCoreName: example.com/cores\n"}
    yield _object("v1", "ConfigMap", "volcano-vgpu-device-config", namespace="kube-system", data=data)
    extended = {"extendedResourceName": "example.com/gpu"}
    yield _object("resource.k8s.io/v1", "DeviceClass", "extended", spec=extended)


def _storage() -> Iterator[Manifest]:
    """Volumes of a CSI driver that nodes attach, one of which is attached though no pod uses it."""
    for number in range(3):
        name = f"remote-{number}"
        claim = {"namespace": "default", "name": name, "uid": f"PersistentVolumeClaim/default/{name}"}
        volume = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "remote",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": claim,
        }
        yield _object("v1", "PersistentVolume", name, spec=volume, status={"phase": "Bound"})
        asked = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "remote",
            "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        bound = {"annotations": {names.BIND_COMPLETED: "yes"}}
        yield _object(
            *("v1", "PersistentVolumeClaim", name),
            namespace="default",
            metadata=bound,
            spec=asked,
            status={"phase": "Bound"},
        )
    source = {"persistentVolumeName": "remote-2"}
    attachment = {"attacher": DRIVER, "nodeName": "n0", "source": source}
    yield _object("storage.k8s.io/v1", "VolumeAttachment", "attachment", spec=attachment)
    late = {"provisioner": DRIVER, "volumeBindingMode": names.WAIT_FOR_FIRST_CONSUMER}
    yield _object("storage.k8s.io/v1", "StorageClass", "remote", **late)


def _spread(key: str, when: str) -> Manifest:
    selector = {"matchLabels": {"app": "web"}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


def _pod_terms(**labels: str) -> Manifest:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": names.HOSTNAME}
    selected = {"matchLabels": {"team": "x"}}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [term],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "podAffinityTerm": {**term, "namespaceSelector": selected}}
        ],
    }


def _terms_in(team: str, **labels: str) -> Manifest:
    """A required term about pods in namespaces of a team."""
    selected = {
        "labelSelector": {"matchLabels": labels},
        "namespaceSelector": {"matchLabels": {"team": team}},
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [{**selected, "topologyKey": names.HOSTNAME}]}


def _texts(amounts: Mapping[str, int]) -> Manifest:
    return {name: str(amount) for name, amount in amounts.items()}


SPECS: dict[str, Manifest] = {
    "spread": {"topologySpreadConstraints": [_spread(names.HOSTNAME, "DoNotSchedule")]},
    "spread softly": {"topologySpreadConstraints": [_spread(names.ZONE, "ScheduleAnyway")]},
    "together": {"affinity": {"podAffinity": _pod_terms(app="web")}},
    "apart": {"affinity": {"podAntiAffinity": _pod_terms(app="db")}},
    "chosen": {"nodeSelector": {"host": "n1"}},
    "tolerant": {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
    "port": {
        "containers": [{"name": "main", "image": "big", "ports": [{"hostPort": 80, "containerPort": 80}]}]
    },
    "disk": {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": False}}]},
    "node affinity": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 5,
                        "preference": {
                            "matchExpressions": [{"key": "host", "operator": "In", "values": ["n1"]}]
                        },
                    }
                ]
            }
        }
    },
    "extended": {
        "containers": [
            {
                "name": "main",
                "resources": {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}},
            }
        ]
    },
    "card": {"containers": [{"name": "main", "resources": {"limits": _texts(vgpu(memory=6000, cores=10))}}]},
    "gated": {"schedulingGates": [{"name": "wait"}]},
    "away": {"affinity": {"podAntiAffinity": _terms_in("x", app="web")}},
}
"""What pods ask for that is no grant."""


def _plain_jobs(chance: random.Random) -> Iterator[Manifest]:
    """Of each kind of spec a pod that runs and one that waits, and gangs of all sorts."""
    for number, (kind, spec) in enumerate(SPECS.items()):
        name, labels = kind.replace(" ", "-"), {"app": "web" if number % 2 else "db", "rack": str(number % 3)}
        spec_queue = ("default", "heavy", "grouped")[number % 3]
        yield group(
            *(f"p-{name}", number % 2),
            queue=spec_queue,
            priorityClassName=chance.choice(("", "high", "low")),
            minResources={"cpu": str(number % 7), "memory": "1Gi"} if number % 2 else None,
        )
        shown = {"labels": labels, "role": "worker", "priority": chance.choice((1, 5, 100)), "spec": spec}
        if kind != "gated":
            where = f"n{number % 2}"
            yield pod(f"p-{name}-x-0", f"p-{name}", on=where, cpu="200m", created=number, **shown)
        yield pod(f"p-{name}-x-1", f"p-{name}", cpu="300m", created=number, **shown)
    yield group("gang", 2, queue="heavy", minTaskMember={"worker": 1, "ps": 1}, minResources={"cpu": "2"})
    for number, role in enumerate(("worker", "ps")):
        yield pod(f"gang-x-{number}", "gang", role=role, annotations={names.PREEMPTABLE: "true"})
    hard = {"mode": "hard", "highestTierAllowed": 1}
    parts = {**sub_group_policy("rack", "rack", size=1, least=1), "networkTopology": hard}
    yield group(
        "tied", 2, queue="default", networkTopology={**hard, "highestTierAllowed": 2}, subGroupPolicy=[parts]
    )
    for number in range(2):
        yield pod(f"tied-x-{number}", "tied", labels={"rack": str(number)}, cpu="100m")
    yield group("urgent", 1, priorityClassName="high", queue="grouped")
    yield pod("urgent-x-0", "urgent", cpu="3", priority=100)
    yield native_group("native", 2, annotations={names.QUEUE_NAME: "heavy"}, version="v1beta1")
    for number in range(2):
        yield pod(f"native-x-{number}", native="native", cpu="100m", on="n0" if number else "")
    yield pod("best-x-0", "gang", cpu=0)
    yield from _siblings()
    yield group("attached", 0)
    for number, where in enumerate(("n0", "")):
        claims = [{"name": "d", "persistentVolumeClaim": {"claimName": f"remote-{number}"}}]
        yield pod(f"attached-x-{number}", "attached", on=where, cpu=0, spec={"volumes": claims})
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "made",
        "resources": {"requests": {"storage": "5Gi"}},
    }
    yield _object("v1", "PersistentVolumeClaim", "large", namespace="default", spec=asked)
    claims = [{"name": "d", "persistentVolumeClaim": {"claimName": "large"}}]
    yield pod("attached-x-2", "attached", cpu="100m", spec={"volumes": claims})
    yield from _of_one_pod()
    yield pod("rare-x-0", "attached", on="n0", cpu="10m", **{"example.com/rare": 1})
    disk = {"volumes": [{"name": "d", "iscsi": {"iqn": "iqn", "targetPortal": "a", "lun": 0}}]}
    for number, where in enumerate(("n1", "")):
        yield pod(f"iscsi-x-{number}", "attached", on=where, cpu="10m", spec=disk)
    yield group("held", 0)
    for number in range(3):
        where = f"n{number}"
        shown = {
            card_names.VGPU_NODE: where,
            card_names.VGPU_TIME: "1",
            card_names.VGPU_IDS: f"GPU-{where}-0,NVIDIA,7000,30:",
        }
        limits = {"name": "main", "resources": {"limits": _texts(vgpu(memory=7000, cores=30))}}
        spec = {"containers": [limits]}
        yield pod(f"held-x-{number}", "held", on=where, cpu=0, annotations=shown, spec=spec)
    yield pod("elsewhere", namespace="other", on="n1", cpu="100m", labels={"app": "web"})
    yield group("numa", 1, priorityClassName="high")
    yield numa_pod("numa-x-0", 3, group="numa", policy="restricted")
    yield numa_pod("numa-x-1", 4, group="numa", policy="single-numa-node")


def _of_one_pod() -> Iterator[Manifest]:
    """A claim for a single pod, used by a pod that is being deleted and by one that runs; another pod waits."""
    asked = {
        "accessModes": [names.READ_WRITE_ONCE_POD],
        "storageClassName": "remote",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    yield _object("v1", "PersistentVolumeClaim", "single", namespace="default", spec=asked)
    claims = [{"name": "d", "persistentVolumeClaim": {"claimName": "single"}}]
    yield group("single", 0)
    for number, where in enumerate(("n1", "n2", "")):
        leaves = number == 0
        yield pod(
            *(f"single-x-{number}", "single"),
            on=where,
            cpu="10m",
            terminating=leaves,
            spec={"volumes": claims},
        )


def _siblings() -> Iterator[Manifest]:
    """Of each controller, and of a Service, two pods that run on a node and one that waits."""
    for kind in SIBLINGS:
        name = f"s-{kind.lower()}"
        owner = {"apiVersion": "v1", "kind": kind, "name": "web", "uid": f"{kind}/web", "controller": True}
        owned: Manifest = {} if kind == "Service" else {"metadata": {"ownerReferences": [owner]}}
        yield group(name, 0)
        for number, where in enumerate(("n0", "n0", "")):
            yield pod(f"{name}-x-{number}", name, on=where, cpu="10m", labels={"siblings": kind}, **owned)


@cache
def world_objects(seed: int) -> list[Object]:
    """All of it; what asks for volumes, devices, cards and CPUs has them, in part."""
    chance = random.Random(seed)
    cluster = cluster_objects(chance, nodes=3)
    for manifest in cluster:
        if manifest["kind"] == "CSINode":
            driver = {"name": DRIVER, "nodeID": manifest["metadata"]["name"], "allocatable": {"count": 2}}
            manifest["spec"]["drivers"].append(driver)
        if manifest["kind"] == "Node":
            name = manifest["metadata"]["name"]
            manifest["status"]["allocatable"] |= {"cpu": chance.choice(("10", "14")), "pods": "50"}
            manifest["metadata"]["labels"] |= {names.HOSTNAME: name, names.ZONE: f"z{name == 'n0'}"}
            manifest["metadata"]["labels"] |= {names.NODE_GROUP_NAME: "a" if name == "n0" else "b"}
            manifest["status"]["images"] = [{"names": ["big:latest"], "sizeBytes": 2**29}]
            manifest["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            taint = {
                "key": "dedicated",
                "value": "x",
                "effect": "NoSchedule" if name == "n2" else "PreferNoSchedule",
            }
            manifest["spec"]["taints"] = [taint]
    running = [each for kind in GRANTS for each in job_objects(f"r-{_dns(kind)}", chance, (kind,), "low")]
    world = GrantWorld([*cluster, *running])
    for _ in range(3):
        world.step()
    waiting = [each for kind in GRANTS for each in job_objects(f"w-{_dns(kind)}", chance, (kind,), "high")]
    others = [*_surroundings(), *_plain_jobs(chance), *waiting]
    return [*world.objects.values(), *map(decoded, others)]


def _dns(kind: str) -> str:
    return kind.replace(" ", "-")
