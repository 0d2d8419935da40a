"""The volumes and claims that the binding of volumes has to look at, by class and by name."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from stromboli.embedded.kinds.builtin.persistent_volume import VOLUMES
from stromboli.embedded.kinds.builtin.persistent_volume_claim import CLAIMS
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.volumes.volume_matches import capacity_of, class_of
from stromboli.embedded.store.records import Change, Key, Record

Name = tuple[str, str]
"""Namespace and name of a claim."""
Size = tuple[Any, str]
"""Capacity and name of a volume."""


class VolumeIndex:
    """Kept up by changes, so that a claim costs what volumes of its class are free."""

    def __init__(self) -> None:
        self._free: dict[str, list[Size]] = {}
        """Volumes that are Available, by class, the smallest first."""
        self._volumes: dict[str, Content] = {}
        """The same volumes, by name."""
        self._taken: dict[Name, dict[str, None]] = {}
        """Volumes that are bound to a claim or set aside for it, by its name."""
        self._unbound: dict[str, dict[Key, None]] = {}
        """Claims without a volume, by class."""

    def update(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is not None:
            self._set(before, add=False)
        if after is not None:
            self._set(after, add=True)

    def add(self, record: Record) -> None:
        self._set(record, add=True)

    def free(self, storage_class: str, size: Any) -> Iterator[Content]:
        """Volumes of a class that have at least this size, the smallest first.

        The index follows what is committed: some of them may be bound by now.
        """
        volumes = self._free.get(storage_class, [])
        return (self._volumes[name] for _, name in volumes[bisect_left(volumes, (size, "")) :])

    def is_free(self, name: str) -> bool:
        return name in self._volumes

    def taken_by(self, namespace: str, name: str) -> list[str]:
        """Names of volumes that are bound to a claim of this name, or set aside for it."""
        return list(self._taken.get((namespace, name), ()))

    def unbound(self, storage_class: str) -> Iterator[Key]:
        return iter(list(self._unbound.get(storage_class, ())))

    def _set(self, record: Record, add: bool) -> None:
        content = record.object()
        if record.key.resource == VOLUMES:
            self._set_volume(content, add)
        elif record.key.resource == CLAIMS and not content["spec"].get("volumeName"):
            _put(self._unbound, class_of(content), record.key, add)

    def _set_volume(self, volume: Content, add: bool) -> None:
        name = volume["metadata"]["name"]
        if reference := volume["spec"].get("claimRef"):
            claim = str(reference.get("namespace", "")), str(reference.get("name", ""))
            _put(self._taken, claim, name, add)
        elif (volume.get("status") or {}).get("phase") == "Available":
            self._remove_free(name)
            if add:
                self._volumes[name] = volume
                insort(self._free.setdefault(class_of(volume), []), (capacity_of(volume), name))

    def _remove_free(self, name: str) -> None:
        if (volume := self._volumes.pop(name, None)) is None:
            return
        volumes = self._free[class_of(volume)]
        del volumes[bisect_left(volumes, (capacity_of(volume), name))]
        if not volumes:
            del self._free[class_of(volume)]


def _put(groups: dict[Any, dict[Any, None]], group: object, item: object, add: bool) -> None:
    if add:
        groups.setdefault(group, {})[item] = None
    elif group in groups:
        groups[group].pop(item, None)
        if not groups[group]:
            del groups[group]
