"""The provisioner of the default storage class: a volume is a folder below the data folder.

Its volumes have no node affinity: all real nodes are this machine, and simulated ones have no files.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from stromboli.embedded.admission.volume_admission import PROVISIONER
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.volumes.volume_matches import PROVISIONED_BY, class_of, reference_to


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
        return ""

    def volume(self, claim: Content, storage_class: Content) -> Content:
        """The volume for a claim; its folder is made when it is first mounted."""
        name = f"pvc-{claim['metadata']['uid']}"
        spec = claim["spec"]
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "accessModes": spec["accessModes"],
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "claimRef": reference_to(claim),
                "hostPath": {"path": str(self._path(name)), "type": "DirectoryOrCreate"},
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
                "storageClassName": class_of(claim),
                "volumeMode": "Filesystem",
            },
        }

    async def remove(self, name: str) -> None:
        """Remove the folder of a volume; it follows from the name alone, which cannot lead elsewhere."""
        await asyncio.to_thread(shutil.rmtree, self._path(name), ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self._folder.absolute() / name
