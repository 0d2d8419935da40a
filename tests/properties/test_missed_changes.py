"""No cache misses a change: any field of any object may change, and the model decides as one made of the objects.

The fields are those of the structs, so a field that is new is among them. Only one changes at a time, in a cluster in
which nothing else happens: whatever does not follow it is found out.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.engine.catalog import action
from stromboli.engine.cycle import Engine
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.session import Session
from stromboli.model.intake.object_intake import Intake
from stromboli.model.lookup_objects import TABLES
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import load_policy
from stromboli.testing.policy_text import catalog_with
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
from tests.plugins.numa_aware.numa_worlds import numa_pod
from tests.properties.grant_worlds import KINDS as GRANTS
from tests.properties.grant_worlds import GrantWorld, cluster_objects, job_objects
from tests.properties.living import LivingWorld
from tests.properties.mutations import Mutator, Path, mutable_fields

MUTABLE: tuple[type[Object], ...] = (
    *(Pod, Node, PodGroup, NativePodGroup, Queue),
    *(*TABLES, ReplicaSet, StatefulSet, ReplicationController),
)
WORLDS = 4
SEEDS = 9
"""Each seed mutates every so manyth field."""
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
POLICIES = {
    "proportion": policy(ACTIONS, FIRST_TIER + "drf proportion", *EVERY_NODE_PLUGIN),
    "capacity": policy(
        ACTIONS, FIRST_TIER + "capacity", ("fairshare", {"betweenQueues": True}), USAGE, *EVERY_NODE_PLUGIN
    ),
    "packing": policy(
        ACTIONS,
        FIRST_TIER + "tdm proportion predicates fgd",
        ("deviceshare", DEVICES),
        "backfill-reservation",
    ),
}


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
    yield quota("quota", {"cpu": "60", "pods": "90"}, {"cpu": "2", "pods": "3"})
    web = {"matchLabels": {"app": "web"}}
    budget = {"spec": {"selector": web}, "status": {"disruptionsAllowed": 1}}
    yield _object("policy/v1", "PodDisruptionBudget", "budget", namespace="default", **budget)
    yield _object("v1", "Namespace", "default", metadata={"labels": {"team": "x"}})
    yield _object("v1", "Namespace", "other", metadata={"labels": {"team": "y"}})
    yield hyper_node("s0", 1, nodes=["n0"], tier_name="rack")
    yield hyper_node("s1", 1, nodes=["n1", "n2"], tier_name="rack")
    yield hyper_node("top", 2, children=["s0", "s1"], tier_name="spine")
    yield _selecting("Service", "web", {"app": "web"})
    yield _selecting("ReplicationController", "web", {"app": "web"})
    yield _selecting("ReplicaSet", "web", web)
    yield _selecting("StatefulSet", "web", web)
    source = {"persistentVolumeName": "remote"}
    attachment = {"attacher": "disks.example.com", "nodeName": "n0", "source": source}
    yield _object("storage.k8s.io/v1", "VolumeAttachment", "attachment", spec=attachment)
    remote = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "remote",
        "csi": {"driver": "disks.example.com", "volumeHandle": "remote"},
    }
    yield _object("v1", "PersistentVolume", "remote", spec=remote, status={"phase": "Available"})
    late = {"provisioner": "disks.example.com", "volumeBindingMode": names.WAIT_FOR_FIRST_CONSUMER}
    yield _object("storage.k8s.io/v1", "StorageClass", "remote", **late)
    shard = {"nodesDesired": ["n0"]}
    yield _object("shard.volcano.sh/v1alpha1", "NodeShard", "volcano", spec=shard)
    data = {"device-config.yaml": "nvidia:\n  deviceMemoryScaling: 1\n"}
    yield _object("v1", "ConfigMap", "volcano-vgpu-device-config", namespace="kube-system", data=data)
    extended = {"extendedResourceName": "example.com/gpu"}
    yield _object("resource.k8s.io/v1", "DeviceClass", "extended", spec=extended)


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
    "gated": {"schedulingGates": [{"name": "wait"}]},
}
"""What pods ask for that is no grant."""


def _plain_jobs(chance: random.Random) -> Iterator[Manifest]:
    """Of each kind of spec a pod that runs and one that waits, and gangs of all sorts."""
    for number, (kind, spec) in enumerate(SPECS.items()):
        name, labels = kind.replace(" ", "-"), {"app": "web" if number % 2 else "db", "rack": str(number % 3)}
        spec_queue = ("default", "heavy", "grouped")[number % 3]
        yield group(
            f"p-{name}", number % 2, queue=spec_queue, priorityClassName=chance.choice(("", "high", "low"))
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
    yield group("numa", 1, priorityClassName="high")
    yield numa_pod("numa-x-0", 3, group="numa", policy="restricted")
    yield numa_pod("numa-x-1", 4, group="numa", policy="single-numa-node")


@cache
def world_objects(seed: int) -> list[Object]:
    """All of it; what asks for volumes, devices, cards and CPUs has them, in part."""
    chance = random.Random(seed)
    cluster = cluster_objects(chance, nodes=3)
    for manifest in cluster:
        if manifest["kind"] == "Node":
            name = manifest["metadata"]["name"]
            manifest["status"]["allocatable"]["cpu"] = chance.choice(("10", "14"))
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


# -- what rules say, and where everybody would go


class ProbedWorld(LivingWorld):
    """A living world whose cycles decide nothing: they record what would be decided, and take it back."""

    def __init__(self, objects: Iterable[Object], text: str):
        self.record: dict[str, Any] = {}
        """What the last cycle that ran came to."""
        catalog = catalog_with((), (action("probe")(self._probe),))
        super().__init__(objects, lambda: Engine(load_policy(text, catalog), catalog))

    def probe(self) -> dict[str, Any]:
        outcome = self.cycle()
        assert outcome.lost is None, outcome.lost
        assert outcome.decisions is not None
        return self.record

    def _probe(self, session: Session) -> None:
        self.record = {}
        for part in (_of_queues, _of_jobs, _of_tasks, _of_victims, _of_trial):
            self.record.update(part(session))


def _of_queues(session: Session) -> Iterator[tuple[str, Any]]:
    rules = session.rules
    for queue_ in session.cluster.queues.values():
        yield f"queue {queue_.name}", (rules.queue_order(queue_), rules.overused(queue_))


def _of_jobs(session: Session) -> Iterator[tuple[str, Any]]:
    rules = session.rules
    for job in session.jobs():
        invalid = rules.job_valid(job)
        yield (
            f"job {job.key}",
            (rules.job_order(job), invalid is None, rules.job_ready(job), rules.job_pipelined(job)),
        )
        yield f"needs of {job.key}", (rules.tasks_needed(job), session.needs.least(job))
        yield f"unmet of {job.key}", str(session.requirements.unmet(job) is None)


def _of_tasks(session: Session) -> Iterator[tuple[str, Any]]:
    """Where each task that waits fits now and later, how good each node is, and why it fits on no other."""
    cluster, nodes = session.cluster, session.cluster.columns.nodes
    for task in _waiting(session):
        yield f"task {task.key}", (session.rules.task_order(task), _text(session.refused(task)))
        if task.job is not None and task.job.queue is not None:
            yield f"share of {task.key}", session.rules.allocatable(task.job.queue, task)
        evaluation = session.evaluation(task)
        own = cluster.reservations.own_room(task)
        for now in (True, False):
            scores = evaluation.group(task, now, None, own)
            yield f"nodes of {task.key}, {now=}", {nodes[row].name: score for row, score in scores.items()}
        verdict = evaluation.verdict(task, None, own)
        yield (
            f"verdict on {task.key}",
            (
                verdict.nodes,
                sorted((reason.text, reason.nodes, reason.curable) for reason in verdict.reasons),
            ),
        )
        yield f"reach of {task.key}", [nodes[row].name for row in np.flatnonzero(session.reachable(task))]


def _of_victims(session: Session) -> Iterator[tuple[str, Any]]:
    running = sorted(
        (task for task in session.cluster.tasks.values() if task.status is Status.RUNNING), key=_key_of
    )
    for task in _waiting(session)[::4]:
        for point in ("preemptable", "reclaimable"):
            choice = getattr(session.rules, point)(task, running)
            yield f"{point} for {task.key}", ([victim.key for victim in choice.victims], choice.by)


def _of_trial(session: Session) -> Iterator[tuple[str, Any]]:
    """Where tasks would go one after the other, and with which grants."""
    with session.rehearsal() as trial:
        for task in _waiting(session):
            place = session.place(task)
            if isinstance(place, Place):
                refused = (trial.allocate if place.now else trial.pipeline)(task, place.node)
                yield f"place of {task.key}", (place.node.name, place.now, str(refused), task.grants)


def _waiting(session: Session) -> list[Task]:
    """The tasks that wait, of each job one of a shape."""
    tasks = (task for task in session.cluster.tasks.values() if task.status is Status.PENDING and task.job)
    alike = {(task.job, task.shape): task for task in sorted(tasks, key=_key_of, reverse=True)}
    return sorted(alike.values(), key=_key_of)


def _text(verdict: Verdict | None) -> str:
    return verdict.text if verdict is not None else ""


def _key_of(task: Task) -> str:
    return task.key


# -- one change after the other


def changed(
    world: ProbedWorld, kind: type[Object], chance: random.Random, seed: int
) -> Iterator[tuple[Path, Object]]:
    """An object of a kind for every so manyth field, with another value in it."""
    mutator = Mutator(world.objects.values(), chance)
    for path in mutable_fields(kind)[seed::SEEDS]:
        known = of_kind(world, kind)
        deepest = max(mutator.depth(obj, path) for obj in known)
        obj = mutator.mutated(
            chance.choice([obj for obj in known if mutator.depth(obj, path) == deepest]), path
        )
        if is_usable(obj):
            yield path, obj


def of_kind(world: ProbedWorld, kind: type[Object]) -> list[Object]:
    return sorted((obj for obj in world.objects.values() if type(obj) is kind), key=lambda obj: obj.key)


def is_usable(obj: Object) -> bool:
    try:
        Intake().put(obj)
    except BadObject:
        return False
    return True


def put(world: ProbedWorld, obj: Object) -> None:
    """A pod does not leave its node and wait again: it is deleted, and another comes."""
    before = world.objects.get((type(obj), obj.key))
    if isinstance(obj, Pod) and isinstance(before, Pod) and before.spec.node_name and not obj.spec.node_name:
        world.drop(before)
    world.put(obj)


def check(world: ProbedWorld, text: str, what: str) -> None:
    """What the model comes to is what one comes to that is made of the same objects."""
    fresh = ProbedWorld(world.objects.values(), text)
    fresh.now, fresh.intake.cluster.memory = world.now, deepcopy(world.intake.cluster.memory)
    live, made = world.probe(), fresh.probe()
    missed = {
        key: (live.get(key), made.get(key)) for key in {**live, **made} if live.get(key) != made.get(key)
    }
    assert not missed, what


def world_of(kind: type[Object], seed: int) -> tuple[ProbedWorld, str, random.Random]:
    chance = random.Random(f"{kind.__name__} {seed}")
    text = POLICIES[chance.choice(list(POLICIES))]
    return ProbedWorld(world_objects(chance.randrange(WORLDS)), text), text, chance


every_kind = pytest.mark.parametrize("kind", MUTABLE, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("seed", range(SEEDS))
@every_kind
def test_no_cache_misses_a_field_that_changes(kind: type[Object], seed: int) -> None:
    world, text, chance = world_of(kind, seed)
    for path, obj in changed(world, kind, chance, seed):
        world.probe()
        before = world.objects[type(obj), obj.key]
        put(world, obj)
        check(world, text, f"{obj.key}: {'.'.join(path)}: {before} -> {obj}")
        put(world, before)


@pytest.mark.parametrize("seed", range(3))
@every_kind
def test_no_cache_misses_an_object_that_goes_or_comes(kind: type[Object], seed: int) -> None:
    world, text, chance = world_of(kind, seed)
    known = of_kind(world, kind)
    some = chance.sample(known, min(len(known), 4))
    world.probe()
    for obj in some:
        world.drop(obj)
        check(world, text, f"{obj.key} goes")
    for obj in some:
        world.put(obj)
        check(world, text, f"{obj.key} comes")
