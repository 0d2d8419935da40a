"""The kinds that commands show and change, and how users call them."""

from __future__ import annotations

from typing import Any

from stromboli.kube.api_resources import EVENTS, LEASES, Resource

Manifest = dict[str, Any]
"""An object as JSON has it."""

JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
CRON_JOBS = Resource("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")
COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")
JOB_FLOWS = Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
JOB_TEMPLATES = Resource("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate")
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
HYPER_NODES = Resource("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
MUTATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS = MUTATING_WEBHOOKS._replace(
    plural="validatingwebhookconfigurations", kind="ValidatingWebhookConfiguration"
)

__all__ = [
    "COMMANDS",
    "CONFIG_MAPS",
    "CRON_JOBS",
    "EVENTS",
    "HYPER_NODES",
    "JOBS",
    "JOB_FLOWS",
    "JOB_TEMPLATES",
    "LEASES",
    "MUTATING_WEBHOOKS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "POD_GROUPS",
    "PRIORITY_CLASSES",
    "QUEUES",
    "VALIDATING_WEBHOOKS",
    "Manifest",
    "full_name",
    "kind_names",
    "name_of",
    "namespace_of",
]


def full_name(resource: Resource, name: str) -> str:
    """As kubectl writes it: `job.batch.volcano.sh/train`, `pod/train-worker-0`."""
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name}"


def kind_names(resource: Resource) -> frozenset[str]:
    """What a kind may be called: `job`, `jobs`, `job.batch.volcano.sh`, `jobs.batch.volcano.sh`."""
    plain = resource.kind.lower(), resource.plural
    return frozenset((*plain, *(f"{name}.{resource.group}" for name in plain if resource.group)))


def name_of(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("name") or "")


def namespace_of(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("namespace") or "")
