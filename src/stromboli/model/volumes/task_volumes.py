"""What a task asks of a node by its volumes, read off its claims as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.model.volumes.claim_kind import kind_of
from stromboli.model.volumes.volume_claims import is_bound, waits_for_pod
from stromboli.model.volumes.volume_demand import AttachmentDemand, DelayedClaim, VolumeDemand
from stromboli.model.volumes.volume_reach import is_restricted

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
            if volume is not None and is_restricted(volume):
                bound.append(volume.name)
        if names.READ_WRITE_ONCE_POD in claim.spec.access_modes and ledger.a_user(claim.key) is not None:
            rivals.append(claim.key)
    delayed = tuple(each for _, each in delayed_claims(ledger, objects, task))
    return VolumeDemand(tuple(bound), lost, delayed, _attachments(ledger, task), tuple(rivals))


def claims_of_task(objects: LookupObjects, task: Task) -> list[PersistentVolumeClaim]:
    """The claims of a task that exist."""
    keys = (f"{task.namespace}/{reference.name}" for reference in task.volume_claims)
    return [objects.claims[key] for key in keys if key in objects.claims]


def delayed_claims(
    ledger: VolumeLedger, objects: LookupObjects, task: Task
) -> list[tuple[PersistentVolumeClaim, DelayedClaim]]:
    """The claims of a task that wait for it, the smallest first, each with what is promised to it."""
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
    by_driver: dict[tuple[str, str], list[str]] = {}
    fresh: dict[tuple[str, str], int] = {}
    for volume in dict.fromkeys(ledger.attachable(task)):
        key = (volume.driver, volume.plugin)
        handles = by_driver.setdefault(key, [])
        if ledger.attachments.is_in_use(volume):
            handles.append(volume.handle)
        else:
            fresh[key] = fresh.get(key, 0) + 1
    return tuple(
        AttachmentDemand(
            driver,
            plugin,
            _is_required(ledger, driver, plugin),
            fresh.get((driver, plugin), 0),
            tuple(handles),
        )
        for (driver, plugin), handles in by_driver.items()
    )


def _is_required(ledger: VolumeLedger, driver: str, plugin: str) -> bool:
    """Whether a node without the driver cannot have its volumes; a name with a slash is that of no CSI driver."""
    return not plugin and "/" not in driver and driver not in ledger.ignored_provisioners
