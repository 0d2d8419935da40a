"""The provisioner of the default storage class: a volume is a folder below the data folder.

Its volumes are reached from everywhere, as all real nodes are this machine and simulated ones have no files, unless
their class restricts them to some topologies.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from stromboli.embedded.kinds.builtin.storage_class import PROVISIONER
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.volumes.volume_matches import (
    PROVISIONED_BY,
    class_of,
    is_ours,
    reference_to,
)

_SIZE_UNLESS_GIVEN = "1Gi"
"""Of claims from before the size was required; a folder has none in truth."""


class FolderProvisioner:
    def __init__(self, data: Path) -> None:
        self._folder = data / "volumes"

    def refusal(self, claim: Content) -> str:
        """Why no volume can be made for a claim; empty if one can."""
        spec = claim["spec"]
        if spec.get("volumeMode") == "Block":
            return f"{PROVISIONER} makes folders: volumeMode Block is not possible"
        if spec.get("selector") is not None:
            return "claim.Spec.Selector is not supported"
        if spec.get("dataSource") is not None or spec.get("dataSourceRef") is not None:
            return f"{PROVISIONER} makes empty folders: a data source is not possible"
        if spec.get("volumeAttributesClassName"):
            return f"{PROVISIONER} makes folders: volumeAttributesClassName is not possible"
        return ""

    def volume(self, claim: Content, storage_class: Content) -> Content:
        """The volume for a claim; its folder is made when it is first mounted."""
        name = f"pvc-{claim['metadata']['uid']}"
        spec = claim["spec"]
        requests = (spec.get("resources") or {}).get("requests") or {}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
                "capacity": {"storage": requests.get("storage") or _SIZE_UNLESS_GIVEN},
                "claimRef": reference_to(claim),
                "hostPath": {"path": str(self._path(name)), "type": "DirectoryOrCreate"},
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
                "storageClassName": class_of(claim),
                "volumeMode": "Filesystem",
                **_node_affinity(storage_class),
            },
        }

    def relocate(self, volume: Content) -> None:
        """Let a volume follow, in place, a data folder that was moved or copied."""
        name, source = volume["metadata"]["name"], volume["spec"].get("hostPath") or {}
        if is_ours(volume) and Path(source.get("path", "")).parts[-2:] == (self._folder.name, name):
            source["path"] = str(self._path(name))

    async def remove(self, volume: Content) -> None:
        """Remove the folder of a volume, if it is one that we made; `OSError` if it cannot be removed.

        The path follows from the name of the volume, which has no slashes; a link in its place is not followed.
        """
        path = self._path(volume["metadata"]["name"])
        if (volume["spec"].get("hostPath") or {}).get("path") == str(path):
            await asyncio.to_thread(_remove_folder, path)

    def _path(self, name: str) -> Path:
        return self._folder.absolute() / name


def _remove_folder(path: Path) -> None:
    with suppress(FileNotFoundError):  # nobody has mounted it
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)


def _node_affinity(storage_class: Content) -> Content:
    """The topologies that a class allows, as terms of a volume."""
    terms = [
        {
            "matchExpressions": [
                {"key": entry["key"], "operator": "In", "values": entry["values"]}
                for entry in term.get("matchLabelExpressions") or ()
            ]
        }
        for term in storage_class.get("allowedTopologies") or ()
    ]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}
