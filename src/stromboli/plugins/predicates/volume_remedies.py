"""Remedies for pods whose volumes no node can provide: the class, zone, driver or claim that is short, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.resources.quantity import format_bytes
from stromboli.model.remedy import Rank, Remedy
from stromboli.model.status import Status
from stromboli.model.volumes.claim_kind import size_of
from stromboli.model.volumes.task_volumes import claims_of_task, delayed_claims, volume_demand
from stromboli.model.volumes.volume_claims import is_bound
from stromboli.model.volumes.volume_reach import nodes_with_affinity, zones_of

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim
    from stromboli.model.cluster import Cluster
    from stromboli.model.task import Task
    from stromboli.model.volumes.claim_kind import DelayedClaim

SHOWN = 3
PODS_COUNTED = 1_000
"""Pods of a gang of which the claims are counted."""
CLAIMS_TRIED = 64
"""Maximum claims of a task that are matched one by one."""
LOST_VOLUME = Remedy("its claim is bound to a deleted volume: restore the volume, or recreate the claim")
DISK_IN_USE = Remedy("pods on these nodes use the same disk: wait until they end, or add nodes")
_CLAIM_IN_USE = "its ReadWriteOncePod claim is in use by another pod: wait until that pod ends"


def joined(remedies: Sequence[Remedy]) -> Remedy:
    """The remedies of a node that refuses for several reasons, as one."""
    if len(remedies) == 1:
        return remedies[0]
    return Remedy(
        lambda task: "; ".join(filter(None, (each.steady_text(task) for each in remedies))),
        lambda task: "; ".join(filter(None, (each.current_text(task) for each in remedies))),
    )


def _with_numbers(
    cluster: Cluster,
    text: Callable[[Cluster, Task], str],
    numbers: Callable[[Cluster, Task], str],
    rank: Callable[[Task], Rank] | Rank = Rank.CAUSE,
) -> Remedy:
    """A remedy, and the same after the numbers of the moment."""

    def in_numbers(task: Task) -> str:
        remedy, counted = text(cluster, task), numbers(cluster, task)
        return f"{counted}: {remedy}" if counted and remedy else remedy

    return Remedy(partial(text, cluster), in_numbers, rank)


# -- claims for a single pod


def claim_in_use(cluster: Cluster) -> Remedy:
    """For a pod with a claim for a single pod that another one uses: a mistake if pods of one gang share it."""

    def rank(task: Task) -> Rank:
        return Rank.MISTAKE if claim_of_several(cluster, task) else Rank.CAUSE

    return _with_numbers(cluster, _wait_for_claim, _claim_user, rank)


def _wait_for_claim(cluster: Cluster, task: Task) -> str:
    return claim_of_several(cluster, task) or _CLAIM_IN_USE


def claim_of_several(cluster: Cluster, task: Task) -> str:
    """That several pods which must start together use a claim for a single pod; empty if they do not."""
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


def _claim_user(cluster: Cluster, task: Task) -> str:
    for claim in claims_of_task(cluster.objects, task):
        if names.READ_WRITE_ONCE_POD in claim.spec.access_modes:
            user = cluster.volumes.a_user(claim.key)
            if user is not None:
                return f"pod {user.key} uses claim {claim.name}"
    return ""


# -- bound volumes


def volume_zones(cluster: Cluster) -> Remedy:
    """For a pod whose volumes are in zones without a suitable node."""
    return Remedy(partial(_bound_volumes, cluster, _zone_text))


def volume_reach(cluster: Cluster) -> Remedy:
    """For a pod whose volumes only some nodes can reach."""
    return Remedy(partial(_bound_volumes, cluster, _reach_text))


def _bound_volumes(cluster: Cluster, describe: Callable[[Cluster, PersistentVolume], str], task: Task) -> str:
    claims = (claim for claim in claims_of_task(cluster.objects, task) if is_bound(claim))
    volumes = (cluster.objects.volumes.get(claim.spec.volume_name) for claim in claims)
    texts = [describe(cluster, volume) for volume in volumes if volume is not None]
    return "; ".join(list(filter(None, texts))[:SHOWN])


def _zone_text(cluster: Cluster, volume: PersistentVolume) -> str:
    zones = zones_of(volume)
    listed = ", ".join(sorted({zone for values in zones.values() for zone in values})[:SHOWN])
    return f"volume {volume.name} is in {listed}: add nodes there" if zones else ""


def _reach_text(cluster: Cluster, volume: PersistentVolume) -> str:
    if volume.spec.node_affinity is None:
        return ""
    rows = np.flatnonzero(nodes_with_affinity(cluster.columns, cluster.objects, volume)).tolist()
    nodes = ", ".join(cluster.columns.nodes[row].name for row in rows[:SHOWN])
    reach = f"{nodes}{', ...' if len(rows) > SHOWN else ''}" if rows else "no existing node"
    return f"volume {volume.name} is reachable from {reach}: free capacity there"


# -- claims that wait


def unbindable_claims(cluster: Cluster) -> Remedy:
    """For a pod for whose claims no node has a volume."""
    return _with_numbers(cluster, _missing_volumes, _free_volumes)


def _missing_volumes(cluster: Cluster, task: Task) -> str:
    return claim_of_several(cluster, task) or _unbindable(cluster, task)


def _free_volumes(cluster: Cluster, task: Task) -> str:
    return "; ".join(_volumes_left(cluster, task, *each) for each in _unserved(cluster, task)[:SHOWN])


def insufficient_storage(cluster: Cluster) -> Remedy:
    """For a pod for whose claims no driver has enough storage."""
    return _with_numbers(cluster, _storage, _free_storage)


def _free_storage(cluster: Cluster, task: Task) -> str:
    return "; ".join(_storage_left(cluster, name) for name in _asked_storage(cluster, task))


def _unserved(cluster: Cluster, task: Task) -> list[tuple[PersistentVolumeClaim, DelayedClaim]]:
    """The largest claims of a task for which no node has a volume; all of them if each has one somewhere."""
    waiting = delayed_claims(cluster.volumes, cluster.objects, task)[::-1]
    matching = cluster.volumes.matching
    unserved = [each for each in waiting[:CLAIMS_TRIED] if not matching.match((each[1],)).bindable.any()]
    return unserved or waiting


def _of_gang(cluster: Cluster, task: Task, delayed: DelayedClaim) -> int:
    """How many claims like this the pods of a gang have that wait."""
    if task.job is None or task.job.counts[Status.PENDING] > PODS_COUNTED:
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


def attachment_limit(cluster: Cluster, driver: str = "") -> Remedy:
    """For a pod with more volumes than nodes can attach: of one driver, or of any of its drivers."""
    numbers = partial(_attached_volumes, driver)
    return _with_numbers(cluster, partial(_attachments, driver), numbers)


def _drivers(cluster: Cluster, driver: str, task: Task) -> list[str]:
    if driver:
        return [driver]
    demands = volume_demand(cluster.volumes, cluster.objects, task).attachments
    return list(dict.fromkeys(each.driver for each in demands))[:SHOWN]


def _attached_volumes(driver: str, cluster: Cluster, task: Task) -> str:
    return "; ".join(_attached(cluster, each) for each in _drivers(cluster, driver, task))


def _attachments(driver: str, cluster: Cluster, task: Task) -> str:
    taken, _ = cluster.volumes.attachments.limits(driver) if driver else (None, None)
    having = int(np.count_nonzero(taken)) if taken is not None else 0
    if taken is not None and not having:
        return (
            f"no node lists the CSI driver {driver} in its CSINode (kubectl get csinodes): install the driver, or "
            "name it in --ignored-provisioners if it attaches nothing"
        )
    if taken is not None and having < len(taken):
        return (
            f"{having} of {_count(len(taken), 'node')} list the CSI driver {driver} in their CSINode: free capacity "
            "for the pod and its volumes there, or install the driver on other nodes"
        )
    listed = ", ".join(_drivers(cluster, driver, task))
    return f"the volume limit of {listed} is reached on these nodes: wait until pods with such volumes end or add nodes"


def _attached(cluster: Cluster, driver: str) -> str:
    taken, limits = cluster.volumes.attachments.limits(driver)
    attached = cluster.volumes.attachments.columns(driver).seen
    full = int(np.count_nonzero((attached >= limits) & (taken > 0)))
    having = int(np.count_nonzero(taken))
    return f"{having} of {_count(len(taken), 'node')} have the CSI driver {driver}, {full} of them are full"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
