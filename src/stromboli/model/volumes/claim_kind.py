"""What decides which volumes serve a claim, and what a pod requires of a node by its volumes.

Claims with equal requirements share one kind. Pods with equal demands fit the same nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.resources.quantity import whole
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector, Quantity, Requirement
from stromboli.model.volumes.volume_claims import class_name

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim


MAX_BYTES = 2**60
"""The maximum size of a volume, a claim or a storage, so that sums of many fit 64 bits."""
_FILESYSTEM = "Filesystem"


class ClaimSelector(NamedTuple):
    """A label selector as a value that can be a key."""

    labels: tuple[tuple[str, str], ...]
    expressions: tuple[Requirement, ...]

    def matches(self, labels: dict[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels) and matches_labels(
            LabelSelector(match_expressions=self.expressions), labels
        )


class ClaimKind(NamedTuple):
    """A claim without its name: its class, its size, and its requirements of a volume."""

    storage_class: str
    request: int
    """In bytes."""
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    selector: ClaimSelector | None

    @property
    def of_any_size(self) -> ClaimKind:
        """The same for a claim without a size, which volumes of every size can serve."""
        return self._replace(request=0)

    def is_served_by(self, volume: PersistentVolume) -> bool:
        """Whether a free volume can be bound to such a claim, independent of the nodes that reach it."""
        return (
            self.could_have(volume)
            and all(mode in volume.spec.access_modes for mode in self.access_modes)
            and (self.selector is None or self.selector.matches(volume.metadata.labels))
        )

    def could_have(self, volume: PersistentVolume) -> bool:
        """Whether a volume that is promised to such a claim can be bound to it."""
        spec = volume.spec
        return (
            volume.metadata.deletion_timestamp is None
            and class_of(volume) == self.storage_class
            and size_of(volume) >= self.request
            and (spec.volume_mode or _FILESYSTEM) == self.volume_mode
            and (spec.volume_attributes_class_name or "") == self.attributes_class
        )


def kind_of(claim: PersistentVolumeClaim) -> ClaimKind:
    """The kind of a claim."""
    spec, selector = claim.spec, claim.spec.selector
    return ClaimKind(
        class_name(claim),
        amount_of(spec.resources.requests.get(names.STORAGE, 0)),
        tuple(sorted(set(spec.access_modes))),
        spec.volume_mode or _FILESYSTEM,
        spec.volume_attributes_class_name or "",
        ClaimSelector(tuple(sorted(selector.match_labels.items())), selector.match_expressions)
        if selector is not None
        else None,
    )


def class_of(volume: PersistentVolume) -> str:
    """The name of a volume's storage class; the old annotation goes before the field."""
    annotated = volume.metadata.annotations.get(names.STORAGE_CLASS)
    return annotated if annotated is not None else volume.spec.storage_class_name


def size_of(volume: PersistentVolume) -> int:
    """The size of a volume in bytes."""
    return amount_of(volume.spec.capacity.get(names.STORAGE, 0))


def amount_of(quantity: Quantity) -> int:
    """An amount of storage in bytes."""
    return min(whole(quantity), MAX_BYTES)


# -- what a pod requires of a node by its volumes


class DelayedClaim(NamedTuple):
    """A claim that is bound when its pod is placed."""

    kind: ClaimKind
    volume: str = ""
    """The volume that is already promised to it, by its own object or for another pod; empty: none is."""
    node: str = ""
    """The node on which it is already to be provisioned; empty: none."""


class AttachmentDemand(NamedTuple):
    """Volumes of one CSI driver that a node must attach."""

    driver: str
    required: bool
    """Whether a node without the driver cannot have them."""
    fresh: int
    """The number of them that no node has attached."""
    handles: tuple[str, ...]
    """Those that some node has attached."""


class VolumeDemand(NamedTuple):
    """All that filters read of a task's volumes; its own disks are part of its shape."""

    bound: tuple[str, ...] = ()
    """The volumes of its bound claims that have a node affinity."""
    zoned: tuple[str, ...] = ()
    """The zoned volumes that its claims name; ephemeral volumes are ignored."""
    lost: bool = False
    """Whether a claim is bound to a volume that does not exist."""
    missing: str = ""
    """The claim that does not exist, for messages; empty: all exist."""
    delayed: tuple[DelayedClaim, ...] = ()
    """Its claims that are bound when it is placed, the smallest first."""
    attachments: tuple[AttachmentDemand, ...] = ()
    rivals: tuple[str, ...] = ()
    """Its claims for a single pod that another pod uses, as `namespace/name`."""


NO_VOLUMES = VolumeDemand()
