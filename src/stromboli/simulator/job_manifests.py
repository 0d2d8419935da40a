"""A job in one call: the manifests of its PodGroup and its pods."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from stromboli.api import names
from stromboli.policy.policy_problems import suggestion
from stromboli.simulator.cluster_notation import Manifest

Amount = int | float | str


class Terms(TypedDict, total=False):
    """What may be said of a job."""

    pods: int
    """How many; 1 unless given."""
    minimum: int
    """How many must start together; all unless given."""
    queue: str
    namespace: str
    cpu: Amount
    """Of each pod, as are memory, gpu and resources; a pod that asks for nothing is best-effort."""
    memory: Amount
    gpu: Amount
    resources: Mapping[str, Amount]
    priority: int
    """Of the job and its pods, by a PriorityClass `priority-N`."""
    roles: Mapping[str, int]
    """How many pods of each role; instead of `pods`."""
    role_minimums: Mapping[str, int]
    min_resources: Mapping[str, Amount]
    running_on: str | Sequence[str]
    """Nodes on which its first pods run already."""
    phase: str
    labels: Mapping[str, str]
    """Of its pods."""
    annotations: Mapping[str, str]
    """Of its PodGroup and its pods."""
    spec: Mapping[str, Any]
    """More fields of every pod's spec."""
    group: Mapping[str, Any]
    """More fields of the PodGroup's spec."""


def priority_class_name(value: int) -> str:
    return f"priority-{value}".replace("--", "-minus-")


def priority_class(value: int) -> Manifest:
    """A PriorityClass of that value."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class_name(value)},
        "value": value,
    }


def job_manifests(name: str, **terms: Unpack[Terms]) -> list[Manifest]:
    """A PodGroup and its pods `NAME-0`, `NAME-1`, ..."""
    for term in terms.keys() - Terms.__annotations__.keys():
        raise TypeError(f"job {name}: unknown term {term!r}{suggestion(term, Terms.__annotations__)}")
    roles = [role for role, count in terms.get("roles", {}).items() for _ in range(count)]
    members = roles or [""] * terms.get("pods", 1)
    nodes = nodes_of(terms)
    if len(nodes) > len(members):
        raise ValueError(f"job {name}: running_on names {len(nodes)} nodes for {len(members)} pods")
    pods = [_pod(name, index, role, terms) for index, role in enumerate(members)]
    for pod, node in zip(pods, nodes, strict=False):
        pod["spec"]["nodeName"] = node
        pod["status"]["phase"] = names.POD_RUNNING
    return [_group(name, len(members), bool(nodes), terms), *pods]


def nodes_of(terms: Terms) -> list[str]:
    """Where its first pods run already."""
    running_on = terms.get("running_on", ())
    return running_on.split() if isinstance(running_on, str) else list(running_on)


def _group(name: str, size: int, runs: bool, terms: Terms) -> Manifest:
    spec = {
        "minMember": terms.get("minimum", size),
        "queue": terms.get("queue", ""),
        "minTaskMember": dict(terms.get("role_minimums", {})),
    }
    if "priority" in terms:
        spec["priorityClassName"] = priority_class_name(terms["priority"])
    if "min_resources" in terms:
        spec["minResources"] = {key: str(amount) for key, amount in terms["min_resources"].items()}
    phase = terms.get("phase", names.GROUP_RUNNING if runs else "")
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": terms.get("namespace", names.DEFAULT_NAMESPACE),
            "annotations": dict(terms.get("annotations", {})),
        },
        "spec": merged(spec, terms.get("group", {})),
        "status": {"phase": phase},
    }


def _pod(job: str, index: int, role: str, terms: Terms) -> Manifest:
    annotations = {names.GROUP_NAME: job, **terms.get("annotations", {})}
    if role:
        annotations[names.TASK_SPEC] = role
    spec: Manifest = {
        "schedulerName": names.SCHEDULER_NAME,
        "containers": [{"name": "main", "resources": {"requests": _requests(terms)}}],
    }
    if "priority" in terms:
        spec["priorityClassName"] = priority_class_name(terms["priority"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-{index}",
            "namespace": terms.get("namespace", names.DEFAULT_NAMESPACE),
            "labels": dict(terms.get("labels", {})),
            "annotations": annotations,
        },
        "spec": merged(spec, terms.get("spec", {})),
        "status": {"phase": names.POD_PENDING},
    }


def _requests(terms: Terms) -> dict[str, str]:
    """A resource list; what is zero is not asked for."""
    wanted = {
        names.CPU: terms.get("cpu", 0),
        names.MEMORY: terms.get("memory", 0),
        names.NVIDIA_GPU: terms.get("gpu", 0),
        **terms.get("resources", {}),
    }
    return {name: str(amount) for name, amount in wanted.items() if amount not in (0, "0", "")}


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> Manifest:
    """The manifest with more fields, mapping into mapping."""
    result = dict(base)
    for key, value in more.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            result[key] = merged(inner, value)
        else:
            result[key] = copy.deepcopy(value)
    return result
