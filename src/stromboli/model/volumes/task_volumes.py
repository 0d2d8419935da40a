"""What a task asks of a node by its volumes, read off its claims as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.model.volumes.claim_kind import AttachmentDemand, DelayedClaim, VolumeDemand, kind_of
from stromboli.model.volumes.volume_claims import is_bound, named_volumes, waits_for_pod
from stromboli.model.volumes.volume_reach import has_affinity, zones_of

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolumeClaim
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.task import Task
    from stromboli.model.volumes.volume_ledger import VolumeLedger


def volume_demand(ledger: VolumeLedger, objects: LookupObjects, task: Task) -> VolumeDemand:
    """What filters read of a task's volumes."""
    bound: list[str] = []
    rivals: list[str] = []
    lost = False
    for claim in claims_of_task(objects, task):
        if is_bound(claim):
            volume = objects.volumes.get(claim.spec.volume_name)
            lost |= volume is None
            if volume is not None and has_affinity(volume):
                bound.append(volume.name)
        if names.READ_WRITE_ONCE_POD in claim.spec.access_modes and ledger.a_user(claim.key) is not None:
            rivals.append(claim.key)
    delayed = tuple(each for _, each in delayed_claims(ledger, objects, task))
    zoned = tuple(volume.name for volume in named_volumes(objects, task) if zones_of(volume))
    missing = _missing_claim(objects, task)
    attachments = _attachments(ledger, task)
    return VolumeDemand(tuple(bound), zoned, lost, missing, delayed, attachments, tuple(rivals))


def _missing_claim(objects: LookupObjects, task: Task) -> str:
    for reference in task.volume_claims:
        if f"{task.namespace}/{reference.name}" not in objects.claims:
            return names.LOOKING_UP_CLAIM.format(namespace=task.namespace, name=reference.name)
    return ""


def claims_of_task(objects: LookupObjects, task: Task) -> list[PersistentVolumeClaim]:
    """The claims of a task that exist."""
    keys = (f"{task.namespace}/{reference.name}" for reference in task.volume_claims)
    return [objects.claims[key] for key in keys if key in objects.claims]


def delayed_claims(
    ledger: VolumeLedger, objects: LookupObjects, task: Task
) -> list[tuple[PersistentVolumeClaim, DelayedClaim]]:
    """The claims that are bound when a task is placed, the smallest first, each with what is promised to it."""
    waiting = []
    for claim in claims_of_task(objects, task):
        if waits_for_pod(objects, claim):
            kind, promise = kind_of(claim), ledger.promise_to(claim.key)
            volume = promise.volume if promise is not None else ""
            node = promise.node if promise is not None else ""
            if not promise:
                volume = ledger.free.promised_to(claim.key, claim.metadata.uid, kind)
            waiting.append((claim, DelayedClaim(kind, volume, node)))
    return sorted(waiting, key=lambda each: each[1].kind.request)


def _attachments(ledger: VolumeLedger, task: Task) -> tuple[AttachmentDemand, ...]:
    handles: dict[tuple[str, bool], list[str]] = {}
    fresh: dict[tuple[str, bool], int] = {}
    for volume in dict.fromkeys(ledger.attachable(task)):
        key = (volume.driver, ledger.is_node_resource(volume))
        in_use = handles.setdefault(key, [])
        if ledger.attachments.is_in_use(volume):
            in_use.append(volume.handle)
        else:
            fresh[key] = fresh.get(key, 0) + 1
    return tuple(
        AttachmentDemand(driver, required, fresh.get((driver, required), 0), tuple(in_use))
        for (driver, required), in_use in handles.items()
    )
