"""Volumes in use on nodes: those attached, by CSI driver, and disks that pods name without a claim.

A volume counts once on a node, however many pods of the node use it. It is in use by tasks that stay, by tasks that are
promised to the node, and by tasks that leave it; a VolumeAttachment attaches one that no pod may use any more (spec 04
2.7, 05 3.5).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.model.status import Status
from stromboli.model.volumes.volume_claims import class_name
from stromboli.model.volumes.volume_reach import BY_NAME, in_tree_volume

if TYPE_CHECKING:
    from stromboli.api.types.pod import Volume
    from stromboli.api.types.storage import PersistentVolumeClaim, PersistentVolumeSpec
    from stromboli.model.feed import Topic
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Bools, Columns, Ints, Node
    from stromboli.model.task import Task


UNLIMITED = 2**31 - 1


class VolumeUse(IntEnum):
    """How a volume is in use on a node."""

    STAYING = 0
    """By tasks that hold their resources there."""
    PROMISED = 1
    """By tasks that are promised resources there."""
    EVICTED = 2
    """By evicted tasks whose pods are not being deleted yet."""
    TERMINATING = 3
    """By tasks whose pods are being deleted."""
    ATTACHED = 4
    """By a VolumeAttachment."""


LEAVING = frozenset({VolumeUse.EVICTED, VolumeUse.TERMINATING})


class Attachable(NamedTuple):
    """A volume of a CSI driver."""

    driver: str
    handle: str
    """Its identifier among volumes of its driver; for a claim without a volume, the claim."""
    in_tree: bool = False
    """Whether it is a volume of an in-tree plugin that the driver replaced."""


def use_of(task: Task, status: Status) -> VolumeUse:
    """How a task of some status on a node uses its volumes there."""
    if status is Status.PIPELINED:
        return VolumeUse.PROMISED
    if status is not Status.RELEASING:
        return VolumeUse.STAYING
    return VolumeUse.TERMINATING if task.terminating else VolumeUse.EVICTED


def attachable_of_claim(objects: LookupObjects, claim: PersistentVolumeClaim) -> Attachable | None:
    """The volume that a node attaches for a claim, if a CSI driver serves it."""
    volume = objects.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None and volume.spec.csi is not None:
        csi = volume.spec.csi
        return Attachable(csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    if volume is not None:
        return attachable_in_tree(volume.spec)
    storage_class = objects.storage_classes.get(class_name(claim))
    if storage_class is None:
        return None
    driver = storage_class.parameters.get(names.CSI_DRIVER_NAME) or storage_class.provisioner
    plugin = BY_NAME.get(driver)
    if plugin is not None:
        return Attachable(plugin.driver, f"claim {claim.key}", in_tree=True)
    return Attachable(driver, f"claim {claim.key}") if driver else None


def attachable_in_tree(source: PersistentVolumeSpec | Volume) -> Attachable | None:
    """The volume of an in-tree plugin (a PersistentVolume, or a pod's own disk) as one of its CSI driver."""
    in_tree = in_tree_volume(source)
    if in_tree is None or not in_tree.handle:
        return None
    return Attachable(in_tree.plugin.driver, in_tree.handle, in_tree=True)


class DriverColumns(NamedTuple):
    """How many volumes of a driver nodes have attached, a number per node."""

    held: Ints
    """In use by tasks on the node, including leaving tasks."""
    kept: Ints
    """In use by tasks that stay or are promised to the node."""
    seen: Ints
    """In use by pods that Kubernetes' filters count, or attached."""
    all: Ints
    """In use in any way, or attached."""


_HELD = (VolumeUse.STAYING, VolumeUse.EVICTED, VolumeUse.TERMINATING)
_KEPT = (VolumeUse.STAYING, VolumeUse.PROMISED)
_SEEN = (VolumeUse.STAYING, VolumeUse.PROMISED, VolumeUse.TERMINATING, VolumeUse.ATTACHED)
_COUNTED = (_HELD, _KEPT, _SEEN, tuple(VolumeUse))


class Attachments:
    """The attached volumes of all nodes."""

    def __init__(self, objects: LookupObjects, columns: Columns, nodes: dict[str, Node]):
        self._objects = objects
        self._columns = columns
        self._nodes = nodes
        self._uses: dict[str, dict[tuple[str, str], list[int]]] = {}
        """The number of each use, by node, then by driver and handle."""
        self._places: dict[tuple[str, str], dict[str, None]] = {}
        """The nodes at which a volume is in use."""
        self._counts: dict[str, dict[str, list[int]]] = {}
        """By driver, then by node: the numbers of `DriverColumns`."""
        self._cached: dict[str, tuple[int, DriverColumns]] = {}
        self._limits: dict[str, tuple[int, Ints, Ints]] = {}
        self._changes: Topic[str] = columns.feed.topic()

    @property
    def version(self) -> int:
        """Increases with every change."""
        return self._changes.generation

    def count(self, node: str, volume: Attachable, use: VolumeUse, sign: int) -> None:
        """Record that a volume is in use at a node, or no longer."""
        key = (volume.driver, volume.handle)
        uses = self._uses.setdefault(node, {}).setdefault(key, [0] * len(VolumeUse))
        counts = self._counts.setdefault(volume.driver, {}).setdefault(node, [0] * len(_COUNTED))
        before = [any(uses[each] for each in counted) for counted in _COUNTED]
        uses[use] += sign
        after = [any(uses[each] for each in counted) for counted in _COUNTED]
        if before == after:
            return
        for number, (was, now) in enumerate(zip(before, after, strict=True)):
            counts[number] += now - was
        if any(after):
            self._places.setdefault(key, {})[node] = None
        else:
            self._forget(node, key)
        self._patch(volume.driver, node, counts)
        self._changes.note(node)

    def _forget(self, node: str, key: tuple[str, str]) -> None:
        del self._uses[node][key], self._places[key][node]
        if not self._uses[node]:
            del self._uses[node]
        if not self._places[key]:
            del self._places[key]
        if not any(self._counts[key[0]][node]):
            del self._counts[key[0]][node]

    def _patch(self, driver: str, node: str, counts: list[int]) -> None:
        cached = self._cached.get(driver)
        known = self._nodes.get(node)
        if cached is not None and cached[0] == self._columns.layout and known is not None and known.row >= 0:
            for column, count in zip(cached[1], counts, strict=True):
                column[known.row] = count

    # -- queries

    def is_in_use(self, volume: Attachable) -> bool:
        """Whether any node has a volume attached."""
        return (volume.driver, volume.handle) in self._places

    def columns(self, driver: str) -> DriverColumns:
        """How many volumes of a driver are attached, node by node."""
        cached = self._cached.get(driver)
        if cached is None or cached[0] != self._columns.layout:
            columns = DriverColumns(*(np.zeros(len(self._columns), dtype=np.int64) for _ in _COUNTED))
            for node, counts in self._counts.get(driver, {}).items():
                row = self._nodes[node].row if node in self._nodes else -1
                if row >= 0:
                    for column, count in zip(columns, counts, strict=True):
                        column[row] = count
            cached = self._cached[driver] = (self._columns.layout, columns)
        return cached[1]

    def not_attached(
        self, driver: str, handles: tuple[str, ...], by: tuple[VolumeUse, ...] = tuple(VolumeUse)
    ) -> Ints:
        """The number of these volumes that each node would have to attach."""
        missing = np.full(len(self._columns), len(handles), dtype=np.int64)
        for handle in handles:
            for node in self._places.get((driver, handle), ()):
                known = self._nodes.get(node)
                uses = self._uses[node][driver, handle]
                if known is not None and known.row >= 0 and any(uses[use] for use in by):
                    missing[known.row] -= 1
        return missing

    def limits_changed(self) -> None:
        """A CSINode was added, changed or removed."""
        self._limits.clear()
        self._changes.note_everything()

    def limits(self, driver: str) -> tuple[Ints, Ints]:
        """Maximum volumes of a driver by node, and where its CSINode states one; none where the driver is missing."""
        known = self._limits.get(driver)
        if known is None or known[0] != self._columns.layout:
            taken = np.zeros(len(self._columns), dtype=np.int64)
            stated = np.full(len(self._columns), UNLIMITED, dtype=np.int64)
            for row, node in enumerate(self._columns.nodes):
                storage_node = self._objects.storage_nodes.get(node.name)
                for each in storage_node.spec.drivers if storage_node is not None else ():
                    if each.name == driver:
                        limit = each.allocatable.count if each.allocatable is not None else None
                        taken[row] = UNLIMITED if limit is None else limit
                        stated[row] = taken[row]
            known = self._limits[driver] = (self._columns.layout, taken, stated)
        return known[1], known[2]


# -- disks that pods name themselves: what conflicts on a node
#
# A disk of these kinds can be mounted twice on a node only if both pods read it alone, an EBS volume not even then.
# This is kube-scheduler's VolumeRestrictions, which Volcano does not have.


class InlineDisk(NamedTuple):
    """A disk of a pod: its kind, its identifier, and how the pod mounts it."""

    kind: str
    name: str
    read_only: bool
    monitors: frozenset[str] = frozenset()
    """The monitors of an RBD image: two images are the same only if they share one."""

    def conflicts(self, other: InlineDisk) -> bool:
        """Whether pods with these disks cannot be on one node."""
        if self.kind != other.kind or self.name != other.name:
            return False
        if self.kind == "rbd" and not self.monitors & other.monitors:
            return False
        return self.kind == "aws" or not (self.read_only and other.read_only)


def inline_disks(volumes: tuple[Volume, ...]) -> tuple[InlineDisk, ...]:
    """The disks among a pod's volumes that pods of one node cannot share."""
    disks = []
    for volume in volumes:
        if (disk := volume.gce_persistent_disk) is not None:
            disks.append(InlineDisk("gce", disk.pd_name, disk.read_only))
        if (disk := volume.aws_elastic_block_store) is not None:
            disks.append(InlineDisk("aws", disk.volume_id, disk.read_only))
        if (disk := volume.iscsi) is not None:
            disks.append(InlineDisk("iscsi", disk.iqn, disk.read_only))
        if (disk := volume.rbd) is not None:
            name = f"{disk.pool or 'rbd'}/{disk.image}"
            disks.append(InlineDisk("rbd", name, disk.read_only, frozenset(disk.monitors)))
    return tuple(disks)


class DiskUsers:
    """The inline disks of all pods on nodes."""

    def __init__(self, columns: Columns, nodes: dict[str, Node]):
        self._columns = columns
        self._nodes = nodes
        self._users: dict[tuple[str, str], dict[tuple[str, InlineDisk, VolumeUse], int]] = {}
        self._changes: Topic[str] = columns.feed.topic()

    @property
    def version(self) -> int:
        """Increases with every change."""
        return self._changes.generation

    def count(self, node: str, disk: InlineDisk, use: VolumeUse, sign: int) -> None:
        """Record that a pod on a node has a disk, or no longer."""
        users = self._users.setdefault((disk.kind, disk.name), {})
        key = (node, disk, use)
        users[key] = users.get(key, 0) + sign
        if not users[key]:
            del users[key]
        if not users:
            del self._users[disk.kind, disk.name]
        self._changes.note(node)

    def free(self, disks: tuple[InlineDisk, ...]) -> tuple[Bools, Bools]:
        """Nodes on which no staying pod has a conflicting disk, and nodes on which no pod has one."""
        later, now = np.ones(len(self._columns), dtype=bool), np.ones(len(self._columns), dtype=bool)
        for disk in disks:
            for node, other, use in self._users.get((disk.kind, disk.name), ()):
                row = self._nodes[node].row if node in self._nodes else -1
                if row >= 0 and disk.conflicts(other):
                    now[row] = False
                    later[row] &= use in LEAVING
        return later, now
