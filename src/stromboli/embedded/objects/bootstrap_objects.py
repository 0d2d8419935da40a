"""The objects that a cluster starts with: namespaces, priority classes, roles; and the kinds of stored definitions."""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.api.schemas.volcano_definitions import volcano_definitions
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.builtin.custom_resource_definition import DEFINITIONS
from stromboli.embedded.kinds.builtin.persistent_volume_claim import default_class
from stromboli.embedded.kinds.builtin.storage_class import PROVISIONER
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.rbac.bootstrap_roles import bootstrap_policy
from stromboli.embedded.time_slices import TimeSlices

STORAGE_CLASS = "standard"
STORAGE_CLASS_MADE = "stromboli.sh/storage-class-made"
"""Annotation of the namespace kube-system: the default storage class was made."""
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
PRIORITY_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved."),
)


async def bootstrap(objects: Objects, crds: bool, storage_class: bool = False) -> None:
    """Register stored definitions, and create what is missing."""
    for record in objects.store.list(DEFINITIONS):
        with objects.store.reading(record):
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
    if crds:
        await _bootstrap_volcano(objects)
    if storage_class:
        await _bootstrap_storage(objects)
    await objects.store.wait_committed()


async def _bootstrap_volcano(objects: Objects) -> None:
    """Volcano's kinds, and the queues that its scheduler would create; without them no job is admitted."""
    slices = TimeSlices()
    for content in volcano_definitions():
        if not await _ensure(objects, content):
            _update_definition(objects, content)
        if slices.due:
            await slices.pause()
    await objects.store.wait_committed()
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


async def _bootstrap_storage(objects: Objects) -> None:
    """A default storage class, once: somebody who deletes it does not want it back."""
    namespace = objects.store.get("namespaces", "", "kube-system")
    assert namespace is not None
    if STORAGE_CLASS_MADE in (namespace.object()["metadata"].get("annotations") or {}):
        return
    defaults = {} if default_class(objects.store) else {"annotations": {names.DEFAULT_STORAGE_CLASS: "true"}}
    await _ensure(
        objects,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS, **defaults},
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    made = {STORAGE_CLASS_MADE: STORAGE_CLASS}

    def mark(content: dict[str, Any]) -> None:
        meta = content["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), **made}

    objects.system_update(namespace, mark)


def _update_definition(objects: Objects, content: dict[str, Any]) -> None:
    """Bring a definition that an earlier release stored up to date, unless somebody has changed it since."""
    kind = objects.registry.by_id(DEFINITIONS)
    record = objects.store.get(DEFINITIONS, "", content["metadata"]["name"])
    assert kind is not None
    assert record is not None, content
    object_schemas.normalize(kind, content)
    kind.strategy.prepare_for_create(kind, content)

    def update(stored: dict[str, Any]) -> None:
        if stored["metadata"]["generation"] == 1 and stored["spec"] != content["spec"]:
            stored["spec"], stored["status"] = content["spec"], content["status"]

    objects.system_update(record, update)


async def _ensure(objects: Objects, content: dict[str, Any]) -> bool:
    """Whether the object had to be created."""
    kind = objects.registry.by_kind(content["apiVersion"], content["kind"])
    assert kind is not None, content
    if objects.store.get(kind.id, "", content["metadata"]["name"]) is not None:
        return False
    try:
        await objects.create(WriteRequest(kind, "", "", APISERVER_USER, manager="stromboli"), content)
    except StatusError as error:
        raise RuntimeError(f"{content['kind']} {content['metadata']['name']}: {error}") from error
    return True
