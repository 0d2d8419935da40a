"""The next step for a pod whose volumes no node can have: which class, zone, driver or claim is short, and where.

What stands in conditions is the same as long as the same is short; numbers of the moment are for those who ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.resources.quantity import format_bytes
from stromboli.model.status import Status
from stromboli.model.volumes.claim_kind import kind_of, size_of
from stromboli.model.volumes.task_volumes import claims_of_task, delayed_claims, volume_demand
from stromboli.model.volumes.volume_claims import binds_late, class_name, is_bound
from stromboli.model.volumes.volume_reach import nodes_with_affinity, zones_of

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolumeClaim
    from stromboli.model.cluster import Cluster
    from stromboli.model.task import Task
    from stromboli.model.volumes.volume_demand import DelayedClaim

SHOWN = 3
PODS_LOOKED_AT = 1_000
"""Pods of a gang of which the claims are counted."""
LOOKED_AT = 64
"""Claims of a task that are looked at one by one."""
_ATTACHMENTS = names.INSUFFICIENT_ATTACHMENTS.format(driver="")
_UNBOUND = (names.VOLUME_WITHOUT_NAME, names.CLAIM_WITHOUT_VOLUME_OR_CLASS, names.UNBOUND_IMMEDIATE_CLAIMS)
"""How messages end about a claim that others bind, whatever the nodes."""
_PLAIN = {
    names.BOUND_TO_MISSING_VOLUME: "its claim is bound to a deleted volume: restore the volume, or recreate the claim",
    names.DISK_CONFLICT: "pods on these nodes use the same disk: wait until they end, or add nodes",
    names.CLAIM_IN_USE: "its ReadWriteOncePod claim is in use by another pod: wait until that pod ends",
}


def way_to_volumes(cluster: Cluster, task: Task, reason: str) -> str:
    """What would let a task have its volumes; empty for a reason that is none of volumes."""
    return "; ".join(filter(None, (_way_out(cluster, task, each) for each in _reasons(reason))))


def volumes_in_numbers(cluster: Cluster, task: Task, reason: str) -> str:
    """The same with what there is at this moment, and on how many nodes."""
    return "; ".join(filter(None, (_in_numbers(cluster, task, each) for each in _reasons(reason))))


def claim_of_several(cluster: Cluster, task: Task) -> str:
    """That several pods which must start together ask for a claim that is for a single one; empty if they do not."""
    job = task.job
    if job is None or job.minimum < 2:
        return ""
    for claim in claims_of_task(cluster.objects, task):
        if names.READ_WRITE_ONCE_POD in claim.spec.access_modes:
            pods = sum(
                any(each.name == claim.name for each in pod.volume_claims) for pod in job.tasks.values()
            )
            if len(job.tasks) - pods + 1 < job.minimum:
                return (
                    f"claim {claim.name} is for a single pod (ReadWriteOncePod), and {pods} pods that must start "
                    "together use it: give each its own claim, or choose another access mode"
                )
    return ""


def _reasons(reason: str) -> list[str]:
    return reason.split(names.JOINED_REASONS)


def _way_out(cluster: Cluster, task: Task, reason: str) -> str:
    if reason in (names.CLAIM_IN_USE, names.NO_VOLUME_TO_BIND) and (
        several := claim_of_several(cluster, task)
    ):
        return several
    if reason.endswith(_UNBOUND):
        return _awaited(cluster, task)
    if reason in _PLAIN:
        return _PLAIN[reason]
    if reason in (names.VOLUME_AFFINITY_MISMATCH, names.VOLUME_ZONE_MISMATCH):
        return _bound(cluster, task, reason)
    if reason == names.NO_VOLUME_TO_BIND:
        return _unbindable(cluster, task)
    if reason == names.NOT_ENOUGH_STORAGE:
        return _storage(cluster, task)
    if reason == names.TOO_MANY_VOLUMES or reason.startswith(_ATTACHMENTS):
        return _attachments(cluster, task, reason)
    return ""


def _in_numbers(cluster: Cluster, task: Task, reason: str) -> str:
    way_out = _way_out(cluster, task, reason)
    numbers = ""
    if reason == names.NO_VOLUME_TO_BIND:
        numbers = "; ".join(_volumes_left(cluster, task, *each) for each in _unserved(cluster, task)[:SHOWN])
    elif reason == names.NOT_ENOUGH_STORAGE:
        numbers = "; ".join(_storage_left(cluster, name) for name in _asked_storage(cluster, task))
    elif reason == names.TOO_MANY_VOLUMES or reason.startswith(_ATTACHMENTS):
        numbers = "; ".join(_attached(cluster, driver) for driver in _drivers(cluster, task, reason))
    elif reason == names.CLAIM_IN_USE:
        numbers = _claim_users(cluster, task)
    return f"{numbers}: {way_out}" if numbers and way_out else way_out


# -- bound volumes


def _bound(cluster: Cluster, task: Task, reason: str) -> str:
    texts = []
    for claim in claims_of_task(cluster.objects, task):
        volume = cluster.objects.volumes.get(claim.spec.volume_name) if is_bound(claim) else None
        if volume is None:
            continue
        if reason == names.VOLUME_ZONE_MISMATCH and (zones := zones_of(volume)):
            listed = ", ".join(sorted({zone for values in zones.values() for zone in values})[:SHOWN])
            texts.append(f"volume {volume.name} is in {listed}: add nodes there")
        elif reason == names.VOLUME_AFFINITY_MISMATCH and volume.spec.node_affinity is not None:
            reaching = nodes_with_affinity(cluster.columns, cluster.objects, volume)
            rows = np.flatnonzero(reaching).tolist()
            nodes = ", ".join(cluster.columns.nodes[row].name for row in rows[:SHOWN])
            reach = f"{nodes}{', ...' if len(rows) > SHOWN else ''}" if rows else "no existing node"
            texts.append(f"volume {volume.name} is reachable from {reach}: free capacity there")
    return "; ".join(texts[:SHOWN])


# -- claims that wait


def _unserved(cluster: Cluster, task: Task) -> list[tuple[PersistentVolumeClaim, DelayedClaim]]:
    """The largest claims of a task for which no node has a volume; all of them if each has one somewhere."""
    waiting = delayed_claims(cluster.volumes, cluster.objects, task)[::-1]
    matching = cluster.volumes.matching
    unserved = [each for each in waiting[:LOOKED_AT] if not matching.match((each[1],)).bindable.any()]
    return unserved or waiting


def _awaited(cluster: Cluster, task: Task) -> str:
    """Of the first claim that is not bound, and that no node needs to be selected for: whom it waits for."""
    for claim in claims_of_task(cluster.objects, task):
        storage_class = cluster.objects.storage_classes.get(name := class_name(claim))
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


def _of_gang(cluster: Cluster, task: Task, delayed: DelayedClaim) -> int:
    """How many claims like this the pods of a gang have that wait."""
    if task.job is None or task.job.counts[Status.PENDING] > PODS_LOOKED_AT:
        return 1
    pods = task.job.by_status[Status.PENDING]
    waiting = (each for pod in pods for each in delayed_claims(cluster.volumes, cluster.objects, pod))
    return len({claim.key for claim, other in waiting if other.kind == delayed.kind})


def _unbindable(cluster: Cluster, task: Task) -> str:
    for claim, delayed in _unserved(cluster, task):
        name, size = delayed.kind.storage_class, format_bytes(delayed.kind.request)
        if delayed.volume:
            return f"its claim has volume {delayed.volume}: free capacity on a node that can reach it"
        if delayed.node and not _is_known(cluster, delayed.node):
            deselect = f"kubectl annotate pvc {claim.name} {names.SELECTED_NODE}-"
            return f"node {delayed.node}, selected for claim {claim.name}, no longer exists: {deselect}"
        if delayed.node:
            return (
                f"its claim of class {name} is being provisioned on node {delayed.node}: free capacity there"
            )
        storage_class = cluster.objects.storage_classes.get(name)
        if storage_class is None or storage_class.provisioner in ("", names.NO_PROVISIONER):
            if (asked := _of_gang(cluster, task, delayed)) > 1:
                asks = f"its pods request {asked} volumes of class {name} with {size} or more"
                return f"{asks}: create the missing PersistentVolumes where nodes have capacity"
            return f"create a PersistentVolume of class {name} with {size} or more where nodes have capacity"
        return (
            f"class {name} provisions volumes only within its allowedTopologies: add nodes there, widen them, or "
            f"create a PersistentVolume with {size} or more"
        )
    return ""


def _is_known(cluster: Cluster, node: str) -> bool:
    return node in cluster.nodes and cluster.nodes[node].object is not None


def _volumes_left(cluster: Cluster, task: Task, claim: PersistentVolumeClaim, delayed: DelayedClaim) -> str:
    kind = delayed.kind
    free = cluster.volumes.free.of_class(kind.storage_class)
    largest = f", the largest with {format_bytes(max(map(size_of, free)))}" if free else ""
    reached = int(np.count_nonzero(cluster.volumes.free.serving(kind).counts(kind.request)))
    serving = sum(kind.is_served_by(volume) for volume in free)
    asked = _of_gang(cluster, task, delayed)
    few = f", {asked - serving} too few for the {asked} claims of its gang" if 1 < asked > serving else ""
    return (
        f"claim {claim.name} requests {format_bytes(kind.request)} of class {kind.storage_class}, of which "
        f"{_count(len(free), 'volume')} {'is' if len(free) == 1 else 'are'} free{largest}{few}; "
        f"{reached} of {_count(len(cluster.columns), 'node')} reach a suitable one"
    )


def _asked_storage(cluster: Cluster, task: Task) -> dict[str, int]:
    """What is to be provisioned for a task, by class."""
    asked: dict[str, int] = {}
    for _, delayed in delayed_claims(cluster.volumes, cluster.objects, task):
        if not delayed.volume:
            name = delayed.kind.storage_class
            asked[name] = asked.get(name, 0) + delayed.kind.request
    return asked


def _storage(cluster: Cluster, task: Task) -> str:
    asked = ", ".join(
        f"{format_bytes(n)} of class {name}" for name, n in _asked_storage(cluster, task).items()
    )
    return f"it requests {asked} on one node, more than drivers report as free: request less or add storage"


def _storage_left(cluster: Cluster, name: str) -> str:
    left = cluster.volumes.capacity.of_class(name).most_free()
    return f"the most free storage of class {name} on one node is {format_bytes(max(left, 0))}"


# -- attachments


def _drivers(cluster: Cluster, task: Task, reason: str) -> list[str]:
    demands = volume_demand(cluster.volumes, cluster.objects, task).attachments
    if reason == names.TOO_MANY_VOLUMES:
        return list(dict.fromkeys(each.driver for each in demands))[:SHOWN]
    return [reason.removeprefix(_ATTACHMENTS)]


def _attachments(cluster: Cluster, task: Task, reason: str) -> str:
    drivers = _drivers(cluster, task, reason)
    for driver in drivers:
        taken, _ = cluster.volumes.attachments.limits(driver)
        having = int(np.count_nonzero(taken))
        if reason == names.TOO_MANY_VOLUMES or having == len(taken):
            continue
        if not having:
            return (
                f"no node lists the CSI driver {driver} in its CSINode (kubectl get csinodes): install the driver, or "
                "name it in --ignored-provisioners if it attaches nothing"
            )
        return (
            f"{having} of {_count(len(taken), 'node')} list the CSI driver {driver} in their CSINode: free capacity "
            "for the pod and its volumes there, or install the driver on other nodes"
        )
    listed = ", ".join(drivers)
    return f"the volume limit of {listed} is reached on these nodes: wait until pods with such volumes end or add nodes"


def _attached(cluster: Cluster, driver: str) -> str:
    _, limits = cluster.volumes.attachments.limits(driver)
    taken, _ = cluster.volumes.attachments.limits(driver)
    attached = cluster.volumes.attachments.columns(driver).seen
    full = int(np.count_nonzero((attached >= limits) & (taken > 0)))
    having = int(np.count_nonzero(taken))
    return f"{having} of {_count(len(taken), 'node')} have the CSI driver {driver}, {full} of them are full"


def _claim_users(cluster: Cluster, task: Task) -> str:
    for claim in claims_of_task(cluster.objects, task):
        if names.READ_WRITE_ONCE_POD in claim.spec.access_modes:
            user = cluster.volumes.a_user(claim.key)
            if user is not None:
                return f"pod {user.key} uses claim {claim.name}"
    return ""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
