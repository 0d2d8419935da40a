"""The volumes and claims that the binding of volumes has to look at, by class and by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.embedded.admission.volume_admission import CLAIMS, VOLUMES
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.volumes.volume_matches import class_of
from stromboli.embedded.store.records import Change, Key, Record

Name = tuple[str, str]
"""Namespace and name of a claim."""


class VolumeIndex:
    """Kept up by changes, so that a claim costs what volumes of its class are free."""

    def __init__(self) -> None:
        self._free: dict[str, dict[str, Content]] = {}
        """Volumes that are Available, by class."""
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

    def free(self, storage_class: str) -> list[Content]:
        return list(self._free.get(storage_class, {}).values())

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
            _put(self._unbound, class_of(content), record.key, None, add)

    def _set_volume(self, volume: Content, add: bool) -> None:
        name = volume["metadata"]["name"]
        if reference := volume["spec"].get("claimRef"):
            claim = str(reference.get("namespace", "")), str(reference.get("name", ""))
            _put(self._taken, claim, name, None, add)
        elif (volume.get("status") or {}).get("phase") == "Available":
            _put(self._free, class_of(volume), name, volume, add)


def _put(groups: dict[Any, dict[Any, Any]], group: object, item: object, value: object, add: bool) -> None:
    if add:
        groups.setdefault(group, {})[item] = value
    elif group in groups:
        groups[group].pop(item, None)
        if not groups[group]:
            del groups[group]
