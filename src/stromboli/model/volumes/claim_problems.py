"""Claims that keep a pod from every node: missing, lost, terminating or unbound (spec 04 2.8, 2.10, 2.11)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.resources.quantity import format_bytes
from stromboli.model.remedy import Remedy, Why
from stromboli.model.volumes.claim_kind import kind_of
from stromboli.model.volumes.task_volumes import claims_of_task
from stromboli.model.volumes.volume_claims import binds_late, class_name, is_bound

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolumeClaim
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.task import Task

MAX_IN_SELECTOR = 64
"""Labels, expressions and their values in the selector of a claim: each is compared with many volumes."""
CREATE_CLAIM = Remedy(
    "create it", "create it, or add it to the files: kubectl get -A -o yaml pvc,pv,storageclasses"
)
"""What helps where a claim, a volume or a class is missing: of a cluster from files, it may be missing only there."""


def zone_problem(objects: LookupObjects, task: Task) -> Why | None:
    """Why the zones of a pod's volumes are unknown."""
    for reference in task.volume_claims:
        if not reference.ephemeral and (problem := _unknown_zone(objects, task.namespace, reference.name)):
            return problem
    return None


def _unknown_zone(objects: LookupObjects, namespace: str, name: str) -> Why | None:
    if not name:
        return Why(names.CLAIM_WITHOUT_NAME)
    claim = objects.claims.get(f"{namespace}/{name}")
    if claim is None:
        return _missing(names.CLAIM_NOT_FOUND, name)
    volume = claim.spec.volume_name
    if volume:
        return None if volume in objects.volumes else _missing(names.VOLUME_NOT_FOUND, volume)
    name_of_class = class_name(claim)
    if not name_of_class:
        return _unbound(objects, names.CLAIM_WITHOUT_VOLUME_OR_CLASS)
    storage_class = objects.storage_classes.get(name_of_class)
    if storage_class is None:
        return _missing(names.STORAGE_CLASS_NOT_FOUND, name_of_class)
    if not storage_class.volume_binding_mode:
        return Why(names.CLASS_WITHOUT_BINDING_MODE.format(name=name_of_class))
    return None if binds_late(storage_class) else _unbound(objects, names.VOLUME_WITHOUT_NAME)


def _missing(text: str, name: str) -> Why:
    return Why(text.format(name=name), CREATE_CLAIM)


def _unbound(objects: LookupObjects, text: str) -> Why:
    """A claim that is not bound, and that no node needs to be selected for."""
    return Why(text, Remedy(partial(_binding_remedy, objects)))


def _binding_remedy(objects: LookupObjects, task: Task) -> str:
    """What the first claim of a task that should be bound already waits for."""
    for claim in claims_of_task(objects, task):
        storage_class = objects.storage_classes.get(name := class_name(claim))
        if is_bound(claim) or (storage_class is not None and binds_late(storage_class)):
            continue
        look = f"kubectl describe pvc {claim.name}"
        if claim.spec.volume_name:
            return f"claim {claim.name} waits to be bound to volume {claim.spec.volume_name}: {look}"
        if not name:
            return (
                f"claim {claim.name} has no storage class and no default applies: recreate it with "
                "storageClassName, or create a PersistentVolume without a class for it"
            )
        if storage_class is None:
            return f"claim {claim.name} is of class {name}, which does not exist: create the StorageClass"
        if storage_class.provisioner in ("", names.NO_PROVISIONER):
            size = format_bytes(kind_of(claim).request)
            return f"claim {claim.name} waits for a PersistentVolume of class {name} with {size} or more: create it"
        return (
            f"claim {claim.name} of class {name} waits to be provisioned by {storage_class.provisioner}: check that "
            f"the provisioner runs ({look})"
        )
    return ""


def binding_problem(objects: LookupObjects, task: Task) -> Why | None:
    """Why a pod's claims cannot be bound on any node."""
    claims: list[PersistentVolumeClaim] = []
    for reference in task.volume_claims:
        claim = objects.claims.get(f"{task.namespace}/{reference.name}")
        if claim is None:
            if reference.ephemeral:
                return Why(names.WAITING_FOR_EPHEMERAL_CLAIM.format(name=reference.name))
            return _missing(names.CLAIM_NOT_FOUND, reference.name)
        if problem := _unusable(task, claim, reference.ephemeral):
            return Why(problem)
        claims.append(claim)
    if any(_is_unbound_immediate(objects, claim) for claim in claims):
        return _unbound(objects, names.UNBOUND_IMMEDIATE_CLAIMS)
    return None


def unbound_problem(objects: LookupObjects, task: Task) -> Why | None:
    """Why a pod's claims are not all bound to volumes that exist."""
    problem = binding_problem(objects, task)
    if problem:
        return problem
    for reference in task.volume_claims:
        claim = objects.claims[f"{task.namespace}/{reference.name}"]
        volume = claim.spec.volume_name
        if not volume:
            return _unbound(objects, names.UNBOUND_CLAIM.format(name=claim.name))
        if volume not in objects.volumes:
            return _missing(names.VOLUME_NOT_FOUND, volume)
    return None


def _unusable(task: Task, claim: PersistentVolumeClaim, ephemeral: bool) -> str | None:
    if claim.status.phase == names.CLAIM_LOST:
        return names.CLAIM_VOLUME_LOST.format(name=claim.name, volume=claim.spec.volume_name)
    if claim.metadata.deletion_timestamp is not None:
        return names.CLAIM_BEING_DELETED.format(name=claim.name)
    if ephemeral and not any(
        owner.controller and owner.uid == task.uid for owner in claim.metadata.owner_references
    ):
        return names.CLAIM_OF_ANOTHER_POD.format(namespace=task.namespace, name=claim.name, pod=task.name)
    if not is_bound(claim) and (count := _count_in_selector(claim)) > MAX_IN_SELECTOR:
        return names.CLAIM_SELECTOR_TOO_LONG.format(name=claim.name, count=count, most=MAX_IN_SELECTOR)
    return None


def _count_in_selector(claim: PersistentVolumeClaim) -> int:
    selector = claim.spec.selector
    if selector is None:
        return 0
    return len(selector.match_labels) + sum(1 + len(each.values) for each in selector.match_expressions)


def _is_unbound_immediate(objects: LookupObjects, claim: PersistentVolumeClaim) -> bool:
    if is_bound(claim):
        return False
    storage_class = objects.storage_classes.get(class_name(claim))
    return bool(claim.spec.volume_name) or storage_class is None or not binds_late(storage_class)
