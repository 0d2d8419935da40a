"""The makers of objects for tests, as manifests; policies as text; and what a run decided by bare names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import fields

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.manifests.object_defaults import FIRST_CREATION
from stromboli.api.types.meta import Record
from stromboli.api.types.native_group import NativePodGroupSpec
from stromboli.api.types.scheduling import PodGroupSpec, QueueSpec
from stromboli.engine.decisions import Event
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.simulator.job_manifests import merged
from stromboli.testing import Result, World

Manifest = dict[str, Any]
VOLCANO = "scheduling.volcano.sh/v1beta1"
EPOCH = FIRST_CREATION.timestamp()
"""The moment that `created` counts from."""


def policy(
    actions: str, *plugins: str | tuple[str, Mapping[str, Any]] | Manifest, **configurations: Any
) -> str:
    """The text of a policy: names of plugins with `|` between tiers, a plugin with arguments, or its whole entry.

    policy("enqueue, preempt", "gang | predicates", ("binpack", {"binpack.weight": 2}), preempt={"doNoHarm": True})
    """
    tiers: list[list[Any]] = [[]]
    for plugin in plugins:
        if isinstance(plugin, str):
            first, *others = [[{"name": name} for name in tier.split()] for tier in plugin.split("|")]
            tiers[-1] += first
            tiers += others
        else:
            tiers[-1].append(
                plugin if isinstance(plugin, dict) else {"name": plugin[0], "arguments": plugin[1]}
            )
    text: Manifest = {"actions": actions, "tiers": [{"plugins": tier} for tier in tiers]}
    if configurations:
        text["configurations"] = [
            {"name": action, "arguments": arguments} for action, arguments in configurations.items()
        ]
    return json.dumps(text)


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: float | None = None,
    spec: Mapping[str, Any] | None = None,
    **sizes: str | int,
) -> Manifest:
    """A node of 4 CPUs, 64Gi and 110 pods unless given."""
    resources = _resources({"cpu": 4, "memory": "64Gi", "pods": 110, **sizes})
    meta = _metadata(name, {names.HOSTNAME: name, **(labels or {})}, annotations, created)
    status = {"allocatable": resources, "capacity": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": dict(spec or {}), "status": status}


def queue(
    name: str = "default",
    *,
    state: str = "Open",
    annotations: Mapping[str, str] | None = None,
    created: float | None = None,
    **spec: Any,
) -> Manifest:
    return {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": _metadata(name, None, annotations, created),
        "spec": _known(QueueSpec, spec),
        "status": {"state": state},
    }


def group(
    name: str,
    minimum: int = 0,
    *,
    phase: str = "Inqueue",
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    created: float | None = None,
    **spec: Any,
) -> Manifest:
    """A PodGroup that is admitted unless its phase is given; further arguments are its spec."""
    return {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": _metadata(name, None, annotations, created, namespace),
        "spec": {"minMember": minimum, **_known(PodGroupSpec, spec)},
        "status": {"phase": phase},
    }


def hyper_node(
    name: str,
    tier: int = 1,
    *,
    nodes: Iterable[str] = (),
    children: Iterable[str] = (),
    tier_name: str = "",
    labels: Mapping[str, str] | None = None,
) -> Manifest:
    """A HyperNode with these nodes and HyperNodes, by name, as its members."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
    members += [{"type": "HyperNode", "selector": {"exactMatch": {"name": child}}} for child in children]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"tier": tier, "tierName": tier_name, "members": members},
    }


def discovered(name: str, key: str, value: str, tier: int = 1, **terms: Any) -> Manifest:
    """A HyperNode that the controller discovered from the value of a label of nodes."""
    labels = {names.TOPOLOGY_SOURCE: "label", key: value}
    return hyper_node(name, tier, tier_name=key, labels=labels, **terms)


def native_group(
    name: str,
    minimum: int = 0,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    version: str = "v1alpha2",
    created: float | None = None,
    **spec: Any,
) -> Manifest:
    """A PodGroup of Kubernetes' own; without a minimum its pods are no gang."""
    meta = _metadata(name, labels, annotations, created, namespace)
    policy: Manifest = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"generation": 1, **meta},
        "spec": {"schedulingPolicy": policy, **_known(NativePodGroupSpec, spec)},
    }


def pod(
    name: str,
    group: str = "",
    *,
    on: str = "",
    phase: str = "",
    role: str = "",
    native: str = "",
    namespace: str = "default",
    scheduler: str = names.SCHEDULER_NAME,
    priority: int | None = None,
    gates: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    terminating: bool = False,
    created: float | None = None,
    **more: Any,
) -> Manifest:
    """A pod of a group of Volcano's or of Kubernetes' own (`native`), running on a node if given.

    `metadata`, `spec` and `status` are merged into the manifest; what is left are its requests, one CPU unless given.
    """
    extra = {key: more.pop(key) for key in ("metadata", "spec", "status") if key in more}
    given = {names.GROUP_NAME: group, names.TASK_SPEC: role}
    notes = {key: value for key, value in given.items() if value} | dict(annotations or {})
    meta = _metadata(name, labels, notes, created, namespace)
    if terminating:
        meta["deletionTimestamp"] = "2026-11-01T12:00:30Z"
    resources = {"requests": _resources({"cpu": 1, **more})}
    spec: Manifest = {
        "schedulerName": scheduler,
        "schedulingGates": [{"name": gate} for gate in gates],
        "containers": [{"name": "main", "image": "busybox", "resources": resources}],
    }
    if on:
        spec["nodeName"] = on
    if priority is not None:
        spec["priority"] = priority
    if native:
        spec["schedulingGroup"] = {"podGroupName": native}
    status = {"phase": phase or ("Running" if on else "Pending")}
    base = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
    return merged(base, extra)


def sub_group_policy(
    name: str, *keys: str, size: int = 1, least: int = 0, selector: Mapping[str, str] | None = None
) -> Manifest:
    """Pods that share the values of these labels belong together."""
    policy: Manifest = {"name": name, "matchLabelKeys": keys, "subGroupSize": size, "minSubGroups": least}
    return policy if selector is None else {**policy, "labelSelector": {"matchLabels": dict(selector)}}


def priority_class(name: str, value: int, *, default: bool = False) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


def quota(name: str, hard: dict[str, str], used: dict[str, str], namespace: str = "default") -> Manifest:
    meta = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta,
        "status": {"hard": hard, "used": used},
    }


def binding(pod: str, namespace: str, node: str) -> Manifest:
    meta = {"name": pod, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node}}


def _metadata(
    name: str,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    created: float | None,
    namespace: str = "",
) -> Manifest:
    meta: Manifest = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    if namespace:
        meta["namespace"] = namespace
    if created is not None:
        meta["creationTimestamp"] = (FIRST_CREATION + timedelta(seconds=created)).isoformat()
    return meta


def _known(type: type[Record], spec: Manifest) -> Manifest:
    """A misspelled field would go unnoticed: decoding passes over what it does not know."""
    unknown = spec.keys() - {field.encode_name for field in fields(type)}
    assert not unknown, unknown
    return spec


def _resources(given: Mapping[str, Any]) -> dict[str, str]:
    amounts = {names.NVIDIA_GPU if name == "gpu" else name: amount for name, amount in given.items()}
    return {name: str(amount) for name, amount in amounts.items() if amount}


def decoded(manifest: Manifest) -> Any:
    """The object that a manifest describes, with the uid that World would give it, for what takes no manifests."""
    obj = decode(manifest)
    assert obj is not None, manifest
    obj.metadata.uid = obj.metadata.uid or f"{type(obj).__name__}/{obj.key}"
    return obj


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


def job_named(cluster: Cluster, name: str) -> Job:
    return next(job for job in cluster.jobs.values() if job.name == name)


def task_named(cluster: Cluster, name: str) -> Task:
    return next(task for task in cluster.tasks.values() if task.name == name)
