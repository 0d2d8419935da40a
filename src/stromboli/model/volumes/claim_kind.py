"""What decides which volumes can serve a claim that waits for its first pod: equal claims share one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.resources.quantity import whole
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector, Quantity, Requirement
from stromboli.model.volumes.volume_claims import class_name

if TYPE_CHECKING:
    from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim

MOST_BYTES = 2**60
"""What a volume, a claim or a storage counts for at most, so that sums of many fit 64 bits."""
_FILESYSTEM = "Filesystem"


class Selector(NamedTuple):
    """A label selector as a value that can be a key."""

    labels: tuple[tuple[str, str], ...]
    expressions: tuple[Requirement, ...]

    def matches(self, labels: dict[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels) and matches_labels(
            LabelSelector(match_expressions=self.expressions), labels
        )


class ClaimKind(NamedTuple):
    """A claim without its name: its class, its size, and what it asks of a volume."""

    storage_class: str
    request: int
    """In bytes."""
    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str
    selector: Selector | None

    @property
    def of_any_size(self) -> ClaimKind:
        """The same for a claim that asks for nothing, which volumes of every size can serve."""
        return self._replace(request=0)

    def is_served_by(self, volume: PersistentVolume) -> bool:
        """Whether a volume that nobody uses can be bound to such a claim, from wherever it can be reached."""
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
        Selector(tuple(sorted(selector.match_labels.items())), selector.match_expressions)
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
    return min(whole(quantity), MOST_BYTES)
