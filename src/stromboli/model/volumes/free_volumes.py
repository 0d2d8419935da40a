"""Free PersistentVolumes: by class, and for each kind of claim by the nodes that reach them.

The lists of a kind are updated by the volumes of its class that changed, so that granting a volume does not require
reading the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.model.volumes.claim_kind import ClaimKind, class_of, size_of
from stromboli.model.volumes.volume_reach import rows_with_affinity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stromboli.api.types.storage import PersistentVolume
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Columns, Ints

MAX_KINDS = 256
"""Maximum kinds of claims, regardless of size, whose volumes are listed; the least recently used are dropped."""
MAX_LISTED = 500_000
"""Maximum volumes that are listed for all of these kinds."""
MAX_SIZES = 16
"""Maximum sizes of claims of a kind for which the volumes that each node reaches are counted."""
FEW_NODES = 64
"""A volume that at most this many nodes reach is listed with each of them; others are listed once."""


class _Known(NamedTuple):
    storage_class: str
    claim: str
    """The claim that it is bound or promised to by its own object, as `namespace/name`."""
    available: bool


class FreeVolumes:
    """All PersistentVolumes, and those that tasks were given."""

    def __init__(self, objects: LookupObjects, columns: Columns):
        self._objects = objects
        self._columns = columns
        self._known: dict[str, _Known] = {}
        self._by_class: dict[str, dict[str, None]] = {}
        self._by_claim: dict[str, dict[str, None]] = {}
        self._taken: dict[str, int] = {}
        self._changes: dict[str, list[str]] = {}
        self._kinds: OrderedDict[ClaimKind, KindVolumes] = OrderedDict()

    # -- changes

    def update(self, name: str) -> None:
        """The object of a volume was added, changed or removed."""
        volume = self._objects.volumes.get(name)
        old = self._known.pop(name, None)
        if old is not None:
            _discard(self._by_class, old.storage_class, name)
            _discard(self._by_claim, old.claim, name)
            self._note(old.storage_class, name)
        if volume is None:
            return
        reference = volume.spec.claim_ref
        claim = f"{reference.namespace}/{reference.name}" if reference is not None else ""
        available = reference is None and volume.status.phase == names.VOLUME_AVAILABLE
        known = self._known[name] = _Known(class_of(volume), claim, available)
        if available:
            self._by_class.setdefault(known.storage_class, {})[name] = None
        if claim:
            self._by_claim.setdefault(claim, {})[name] = None
        self._note(known.storage_class, name)

    def take(self, name: str, sign: int) -> None:
        """Record that a claim was given a volume, or no longer has it."""
        count = self._taken.get(name, 0) + sign
        if count:
            self._taken[name] = count
        else:
            del self._taken[name]
        if known := self._known.get(name):
            self._note(known.storage_class, name)

    def _note(self, storage_class: str, name: str) -> None:
        """Record that a volume changed; the lists of a class are built again if that is less work."""
        changes = self._changes.get(storage_class)
        if changes is None:
            return
        changes.append(name)
        if len(changes) > 2 * len(self._known) + FEW_NODES:
            del self._changes[storage_class]
            for kind in [kind for kind in self._kinds if kind.storage_class == storage_class]:
                del self._kinds[kind]

    # -- queries

    @property
    def taken(self) -> Collection[str]:
        """The volumes that claims were given but that are not bound to them yet."""
        return self._taken.keys()

    def free(self, name: str) -> PersistentVolume | None:
        """A free volume."""
        known = self._known.get(name)
        return self._objects.volumes[name] if known and known.available and name not in self._taken else None

    def of_class(self, storage_class: str) -> list[PersistentVolume]:
        """The free volumes of a class."""
        listed = self._by_class.get(storage_class, {})
        return [self._objects.volumes[name] for name in listed if name not in self._taken]

    def count(self, storage_class: str) -> int:
        """The number of available volumes of a class, including those that claims were given in the meantime."""
        return len(self._by_class.get(storage_class, ()))

    def promised_to(self, claim: str, uid: str, kind: ClaimKind) -> str:
        """The volume that is promised to a claim by its own object and can be bound to it; empty: none is."""
        for name in sorted(self._by_claim.get(claim, ())):
            volume = self._objects.volumes[name]
            reference = volume.spec.claim_ref
            if reference is not None and reference.uid in ("", uid) and kind.could_have(volume):
                return name
        return ""

    def serving(self, kind: ClaimKind) -> KindVolumes:
        """The free volumes that can serve a kind of claim if they are large enough, up to date."""
        kind = kind.of_any_size
        known = self._kinds.get(kind)
        volumes = self._kinds[kind] = known if known is not None else KindVolumes(self, self._columns, kind)
        self._kinds.move_to_end(kind)
        volumes.catch_up(self._changes.setdefault(kind.storage_class, []))
        if known is None:
            self._forget_kinds()
        return volumes

    def _forget_kinds(self) -> None:
        """Drop the lists of the least recently used kinds."""
        while len(self._kinds) > 1 and (
            len(self._kinds) > MAX_KINDS or sum(map(len, self._kinds.values())) > MAX_LISTED
        ):
            self._kinds.popitem(last=False)


class KindVolumes:
    """The free volumes that can serve claims of one kind, smallest first, by the nodes that reach them."""

    def __init__(self, free: FreeVolumes, columns: Columns, kind: ClaimKind):
        self._free = free
        self._columns = columns
        self._kind = kind
        self._position = -1
        self._objects = -1

    def catch_up(self, changes: list[str]) -> None:
        if self._position < 0 or self._objects != self._columns.objects:
            self._begin()
        else:
            for name in dict.fromkeys(changes[self._position :]):
                self._remove(name)
                volume = self._free.free(name)
                if volume is not None and self._kind.is_served_by(volume):
                    self._add(volume)
        self._position = len(changes)

    def _begin(self) -> None:
        self._counts: OrderedDict[int, Ints] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._rows: dict[str, Ints] = {}
        self._near: dict[int, list[tuple[int, str]]] = {}
        self._wide: list[tuple[int, str]] = []
        self._masks: dict[str, NDArray[np.uint8]] = {}
        self._objects = self._columns.objects
        serving = filter(self._kind.is_served_by, self._free.of_class(self._kind.storage_class))
        for volume in sorted(serving, key=size_of):  # so that each is appended to its list
            self._add(volume)

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def reached_alike(self) -> bool:
        """Whether all nodes reach all of them."""
        return not self._near and not self._masks

    def counts(self, request: int) -> Ints:
        """The number of them that are large enough and that each node reaches."""
        counts = self._counts.get(request)
        if counts is None:
            counts = self._counts[request] = self._count_all(request)
            if len(self._counts) > MAX_SIZES:
                self._counts.popitem(last=False)
        return counts

    def _count_all(self, request: int) -> Ints:
        counts: Ints = np.zeros(len(self._columns), dtype=np.int64)
        for row, near in self._near.items():
            counts[row] = len(near) - bisect_left(near, (request, ""))
        wide = [name for _, name in _from(self._wide, (request, ""))]
        masked = [name for name in wide if name in self._masks]
        counts += len(wide) - len(masked)
        for name in masked:
            counts[self._reached(name)] += 1
        return counts

    def smallest(self, row: int, request: int, chosen: Collection[str] = ()) -> str:
        """The smallest large enough volume that a node reaches and that is not chosen yet; empty: none."""
        least = (request, "")
        near = next(
            (entry for entry in _from(self._near.get(row, []), least) if entry[1] not in chosen), None
        )
        for entry in _from(self._wide, least):
            if near is not None and near < entry:
                break
            if entry[1] not in chosen and self._reaches(row, entry[1]):
                return entry[1]
        return near[1] if near is not None else ""

    def _reaches(self, row: int, name: str) -> bool:
        mask = self._masks.get(name)
        return mask is None or bool(mask[row >> 3] & (128 >> (row & 7)))

    def _add(self, volume: PersistentVolume) -> None:
        name, size = volume.name, size_of(volume)
        rows = rows_with_affinity(self._columns, volume)
        self._sizes[name] = size
        if rows is not None and len(rows) <= FEW_NODES:
            self._rows[name] = rows
            for row in rows.tolist():
                insort(self._near.setdefault(row, []), (size, name))
        else:
            insort(self._wide, (size, name))
            if rows is not None:
                mask = np.zeros(len(self._columns), dtype=bool)
                mask[rows] = True
                self._masks[name] = np.packbits(mask)
        self._count(name, 1)

    def _remove(self, name: str) -> None:
        size = self._sizes.get(name)
        if size is None:
            return
        self._count(name, -1)
        rows = self._rows.pop(name, None)
        del self._sizes[name]
        if rows is None:
            _remove_sorted(self._wide, (size, name))
            self._masks.pop(name, None)
            return
        for row in rows.tolist():
            _remove_sorted(self._near[row], (size, name))
            if not self._near[row]:
                del self._near[row]

    def _count(self, name: str, sign: int) -> None:
        """Count a volume for all known sizes, or no longer."""
        size, reached = self._sizes[name], self._reached(name)
        for request, counts in self._counts.items():
            if request <= size:
                counts[reached] += sign

    def _reached(self, name: str) -> Ints | slice:
        """The rows of the nodes that reach a volume."""
        if name in self._masks:
            return np.flatnonzero(np.unpackbits(self._masks[name], count=len(self._columns)))
        return self._rows.get(name, slice(None))


def _from(entries: list[tuple[int, str]], least: tuple[int, str]) -> Iterator[tuple[int, str]]:
    return islice(entries, bisect_left(entries, least), None)


def _remove_sorted(entries: list[tuple[int, str]], entry: tuple[int, str]) -> None:
    del entries[bisect_left(entries, entry)]


def _discard(table: dict[str, dict[str, None]], key: str, name: str) -> None:
    if key in table:
        table[key].pop(name, None)
        if not table[key]:
            del table[key]
