"""The objects that a cluster starts with: namespaces, priority classes, roles; and the kinds of stored definitions."""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.api.schemas.volcano_definitions import volcano_definitions
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds.kind_rules import DEFINITIONS
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.rbac.bootstrap_roles import bootstrap_policy

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved."),
)


async def bootstrap(objects: Objects, crds: bool) -> None:
    """Register stored definitions, and create what is missing."""
    for record in objects.store.list(DEFINITIONS):
        objects.registry.register_definition(record.object())
    for name in NAMESPACES:
        await _ensure(objects, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value, description in PRIORITY_CLASSES:
        await _ensure(
            objects,
            {
                "apiVersion": "scheduling.k8s.io/v1",
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
    await objects.store.wait_committed()


async def ensure_queues(objects: Objects) -> None:
    """Create the queues that Volcano's scheduler would; without them no job is admitted."""
    for name in (names.ROOT_QUEUE, names.DEFAULT_QUEUE):
        await _ensure(
            objects,
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": {"reclaimable": name != names.ROOT_QUEUE, "weight": 1},
            },
        )
    await objects.store.wait_committed()


async def _ensure(objects: Objects, content: dict[str, Any]) -> None:
    kind = objects.registry.by_kind(content["apiVersion"], content["kind"])
    assert kind is not None, content
    if objects.store.get(kind.id, "", content["metadata"]["name"]) is None:
        try:
            await objects.create(WriteRequest(kind, "", "", APISERVER_USER, manager="stromboli"), content)
        except StatusError as error:
            raise RuntimeError(f"{content['kind']} {content['metadata']['name']}: {error}") from error
