"""Owner references: that of an object's controller, and the one that a controller writes into what it creates."""

from __future__ import annotations

from typing import Any

from stromboli.api.types.cronjob import CronJob
from stromboli.api.types.jobflow import JobFlow
from stromboli.api.types.meta import Object, OwnerReference
from stromboli.api.types.volcano_job import Job

BATCH_VERSION, FLOW_VERSION = "batch.volcano.sh/v1alpha1", "flow.volcano.sh/v1alpha1"
_API_VERSIONS: dict[type[Object], str] = {Job: BATCH_VERSION, CronJob: BATCH_VERSION, JobFlow: FLOW_VERSION}


def controller_reference(owner: Job | CronJob | JobFlow) -> dict[str, Any]:
    """The reference that makes `owner` the controller of an object, which is garbage collected with it."""
    return {
        "apiVersion": _API_VERSIONS[type(owner)],
        "kind": type(owner).__name__,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that controls an object."""
    for owner in obj.metadata.owner_references:  # no generator: this is called for every pod of an owner
        if owner.controller:
            return owner
    return None


def controller_uid(obj: Object) -> tuple[str, ...]:
    """The uid of the controlling owner, in a tuple; an empty one if there is none."""
    return tuple(owner.uid for owner in obj.metadata.owner_references if owner.controller)


def owned_by(obj: Object) -> tuple[tuple[str, str], ...]:
    """Index function of stores: the controlling owner, as `owner_key` names it.

    An owner is in the namespace of what it owns: others may be claimed by whoever writes the object.
    """
    return tuple((obj.namespace, uid) for uid in controller_uid(obj))


def owner_key(owner: Object) -> tuple[str, str]:
    """Under which an index by `owned_by` has what an owner controls."""
    return owner.namespace, owner.metadata.uid


def controller_keys(kind: type[Job | CronJob | JobFlow], *objects: Object | None) -> set[str]:
    """`namespace/name` of the owners of that kind that control any of the objects."""
    return {
        f"{obj.namespace}/{owner.name}"
        for obj in objects
        if obj is not None
        for owner in obj.metadata.owner_references
        if owner.controller and (owner.api_version, owner.kind) == (_API_VERSIONS[kind], kind.__name__)
    }
