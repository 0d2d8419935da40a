"""Where a cluster keeps its policy, and how it is replaced: in a ConfigMap, or in the file of `stromboli up`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stromboli.api.manifests.yaml_lines import MAX_BYTES
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import CONFIG_MAPS, Manifest
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.status.cluster_policy import CONFIG_MAP
from stromboli.kube.request import ApiError
from stromboli.policy.presets import PRESETS, preset


class ConfigMapKey(NamedTuple):
    """A key of a ConfigMap."""

    namespace: str
    name: str
    key: str

    @classmethod
    def of(cls, text: str, key: str) -> ConfigMapKey:
        namespace, slash, name = text.partition("/")
        if not (namespace and slash and name and key):
            raise Usage(f"--configmap {text}: write it as NAMESPACE/NAME, and its key with --key")
        return cls(namespace, name, key)

    def __str__(self) -> str:
        return f"ConfigMap {self.namespace}/{self.name}, key {self.key}"


DEFAULT_KEY = ConfigMapKey(*CONFIG_MAP)
"""Where Volcano's installation keeps it."""


@dataclass(frozen=True, slots=True)
class PolicyPlace:
    """The policy in force as text, where it is kept, and what is needed to replace it."""

    origin: str
    text: str
    config_map: ConfigMapKey | None = None
    object: Manifest | None = None
    """The ConfigMap as it was read, None if there is none yet."""
    file: Path | None = None

    @property
    def destination(self) -> str:
        """Where a policy is put that replaces this one."""
        return str(self.config_map or self.origin)


async def find_policy(session: ClusterSession, key: ConfigMapKey) -> PolicyPlace:
    """The policy of a ConfigMap; without one, of a cluster of `stromboli up` the one that it was started with."""
    running = session.running if session.running is not None and session.running.policy else None
    if running is not None:
        key = DEFAULT_KEY
    found = await session.find(CONFIG_MAPS, key.name, key.namespace)
    text = ((found or {}).get("data") or {}).get(key.key)
    if text is not None and not isinstance(text, str):
        raise ClusterError(f"{key}: no text")
    if running is None or (text or "").strip():
        return PolicyPlace(str(key), text or "", config_map=key, object=found)
    name = running.policy.removeprefix("preset ")
    if name in PRESETS and name != running.policy:
        return PolicyPlace(running.policy, preset(name), config_map=key, object=found)
    path = Path(running.policy)
    return PolicyPlace(str(path), _read(path), file=path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ClusterError(f"{path}: cannot be read: {error.strerror}") from None
    return content.decode(errors="replace")


async def put_policy(session: ClusterSession, place: PolicyPlace, text: str, dry_run: bool) -> None:
    """Put a policy in the place of the one in force; refused if somebody else has changed that meanwhile."""
    if place.config_map is not None:
        await _write_config_map(session, place.config_map, place.object, text, dry_run)
    elif place.file is not None:
        if _read(place.file) != place.text:
            raise ClusterError(f"{place.file} has changed meanwhile: look at it, and apply again")
        if dry_run:
            _check_writable(place.file.resolve())
        else:
            _write_file(place.file, text)


async def _write_config_map(
    session: ClusterSession, key: ConfigMapKey, known: Manifest | None, text: str, dry_run: bool
) -> None:
    if known is None:
        manifest = {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "data": {key.key: text},
        }
        await session.create(CONFIG_MAPS, manifest, key.namespace, dry_run)
        return
    patch = {
        "metadata": {"resourceVersion": known["metadata"].get("resourceVersion")},
        "data": {key.key: text},
    }
    try:
        await session.patch(CONFIG_MAPS, key.name, patch, key.namespace, dry_run=dry_run)
    except ApiError as error:
        if error.status == 409:
            raise ClusterError(f"{key} has changed meanwhile: look at it, and apply again") from None
        raise


def _check_writable(path: Path) -> None:
    for needed in (path, path.parent):
        if not os.access(needed, os.W_OK):
            raise ClusterError(f"{path}: cannot be written: no permission to write {needed}")


def _write_file(path: Path, text: str) -> None:
    """All of it or nothing, as the cluster may read it at any moment; a link goes on pointing to the file."""
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            with unfinished.open("x", encoding="utf-8") as file:
                os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
                file.write(text)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ClusterError(f"{path}: cannot be written: {error.strerror}") from None
