"""What is there before anybody asks: namespaces, priority classes, roles, and the kinds that were defined before."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.auth.identity import SYSTEM
from stromboli.embedded.kinds.status_errors import Refusal
from stromboli.embedded.kinds.volcano_definitions import volcano_definitions
from stromboli.embedded.objects.object_verbs import Objects, Options
from stromboli.embedded.rbac import bootstrap_policy

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
SCHEDULING = "scheduling.k8s.io/v1"
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved."),
)
OPTIONS = Options(SYSTEM, manager="stromboli")
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


async def bootstrap(objects: Objects, crds: bool) -> None:
    """Make what is missing; on data from before, that is nothing."""
    for record in objects.store.all(DEFINITIONS):
        objects.registry.define(record.object())
    for name in NAMESPACES:
        await _ensure(objects, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value, description in PRIORITY_CLASSES:
        await _ensure(
            objects,
            {
                "apiVersion": SCHEDULING,
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": description,
            },
        )
    for _, content in bootstrap_policy():
        await _ensure(objects, content)
    for content in volcano_definitions() if crds else ():
        await _ensure(objects, content)
    await objects.store.settled()


async def _ensure(objects: Objects, content: dict[str, Any], namespace: str = "") -> None:
    kind = objects.registry.by_kind(content["apiVersion"], content["kind"])
    assert kind is not None, content
    if objects.store.get(kind.id, namespace, content["metadata"]["name"]) is None:
        try:
            await objects.create(kind, namespace, content, OPTIONS)
        except Refusal as refusal:
            raise RuntimeError(f"{content['kind']} {content['metadata']['name']}: {refusal}") from refusal
