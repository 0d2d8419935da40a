"""Disks that pods name themselves, without a claim: who uses which on which node, and what conflicts.

A disk of these kinds can be mounted twice on a node only if both pods read it alone, an EBS volume not even then; this
is kube-scheduler's VolumeRestrictions, which Volcano does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.model.volumes.attachments import LEAVING, VolumeUse

if TYPE_CHECKING:
    from stromboli.api.types.pod import Volume
    from stromboli.model.node_columns import Bools, Columns, Node


class InlineDisk(NamedTuple):
    """A disk of a pod: its kind, what names it, and how the pod mounts it."""

    kind: str
    name: str
    read_only: bool
    monitors: frozenset[str] = frozenset()
    """Of an RBD image: two are the same only if they share one."""

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
        self.version = 0
        """Grows with every change."""

    def count(self, node: str, disk: InlineDisk, use: VolumeUse, sign: int) -> None:
        """A pod on a node has a disk, or no longer."""
        users = self._users.setdefault((disk.kind, disk.name), {})
        key = (node, disk, use)
        users[key] = users.get(key, 0) + sign
        if not users[key]:
            del users[key]
        if not users:
            del self._users[disk.kind, disk.name]
        self.version += 1

    def free(self, disks: tuple[InlineDisk, ...]) -> tuple[Bools, Bools]:
        """Nodes on which no pod that stays has a conflicting disk, and those on which no pod at all has."""
        later, now = np.ones(len(self._columns), dtype=bool), np.ones(len(self._columns), dtype=bool)
        for disk in disks:
            for node, other, use in self._users.get((disk.kind, disk.name), ()):
                row = self._nodes[node].row if node in self._nodes else -1
                if row >= 0 and disk.conflicts(other):
                    now[row] = False
                    later[row] &= use in LEAVING
        return later, now
