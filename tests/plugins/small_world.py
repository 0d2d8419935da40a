"""A world in two or three lines: short manifests, a policy, and an engine that runs cycles over them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stromboli.api.decoding import decode
from stromboli.api.manifests.object_defaults import Priorities, case_defaults, implied_queues
from stromboli.api.types.meta import Object
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Event
from stromboli.engine.placement.node_functions import Nodes
from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.policy.policy import Policy, load_policy

CATALOG = load_catalog()
NOW = 1793534400.0
Manifest = dict[str, Any]


def policy(actions: str, *plugins: str | tuple[str, dict[str, Any]], **switches: Any) -> Policy:
    """These plugins in one tier, some with arguments; switches go to the last one."""
    entries: list[dict[str, Any]] = [
        {"name": one} if isinstance(one, str) else {"name": one[0], "arguments": one[1]} for one in plugins
    ]
    entries[-1].update(switches)
    return load_policy(json.dumps({"actions": actions, "tiers": [{"plugins": entries}]}), CATALOG)


def node(name: str, labels: dict[str, str] | None = None, **sizes: str) -> Manifest:
    allocatable = {"pods": "110", "memory": "64Gi", **_resources(sizes)}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"allocatable": allocatable},
    }


def queue(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {"kind": "Queue", "metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}


def group(name: str, phase: str = "", created: str = "", **spec: Any) -> Manifest:
    """A PodGroup of one unless said otherwise; `notes` are its annotations."""
    meta = {"name": name, "annotations": spec.pop("notes", {}), "namespace": spec.pop("namespace", "default")}
    if created:
        meta["creationTimestamp"] = created
    return {
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 1, **spec},
        "status": {"phase": phase},
    }


def pod(name: str, group: str = "", on: str = "", **more: Any) -> Manifest:
    """A pod, running where it says; `notes` are its annotations, what is left its requests."""
    notes = {"scheduling.k8s.io/group-name": group, **more.pop("notes", {})}
    gates = [{"name": gate} for gate in more.pop("gates", ())]
    scheduler = more.pop("scheduler", "volcano")
    containers = [{"name": "main", "resources": {"requests": _resources(more)}}]
    spec = {"containers": containers, "schedulingGates": gates, "schedulerName": scheduler}
    if on:
        spec["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    return {"kind": "Pod", "metadata": {"name": name, "annotations": notes}, "spec": spec, "status": status}


def quota(name: str, hard: dict[str, str], used: dict[str, str], namespace: str = "default") -> Manifest:
    meta = {"name": name, "namespace": namespace}
    return {"kind": "ResourceQuota", "metadata": meta, "status": {"hard": hard, "used": used}}


def _resources(given: dict[str, str]) -> dict[str, str]:
    return {"nvidia.com/gpu" if name == "gpu" else name: amount for name, amount in given.items()}


@dataclass
class World:
    """A cluster that a policy schedules; objects may be put and dropped between cycles."""

    policy: Policy
    intake: Intake = field(default_factory=Intake)
    count: int = 0

    def __post_init__(self) -> None:
        self.engine = Engine(self.policy, CATALOG)
        for one in implied_queues([]):
            self.intake.put(one)

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def put(self, *manifests: Manifest) -> World:
        for manifest in manifests:
            self.intake.put(self.made(manifest))
        return self

    def drop(self, manifest: Manifest) -> World:
        self.intake.drop(self.made(manifest))
        return self

    def made(self, manifest: Manifest) -> Object:
        thing = decode(manifest)
        assert thing is not None
        self.count += 1
        case_defaults(thing, self.count, Priorities())
        return thing

    def cycle(self, now: float = NOW) -> Outcome:
        outcome = self.engine.cycle(self.cluster, now)
        assert outcome.lost is None, outcome.lost
        return outcome

    def plugin(self, name: str) -> Any:
        return next(one for one in self.engine.rules.plugins if one.name == name)

    def job(self, name: str) -> Job:
        return next(job for job in self.cluster.jobs.values() if job.name == name)

    def task(self, name: str) -> Task:
        return next(task for task in self.cluster.tasks.values() if task.name == name)

    def phases(self) -> dict[str, str]:
        return {job.name: job.phase for job in self.cluster.jobs.values() if job.group}

    def scores(self, name: str, task: str) -> dict[str, float]:
        """What one plugin gives each node for a task, as things stand."""
        plugin: Plugin = self.plugin(name)
        nodes, total = Nodes(self.cluster.columns), 0.0
        for one in plugin.node_scores(self.task(task)):
            total = total + one.score(self.task(task), nodes)
        column = total + nodes.zeros()
        return {node.name: float(column[node.row]) for node in self.cluster.columns.nodes}

    def refusals(self, name: str, task: str) -> dict[str, str]:
        """The reason for which one plugin refuses each node, as things stand; empty where it does not."""
        plugin: Plugin = self.plugin(name)
        nodes, found = Nodes(self.cluster.columns), dict[str, str]()
        for one in plugin.node_filters(self.task(task)):
            for check in one.checks(self.task(task), nodes):
                for node in self.cluster.columns.nodes:
                    if not check.passes[node.row]:
                        found.setdefault(node.name, check.reason)
        return {node.name: found.get(node.name, "") for node in self.cluster.columns.nodes}


def binds(outcome: Outcome) -> dict[str, str]:
    return {one.name: one.node for one in outcome.decisions if isinstance(one, Bind)}


def events(outcome: Outcome, reason: str = "Unschedulable", type: str = "Normal") -> dict[str, str]:
    """Messages of the events with this reason and type, by object."""
    told = (one for one in outcome.decisions if isinstance(one, Event))
    return {one.name: one.message for one in told if one.reason == reason and one.type == type}
