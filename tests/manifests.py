"""Short manifests for tests, policies as text, and what a run decided by bare names."""

from __future__ import annotations

import json
from typing import Any

from stromboli.engine.decisions import Event
from stromboli.model.job import Job
from stromboli.simulator.job_manifests import merged
from stromboli.testing import Result, World

Manifest = dict[str, Any]


def policy(actions: str, *plugins: str | tuple[str, dict[str, Any]], **switches: Any) -> str:
    """The text of a policy with these plugins in one tier, some with arguments; switches go to the last one."""
    entries: list[dict[str, Any]] = [
        {"name": plugin} if isinstance(plugin, str) else {"name": plugin[0], "arguments": plugin[1]}
        for plugin in plugins
    ]
    entries[-1].update(switches)
    return json.dumps({"actions": actions, "tiers": [{"plugins": entries}]})


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
    """A PodGroup with minMember 1 unless given; further arguments are its spec, besides annotations and namespace."""
    meta = {
        "name": name,
        "annotations": spec.pop("annotations", {}),
        "namespace": spec.pop("namespace", "default"),
    }
    if created:
        meta["creationTimestamp"] = created
    return {
        "kind": "PodGroup",
        "metadata": meta,
        "spec": {"minMember": 1, **spec},
        "status": {"phase": phase},
    }


def pod(name: str, group: str = "", on: str = "", **more: Any) -> Manifest:
    """A pod of a group, running on a node if given.

    `metadata`, `spec` and `status` are merged into the manifest; `annotations`, `gates` and `scheduler` are short for
    parts of them, and what is left are its requests.
    """
    extra = {key: more.pop(key) for key in ("metadata", "spec", "status") if key in more}
    annotations = {"scheduling.k8s.io/group-name": group, **more.pop("annotations", {})}
    spec: Manifest = {
        "schedulingGates": [{"name": gate} for gate in more.pop("gates", ())],
        "schedulerName": more.pop("scheduler", "volcano"),
    }
    if on:
        spec["nodeName"] = on
    requests = {name: str(amount) for name, amount in _resources(more).items() if amount}
    spec["containers"] = [{"name": "main", "resources": {"requests": requests}}]
    status = {"phase": "Running" if on else "Pending"}
    base = {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
        "status": status,
    }
    return merged(base, extra)


TERMINATING = {"deletionTimestamp": "2026-11-01T12:00:30Z"}
"""Metadata of a pod that is being deleted."""


def quota(name: str, hard: dict[str, str], used: dict[str, str], namespace: str = "default") -> Manifest:
    meta = {"name": name, "namespace": namespace}
    return {"kind": "ResourceQuota", "metadata": meta, "status": {"hard": hard, "used": used}}


def _resources(given: dict[str, Any]) -> dict[str, Any]:
    return {"nvidia.com/gpu" if name == "gpu" else name: amount for name, amount in given.items()}


def binds(result: Result) -> dict[str, str]:
    """Node by the bare name of each pod that was bound."""
    return {pod.partition("/")[2]: node for pod, node in result.binds.items()}


def events(result: Result, reason: str = "Unschedulable", type: str = "Normal") -> dict[str, str]:
    """Messages of the events with this reason and type, by object."""
    recorded = (decision for decision in result.decisions if isinstance(decision, Event))
    return {event.name: event.message for event in recorded if event.reason == reason and event.type == type}


def phases(world: World) -> dict[str, str]:
    """The phase of each PodGroup by its bare name."""
    return {job.name: job.phase for job in world.cluster.jobs.values() if job.group}


def job_named(world: World, name: str) -> Job:
    return next(job for job in world.cluster.jobs.values() if job.name == name)
