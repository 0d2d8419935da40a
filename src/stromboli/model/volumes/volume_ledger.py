"""Counts what tasks hold of volumes: claims and volumes that they were given, storage that is promised, attached
volumes, claims for a single pod, disks.

All of it follows from the objects and from the grants of tasks, so a ledger that is built anew from both is equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.resources.resource_lists import check_amounts
from stromboli.api.types.node import CSINode
from stromboli.api.types.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from stromboli.model.ledgers import Fact, Ledger, Unsettled
from stromboli.model.volumes.attachments import (
    Attachable,
    Attachments,
    DiskUsers,
    InlineDisk,
    VolumeUse,
    attachable_in_tree,
    attachable_of_claim,
    inline_disks,
    use_of,
)
from stromboli.model.volumes.claim_kind import kind_of
from stromboli.model.volumes.claim_matching import ClaimMatching
from stromboli.model.volumes.free_volumes import FreeVolumes
from stromboli.model.volumes.storage_capacity import Provision, StorageCapacity
from stromboli.model.volumes.volume_claims import is_bound, waits_for_pod
from stromboli.model.volumes.volume_grant import VolumeGrant

if TYPE_CHECKING:
    from stromboli.api.types.meta import Object
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.feed import Topic
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Columns, Node
    from stromboli.model.status import Status
    from stromboli.model.task import Task

IGNORED_PROVISIONERS = frozenset({"rancher.io/local-path", "hostpath.csi.k8s.io"})
"""Drivers that need no attachment to a node (spec 01 2.1)."""


class _Holding(NamedTuple):
    """What was counted of a task on its node."""

    node: str
    use: VolumeUse
    claims: tuple[str, ...]
    grants: dict[str, VolumeGrant]
    """By the claim that they are for, as `namespace/name`."""
    disks: tuple[InlineDisk, ...]


class VolumePromise(NamedTuple):
    """What a claim that is not bound yet was given: a volume, or a place to provision one."""

    volume: str
    node: str
    provision: Provision | None


class VolumeLedger(Ledger):
    """What tasks hold of volumes."""

    kinds = (
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
        VolumeAttachment,
    )

    def __init__(self, objects: LookupObjects, columns: Columns, nodes: dict[str, Node]):
        self._objects = objects
        self.free = FreeVolumes(objects, columns)
        """Free volumes."""
        self.capacity = StorageCapacity(objects, columns, nodes)
        """What can be provisioned."""
        self.attachments = Attachments(objects, columns, nodes)
        """Volumes that nodes have attached."""
        self.disks = DiskUsers(columns, nodes)
        """Disks that pods name themselves."""
        self.matching = ClaimMatching(self, objects, columns, nodes)
        """The nodes on which delayed claims can be bound."""
        self.ignored_provisioners = IGNORED_PROVISIONERS
        """Drivers that need no attachment to a node."""
        self._changes: Topic[str] = columns.feed.topic()
        """What is held, and objects."""
        self._objects_changed: Topic[str] = columns.feed.topic()
        self._holdings: dict[Task, _Holding] = {}
        self._users: dict[str, dict[Task, None]] = {}
        """Tasks on nodes by the claims that they use."""
        self._promises: dict[str, VolumePromise] = {}
        self._attached: dict[Task, dict[str, Attachable]] = {}
        """What tasks have attached, by claim or disk."""
        self._claims_of_volume: dict[str, dict[str, None]] = {}
        self._volume_of_claim: dict[str, str] = {}
        self._selected: dict[str, None] = {}
        """Claims for which a node is selected."""
        self._attachment_objects: dict[str, tuple[str, Attachable]] = {}
        self._volume_of_attachment: dict[str, str] = {}
        self._attachments_of_volume: dict[str, dict[str, None]] = {}

    @property
    def version(self) -> int:
        """Increases with every change of what is held, and of objects."""
        return self._changes.generation

    @property
    def objects_version(self) -> int:
        """Increases with every change of claims, volumes and other objects of storage."""
        return self._objects_changed.generation

    # -- the ledger

    def concerns(self, spec: PodSpec) -> bool:
        return any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None or volume.attached_disk
            for volume in spec.volumes
        )

    def add(self, task: Task, status: Status, node: Node) -> None:
        claims = tuple(f"{task.namespace}/{claim.name}" for claim in task.volume_claims)
        given = (grant for grant in task.grants if isinstance(grant, VolumeGrant))
        grants = {f"{grant.namespace}/{grant.claim}": grant for grant in given}
        disks = inline_disks(task.shape.spec.volumes)
        holding = self._holdings[task] = _Holding(node.name, use_of(task, status), claims, grants, disks)
        for claim in claims:
            self._users.setdefault(claim, {})[task] = None
        for claim in grants:
            self._promise(claim)
        for disk in disks:
            self.disks.count(holding.node, disk, holding.use, 1)
        self._attached[task] = {}
        for number, own in enumerate(task.shape.spec.volumes):
            if own.attached_disk:
                self._attach(task, f"volume {number}", attachable_in_tree(own))
        for claim in claims:
            self._attach(task, claim, self._attachable(claim))
        self._changes.note(task.uid)

    def remove(self, task: Task, status: Status, node: Node) -> None:
        for name in list(self._attached[task]):
            self._attach(task, name, None)
        del self._attached[task]
        holding = self._holdings.pop(task)
        for claim in holding.claims:
            del self._users[claim][task]
            if not self._users[claim]:
                del self._users[claim]
        for claim in holding.grants:
            self._promise(claim)
        for disk in holding.disks:
            self.disks.count(holding.node, disk, holding.use, -1)
        self._changes.note(task.uid)

    # -- promises

    def _promise(self, key: str) -> None:
        """Update what a claim is promised, after its object or its tasks' grants changed, which the caller notes."""
        before, after = self._promises.get(key), self._promise_of(key)
        if before == after:
            return
        if before is not None:
            del self._promises[key]
            if before.volume:
                self.free.take(before.volume, -1)
            if before.provision is not None:
                self.capacity.release(key, before.provision)
        if after is not None:
            self._promises[key] = after
            if after.volume:
                self.free.take(after.volume, 1)
            if after.provision is not None:
                self.capacity.promise(key, after.provision)

    def _promise_of(self, key: str) -> VolumePromise | None:
        claim = self._objects.claims.get(key)
        if claim is None or is_bound(claim):
            return None
        for task in self._users.get(key, ()):
            holding = self._holdings[task]
            grant = holding.grants.get(key)
            if grant is not None and grant.claim_uid == claim.metadata.uid:
                return self._given(claim, grant.volume, holding.node)
        selected = claim.metadata.annotations.get(names.SELECTED_NODE, "")
        return self._given(claim, "", selected) if selected and waits_for_pod(self._objects, claim) else None

    def _given(self, claim: PersistentVolumeClaim, volume: str, node: str) -> VolumePromise:
        if volume:
            return VolumePromise(volume, "", None)
        kind = kind_of(claim)
        return VolumePromise("", node, Provision(kind.storage_class, node, kind.request))

    def promise_to(self, claim: str) -> VolumePromise | None:
        """What a claim that is not bound yet was given already."""
        return self._promises.get(claim)

    # -- claims for a single pod

    def uses(self, claim: str) -> set[VolumeUse]:
        """How tasks on nodes use a claim."""
        return {self._holdings[task].use for task in self._users.get(claim, ())}

    def a_user(self, claim: str) -> Task | None:
        """A task on a node that uses a claim."""
        return next(iter(self._users.get(claim, ())), None)

    # -- attached volumes

    def _attach(self, task: Task, name: str, volume: Attachable | None) -> None:
        """Record that a node has attached a volume for a claim or a disk of a task, or no longer has."""
        holding, attached = self._holdings[task], self._attached[task]
        before = attached.pop(name, None)
        if volume is not None:
            attached[name] = volume
            self.attachments.count(holding.node, volume, holding.use, 1)
        if before is not None:
            self.attachments.count(holding.node, before, holding.use, -1)

    def _reattach(self, claim: str) -> None:
        """Update what tasks have attached for a claim."""
        volume = self._attachable(claim)
        for task in self._users.get(claim, ()):
            if self._attached[task].get(claim) != volume:
                self._attach(task, claim, volume)

    def _attachable(self, key: str) -> Attachable | None:
        claim = self._objects.claims.get(key)
        return attachable_of_claim(self._objects, claim) if claim is not None else None

    def attachable(self, task: Task) -> Iterator[Attachable]:
        """The volumes of CSI drivers that a node has to attach for a task."""
        for reference in task.volume_claims:
            if (volume := self._attachable(f"{task.namespace}/{reference.name}")) is not None:
                yield volume
        for own in task.shape.spec.volumes:
            if own.attached_disk and (volume := attachable_in_tree(own)) is not None:
                yield volume

    def attaches(self, task: Task) -> bool:
        """Whether a volume of a task is a resource of its node."""
        return any(map(self.is_node_resource, self.attachable(task)))

    def is_node_resource(self, volume: Attachable) -> bool:
        """Whether a volume is a resource of its node (spec 05 3.5); a name with a slash is that of no CSI driver."""
        driver = volume.driver
        return not volume.in_tree and "/" not in driver and driver not in self.ignored_provisioners

    # -- the consistency check

    def facts(self, unsettled: Unsettled) -> Iterator[Fact]:
        in_flight = {
            f"{task.namespace}/{claim.name}" for task in unsettled.tasks for claim in task.volume_claims
        }
        for key in self._objects.claims.keys() - in_flight:
            if (promise := self.promise_to(key)) is not None:
                yield (
                    ("PersistentVolumeClaim", f"{key} promise"),
                    f"is promised {promise.volume or promise.node}",
                )

    # -- objects

    def put(self, obj: Object) -> None:
        """Refuse an object with invalid or negative amounts."""
        match obj:
            case PersistentVolume():
                check_amounts(obj.spec.capacity, "spec.capacity")
            case PersistentVolumeClaim():
                check_amounts(obj.spec.resources.requests, "spec.resources.requests")
            case CSIStorageCapacity():
                stated = {"capacity": obj.capacity, "maximumVolumeSize": obj.maximum_volume_size}
                check_amounts({field: amount for field, amount in stated.items() if amount is not None}, "")
            case _:
                pass

    def changed(self, obj: Object) -> None:
        match obj:
            case PersistentVolumeClaim():
                self._claim_changed(obj.key)
            case PersistentVolume():
                self._volume_changed(obj.name)
            case CSIStorageCapacity():
                self.capacity.update(obj.key)
            case VolumeAttachment():
                self._attachment_changed(obj.name)
            case CSINode():
                self.attachments.limits_changed()
            case StorageClass():
                for key in self._users:
                    self._reattach(key)
                for key in {**self._promises, **self._selected}:
                    self._promise(key)
            case _:
                pass
        self._changes.note(obj.key)
        self._objects_changed.note(obj.key)

    def _claim_changed(self, key: str) -> None:
        claim = self._objects.claims.get(key)
        self._selected.pop(key, None)
        if claim is not None and names.SELECTED_NODE in claim.metadata.annotations:
            self._selected[key] = None
        volume = claim.spec.volume_name if claim is not None else ""
        _relate(self._volume_of_claim, self._claims_of_volume, key, volume)
        self._promise(key)
        self._reattach(key)

    def _volume_changed(self, name: str) -> None:
        self.free.update(name)
        for claim in self._claims_of_volume.get(name, ()):
            self._reattach(claim)
        for attachment in list(self._attachments_of_volume.get(name, ())):
            self._attachment_changed(attachment)

    def _attachment_changed(self, name: str) -> None:
        before = self._attachment_objects.pop(name, None)
        if before is not None:
            self.attachments.count(*before, VolumeUse.ATTACHED, -1)
        attachment = self._objects.attachments.get(name)
        volume_name = attachment.spec.source.persistent_volume_name or "" if attachment is not None else ""
        _relate(self._volume_of_attachment, self._attachments_of_volume, name, volume_name)
        volume = self._objects.volumes.get(volume_name)
        csi = volume.spec.csi if volume is not None else None
        if attachment is not None and csi is not None and attachment.spec.attacher:
            attached = Attachable(attachment.spec.attacher, csi.volume_handle)
            self._attachment_objects[name] = (attachment.spec.node_name, attached)
            self.attachments.count(attachment.spec.node_name, attached, VolumeUse.ATTACHED, 1)


def _relate(one: dict[str, str], many: dict[str, dict[str, None]], key: str, value: str) -> None:
    """Record the value of a key; empty: none."""
    before = one.pop(key, "")
    if before:
        del many[before][key]
        if not many[before]:
            del many[before]
    if value:
        one[key] = value
        many.setdefault(value, {})[key] = None
