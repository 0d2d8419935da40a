"""Volumes as folders: made once per pod, linked below the pod's root at their mount paths."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.real.container_environment import ContainerError, Fetch, fetched, field_value

SUPPORTED = "configMap, secret, emptyDir, downwardAPI, projected, hostPath, persistentVolumeClaim"
_FAILED = "FailedMount"


class PodVolumes:
    """The volumes of one pod."""

    def __init__(self, pod: NodePod, folder: Path, claims: Path, fetch: Fetch) -> None:
        """`claims` is where claims live on from pod to pod."""
        self._pod = pod
        self._folder = folder / "volumes"
        self._claims = claims
        self._fetch = fetch
        self.root = folder / "root"

    def make(self) -> None:
        """All folders, with what belongs in them; `ContainerError` says what is missing."""
        self.root.mkdir(parents=True, exist_ok=True)
        places = {
            str(volume.get("name", "")): self._volume(volume) for volume in self._pod.spec.volumes or ()
        }
        for container in [*self._pod.spec.containers, *(self._pod.spec.init_containers or ())]:
            for mount in container.get("volumeMounts") or ():
                self._mount(mount, places)

    def path(self, inside: str) -> Path:
        """Where a path of the container is on this machine."""
        return _below(self.root, inside)

    def _mount(self, mount: Content, places: dict[str, Path]) -> None:
        name, inside = str(mount.get("name", "")), str(mount.get("mountPath", ""))
        if name not in places:
            raise ContainerError(f'volumeMount "{name}" has no volume of that name', _FAILED)
        target = places[name]
        if mount.get("subPath"):
            target = _below(target, str(mount["subPath"]))
            if not target.exists():
                target.mkdir(parents=True)
        link = self.path(inside)
        if link == self.root:
            raise ContainerError("mountPath / is not possible on a real node", _FAILED)
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)

    def _volume(self, volume: Content) -> Path:
        name = str(volume.get("name", ""))
        place = _below(self._folder, name)
        if (path := volume.get("hostPath")) is not None:
            return _host_path(path)
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            place = _below(self._claims, f"{self._pod.namespace}_{claim.get('claimName', '')}")
            place.mkdir(parents=True, exist_ok=True)
            return place
        place.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            return place
        sources = self._sources(volume)
        if sources is None:
            kind = next((key for key in volume if key != "name"), "nothing")
            raise ContainerError(
                f'volume "{name}": {kind} is not supported on a real node, only {SUPPORTED}', _FAILED
            )
        for source in sources:
            self._fill(place, source)
        return place

    def _sources(self, volume: Content) -> list[Content] | None:
        if volume.get("projected") is not None:
            return list(volume["projected"].get("sources") or ())
        found = {
            key: volume[key] for key in ("configMap", "secret", "downwardAPI") if volume.get(key) is not None
        }
        return [found] if found else None

    def _fill(self, place: Path, source: Content) -> None:
        try:
            for kind, field, named in (
                ("ConfigMap", "configMap", "name"),
                ("Secret", "secret", "secretName"),
            ):
                given = source.get(field)
                if given is not None:
                    name_field = named if named in given else "name"
                    self._write(
                        place, fetched(kind, given, self._fetch, name_field) or {}, given, kind == "Secret"
                    )
        except ContainerError as error:
            raise ContainerError(f"MountVolume.SetUp failed: {error}", _FAILED) from None
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            value = field_value(self._pod, str((item.get("fieldRef") or {}).get("fieldPath", "")))
            _put(_below(place, str(item.get("path", ""))), value.encode(), 0o644)

    def _write(self, place: Path, found: dict[str, bytes], given: Content, secret: bool) -> None:
        mode = int(given.get("defaultMode") or (0o600 if secret else 0o644)) & 0o777
        items = given.get("items")
        wanted = (
            {item["key"]: str(item.get("path", "")) for item in items}
            if items
            else {key: key for key in found}
        )
        for key, path in wanted.items():
            if key not in found:
                raise ContainerError(f"references non-existent key: {key}", _FAILED)
            _put(_below(place, path), found[key], mode)


def _host_path(path: Content) -> Path:
    place = Path(str(path.get("path", "")))
    if not place.is_absolute():
        raise ContainerError(f"hostPath {str(place)!r} is not absolute", _FAILED)
    if path.get("type") == "DirectoryOrCreate":
        place.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        raise ContainerError(f"hostPath {place} does not exist", _FAILED)
    return place


def _below(folder: Path, inside: str) -> Path:
    """A path below a folder, wherever its dots would lead."""
    parts = [part for part in PurePosixPath("/" + inside).parts[1:] if part not in ("..", "")]
    return folder.joinpath(*parts)


def _put(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)


def remove_folder(folder: Path) -> None:
    """A pod's folder, with everything in it; what links lead to stays."""
    shutil.rmtree(folder, ignore_errors=True)
