"""Volumes as folders: created once per pod, linked below the pod's root at their mount paths."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.peer_names import hosts_config_map, local_names
from stromboli.embedded.nodes.real.container_environment import (
    ContainerError,
    Fetch,
    field_value,
    referenced_data,
)

SUPPORTED = "configMap, secret, emptyDir, downwardAPI, projected, hostPath, persistentVolumeClaim, ephemeral"
_FAILED = "FailedMount"


class PodVolumes:
    """The volumes of one pod."""

    def __init__(self, pod: NodePod, folder: Path, claims: Path, fetch: Fetch) -> None:
        """`claims` is the folder of claims from before they had volumes; these go on with what is in it."""
        self._pod = pod
        self._folder = folder / "volumes"
        self._claims = claims
        self._fetch = fetch
        self._links: set[Path] = set()
        """Mount paths of containers so far; of two volumes at the same path the first stays."""
        self.root = folder / "root"

    def create(self) -> None:
        """Create all folders with their contents; `ContainerError` says what is missing."""
        self.root.mkdir(parents=True, exist_ok=True)
        specs = self._pod.spec.volumes or ()
        volumes = {str(spec.get("name", "")): self._volume(spec) for spec in specs}
        self._links.clear()
        for container in [*self._pod.spec.containers, *(self._pod.spec.init_containers or ())]:
            for mount in container.get("volumeMounts") or ():
                self._mount(mount, volumes)

    def path(self, inside: str) -> Path:
        """The path on this machine of a path in the container."""
        return _below(self.root, inside)

    def working_dir(self, path: str) -> Path:
        """The folder of a container's `workingDir`: below the root, or else on this machine if it exists there."""
        inside = self.path(path)
        if inside.exists():
            return inside
        if Path(path).is_dir():
            return Path(path)
        inside.mkdir(parents=True)
        return inside

    def _mount(self, mount: Content, volumes: dict[str, Path]) -> None:
        name, inside = str(mount.get("name", "")), str(mount.get("mountPath", ""))
        if name not in volumes:
            raise ContainerError(f'volumeMount "{name}" has no volume of that name', _FAILED)
        target = volumes[name]
        if mount.get("subPath"):
            target = _below(target, str(mount["subPath"]))
            if not target.exists():
                target.mkdir(parents=True)
        link = self.path(inside)
        if link == self.root:
            raise ContainerError("mountPath / is not possible on a real node", _FAILED)
        if link in self._links:
            return
        self._links.add(link)
        if link.is_symlink() and link.readlink() != target:
            link.unlink()  # the volume has moved since the pod was started before
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)

    def _volume(self, volume: Content) -> Path:
        name = str(volume.get("name", ""))
        folder = _below(self._folder, name)
        if (path := volume.get("hostPath")) is not None:
            return _host_path(path)
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            return self._claimed(str(claim.get("claimName", "")))
        if volume.get("ephemeral") is not None:
            return self._claimed(f"{self._pod.name}-{name}")
        folder.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            return folder
        sources = self._sources(volume)
        if sources is None:
            kind = next((key for key in volume if key != "name"), "nothing")
            raise ContainerError(
                f'volume "{name}": {kind} is not supported on a real node, only {SUPPORTED}', _FAILED
            )
        for source in sources:
            self._fill(folder, source)
        return folder

    def _claimed(self, claim: str) -> Path:
        """The folder of the volume that a claim is bound to."""
        volume = (self._fetch("PersistentVolume", claim) or {}).get("spec") or {}
        source = volume.get("hostPath") or volume.get("local")
        if source is None:
            raise ContainerError(f'claim "{claim}": its volume is no folder of this machine', _FAILED)
        earlier = _below(self._claims, f"{self._pod.namespace}_{claim}")
        folder = Path(str(source.get("path", "")))
        if earlier.is_dir() and source.get("type") == "DirectoryOrCreate" and not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            earlier.rename(folder)  # made before claims had volumes
        return _host_path(source)

    def _sources(self, volume: Content) -> list[Content] | None:
        if volume.get("projected") is not None:
            return list(volume["projected"].get("sources") or ())
        sources = {
            key: volume[key] for key in ("configMap", "secret", "downwardAPI") if volume.get(key) is not None
        }
        return [sources] if sources else None

    def _fill(self, folder: Path, source: Content) -> None:
        try:
            for kind, field in (("ConfigMap", "configMap"), ("Secret", "secret")):
                reference = source.get(field)
                if reference is not None:
                    name_field = "secretName" if "secretName" in reference else "name"
                    data = referenced_data(kind, reference, self._fetch, name_field) or {}
                    if kind == "ConfigMap" and reference.get("name") == hosts_config_map(self._pod):
                        data = self._with_local_names(data)
                    self._write(folder, data, reference, kind == "Secret")
        except ContainerError as error:
            raise ContainerError(f"MountVolume.SetUp failed: {error}", _FAILED) from None
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            value = field_value(self._pod, str((item.get("fieldRef") or {}).get("fieldPath", "")))
            _put(_below(folder, str(item.get("path", ""))), value.encode(), 0o644)

    def _with_local_names(self, data: dict[str, bytes]) -> dict[str, bytes]:
        local = local_names(self._pod)
        return {key: local(value.decode(errors="replace")).encode() for key, value in data.items()}

    def _write(self, folder: Path, data: dict[str, bytes], reference: Content, secret: bool) -> None:
        mode = int(reference.get("defaultMode") or (0o600 if secret else 0o644)) & 0o777
        items = reference.get("items")
        paths = {item["key"]: str(item.get("path", "")) for item in items or ()} or {key: key for key in data}
        for key, path in paths.items():
            if key not in data:
                if reference.get("optional"):
                    continue
                raise ContainerError(f"references non-existent key: {key}", _FAILED)
            _put(_below(folder, path), data[key], mode)


def _host_path(path: Content) -> Path:
    folder = Path(str(path.get("path", "")))
    if not folder.is_absolute():
        raise ContainerError(f"hostPath {str(folder)!r} is not absolute", _FAILED)
    if path.get("type") == "DirectoryOrCreate":
        folder.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        raise ContainerError(f"hostPath {folder} does not exist", _FAILED)
    return folder


def _below(folder: Path, inside: str) -> Path:
    """A path below a folder; `..` cannot leave it."""
    parts = [part for part in PurePosixPath("/" + inside).parts[1:] if part not in ("..", "")]
    return folder.joinpath(*parts)


def _put(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
