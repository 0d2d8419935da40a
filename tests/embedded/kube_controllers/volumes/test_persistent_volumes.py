"""Volumes of the default storage class; what Kubernetes does too is tested with its own controllers as well."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from stromboli.embedded.http.api_server import ApiServer
from tests.embedded.api_requests import MERGE, PODS, ApiCaller, pod, running
from tests.embedded.kube_controllers.test_controller_loop import eventually

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
EVENTS = "/api/v1/namespaces/default/events"
PROVISIONER = "stromboli.sh/folder"
SELECTED = {"volume.kubernetes.io/selected-node": "n1"}


def claim(name: str, storage_class: str | None, **spec: Any) -> dict[str, Any]:
    named = {} if storage_class is None else {"storageClassName": storage_class}
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**base, **named, **spec},
    }


def storage_class(name: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": PROVISIONER,
        **more,
    }


async def bound(api: ApiCaller, name: str) -> dict[str, Any]:
    """The volume of a claim, once the claim has one."""

    async def is_bound() -> bool:
        return bool((await api.get(f"{CLAIMS}/{name}"))["status"]["phase"] == "Bound")

    await eventually(is_bound, 20)
    volume: dict[str, Any] = await api.get(
        f"{VOLUMES}/{(await api.get(f'{CLAIMS}/{name}'))['spec']['volumeName']}"
    )
    return volume


def test_a_volume_is_a_folder_that_goes_with_its_claim_or_is_retained(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLASSES, storage_class("goes"))
            await api.post(CLASSES, storage_class("stays", reclaimPolicy="Retain"))
            folders = {}
            for name in ("goes", "stays"):
                await api.post(CLAIMS, claim(name, name))
                volume = await bound(api, name)
                folders[name] = Path(volume["spec"]["hostPath"]["path"])
                assert folders[name].is_relative_to(tmp_path.absolute())
                folders[name].mkdir(parents=True)
                await api.delete(f"{CLAIMS}/{name}")

            async def reclaimed() -> bool:
                items = (await api.get(VOLUMES))["items"]
                return [item["status"]["phase"] for item in items] == ["Released"]

            await eventually(reclaimed, 20)
            assert not folders["goes"].exists()
            assert folders["stays"].exists()

    asyncio.run(scenario())


def volume_of_a_user(name: str, path: Path) -> dict[str, Any]:
    volume = static_volume(name)
    volume["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": PROVISIONER}
    volume["spec"]["hostPath"] = {"path": str(path)}
    volume["spec"]["persistentVolumeReclaimPolicy"] = "Delete"
    return volume


def test_only_folders_that_the_provisioner_made_are_removed(tmp_path: Path) -> None:
    data, precious = tmp_path / "data", tmp_path / "precious"
    (data / "volumes" / "lookalike").mkdir(parents=True)
    (precious / "inside").mkdir(parents=True)

    async def scenario() -> None:
        async with running(data) as api:
            await api.post(CLASSES, storage_class("folders"))
            await api.post(CLAIMS, claim("linked", "folders"))
            folder = Path((await bound(api, "linked"))["spec"]["hostPath"]["path"])
            folder.symlink_to(precious)
            await api.post(VOLUMES, volume_of_a_user("lookalike", precious))
            await api.post(CLAIMS, claim("theirs", "static"))
            await bound(api, "theirs")
            for name in ("linked", "theirs"):
                await api.delete(f"{CLAIMS}/{name}")
            await eventually(lambda: no_volumes(api), 20)
            assert not folder.is_symlink()
            assert (precious / "inside").exists()
            assert (data / "volumes" / "lookalike").exists()

    asyncio.run(scenario())


async def no_volumes(api: ApiCaller) -> bool:
    return not (await api.get(VOLUMES))["items"]


def test_a_folder_that_cannot_be_removed_fails_its_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLASSES, storage_class("folders"))
            await api.post(CLAIMS, claim("kept", "folders"))
            volume = await bound(api, "kept")
            Path(volume["spec"]["hostPath"]["path"]).mkdir(parents=True)
            monkeypatch.setattr(shutil, "rmtree", refuse)
            await api.delete(f"{CLAIMS}/kept")

            async def failed() -> bool:
                (item,) = (await api.get(VOLUMES))["items"]
                return bool(item["status"]["phase"] == "Failed" and "denied" in item["status"]["message"])

            await eventually(failed, 20)
            reasons = [event["reason"] for event in (await api.get(EVENTS))["items"]]
            assert "VolumeFailedDelete" in reasons
            monkeypatch.undo()

    asyncio.run(scenario())


def test_a_volume_that_is_deleted_before_its_claim_takes_its_folder_along(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLASSES, storage_class("folders"))
            await api.post(CLAIMS, claim("late", "folders"))
            volume = await bound(api, "late")
            folder = Path(volume["spec"]["hostPath"]["path"])
            folder.mkdir(parents=True)
            await api.delete(f"{VOLUMES}/{volume['metadata']['name']}")
            assert not await no_volumes(api)
            await api.delete(f"{CLAIMS}/late")
            await eventually(lambda: no_volumes(api), 20)
            assert not folder.exists()

    asyncio.run(scenario())


def test_a_claim_grows_if_its_class_allows_it(tmp_path: Path) -> None:
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}

    async def scenario() -> None:
        async with running(tmp_path) as api:
            for name, allowed in (("fixed", False), ("elastic", True)):
                await api.post(CLASSES, storage_class(name, allowVolumeExpansion=allowed))
                await api.post(CLAIMS, claim(name, name))
                await bound(api, name)
            status, refusal = await api.request("PATCH", f"{CLAIMS}/fixed", larger, MERGE)
            assert (status, "must support resize" in refusal["message"]) == (403, True)
            await api.patch(f"{CLAIMS}/elastic", larger)

            async def grown() -> bool:
                volume = await bound(api, "elastic")
                return bool(volume["spec"]["capacity"] == {"storage": "2Gi"})

            await eventually(grown, 20)
            assert (await api.get(f"{CLAIMS}/elastic"))["status"]["capacity"] == {"storage": "2Gi"}

    asyncio.run(scenario())


def test_a_volume_is_where_its_class_allows_it(tmp_path: Path) -> None:
    zones = {"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}

    async def scenario() -> None:
        async with running(tmp_path) as api:
            allowed = [{"matchLabelExpressions": [zones]}]
            await api.post(CLASSES, storage_class("zoned", allowedTopologies=allowed))
            await api.post(CLAIMS, claim("zoned", "zoned"))
            affinity = (await bound(api, "zoned"))["spec"]["nodeAffinity"]
            terms = [{"matchExpressions": [{**zones, "operator": "In"}]}]
            assert affinity == {"required": {"nodeSelectorTerms": terms}}

    asyncio.run(scenario())


def test_a_claim_that_was_left_half_bound_gets_the_volume_that_was_made_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLASSES, storage_class("folders"))
            await api.post(CLAIMS, claim("half", "folders"))
            volume = await bound(api, "half")
            record = api.server.store.get("persistentvolumeclaims", "default", "half")
            assert record is not None
            content = record.object()
            del content["spec"]["volumeName"], content["metadata"]["annotations"]
            api.server.store.put(record.key, {**content, "status": {"phase": "Pending"}})
        async with running(tmp_path) as api:
            assert (await bound(api, "half"))["metadata"]["uid"] == volume["metadata"]["uid"]
            assert len((await api.get(VOLUMES))["items"]) == 1

    asyncio.run(scenario())


def test_volumes_follow_a_data_folder_that_is_moved(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "here") as api:
            await api.post(CLASSES, storage_class("folders"))
            await api.post(CLAIMS, claim("data", "folders"))
            await bound(api, "data")
        (tmp_path / "here").rename(tmp_path / "there")
        async with running(tmp_path / "there") as api:
            path = Path((await bound(api, "data"))["spec"]["hostPath"]["path"])
            assert path.parent == tmp_path / "there" / "volumes"

    asyncio.run(scenario())


def test_claims_of_an_earlier_version_get_their_volumes_and_are_protected(tmp_path: Path) -> None:
    """They had no class, no volume and no finalizer, and their pods ran already."""

    async def scenario() -> None:
        async with running(tmp_path) as api:
            old = await api.post(CLAIMS, claim("old", None))
            volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "old"}}]
            await api.post(PODS, pod("runs", volumes=volumes, nodeName="n1"))
            record = api.server.store.get("persistentvolumeclaims", "default", "old")
            assert record is not None
            content = record.object()
            del (
                content["metadata"]["finalizers"],
                content["spec"]["resources"],
                content["spec"]["accessModes"],
            )
            api.server.store.put(record.key, content)
        async with running(tmp_path, storage_class=True) as api:
            volume = await bound(api, "old")
            assert volume["spec"]["claimRef"]["uid"] == old["metadata"]["uid"]
            await api.delete(f"{CLAIMS}/old")
            meta = (await api.get(f"{CLAIMS}/old"))["metadata"]
            assert meta["finalizers"] == ["kubernetes.io/pvc-protection"]
            assert meta["annotations"]["volume.kubernetes.io/selected-node"] == "n1"

    asyncio.run(scenario())


def static_volume(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "static"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**spec, "hostPath": {"path": "/nowhere"}},
    }


def test_a_claim_without_its_finalizer_gets_it_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLAIMS, claim("a", "none"))
            await api.patch(f"{CLAIMS}/a", {"metadata": {"finalizers": None}})

            async def is_protected() -> bool:
                finalizers = (await api.get(f"{CLAIMS}/a"))["metadata"].get("finalizers")
                return bool(finalizers == ["kubernetes.io/pvc-protection"])

            await eventually(is_protected)

    asyncio.run(scenario())


def test_claims_that_come_at_once_get_a_volume_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            numbers = range(40)
            await asyncio.gather(*(api.post(VOLUMES, static_volume(f"v{number}")) for number in numbers))
            await asyncio.gather(*(api.post(CLAIMS, claim(f"c{number}", "static")) for number in numbers))
            volumes = [(await bound(api, f"c{number}"))["metadata"]["name"] for number in numbers]
            assert len(set(volumes)) == len(numbers)

    asyncio.run(scenario())


def test_a_delayed_claim_gets_its_volume_when_a_node_is_selected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLASSES, storage_class("waits", volumeBindingMode="WaitForFirstConsumer"))
            await api.post(CLAIMS, claim("late", "waits"))

            async def told() -> bool:
                items = (await api.get(EVENTS))["items"]
                return any(item["reason"] == "WaitForFirstConsumer" for item in items)

            await eventually(told, 20)
            assert (await api.get(VOLUMES))["items"] == []
            await api.patch(f"{CLAIMS}/late", {"metadata": {"annotations": SELECTED}})
            volume = await bound(api, "late")
            assert volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == PROVISIONER

    asyncio.run(scenario())


def test_what_no_folder_can_be_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CLASSES, storage_class("folders"))
            await api.post(CLAIMS, claim("block", "folders", volumeMode="Block"))

            async def told() -> bool:
                items = (await api.get(EVENTS))["items"]
                return any("volumeMode Block is not possible" in item["message"] for item in items)

            await eventually(told, 20)

    asyncio.run(scenario())


def test_the_default_class_is_made_once_and_serves_claims_without_a_class(tmp_path: Path) -> None:
    async def classes(api: ApiServer) -> list[str]:
        return [record.key.name for record in api.store.list("storageclasses.storage.k8s.io")]

    async def scenario() -> None:
        async with running(tmp_path, storage_class=True) as api:
            created = await api.post(CLAIMS, claim("any", None))
            assert created["spec"]["storageClassName"] == "standard"
            await api.delete(f"{CLASSES}/standard")
        async with ApiServer(tmp_path, tls=False, storage_class=True) as server:
            assert await classes(server) == []  # whoever deleted it does not want it back

    asyncio.run(scenario())


def test_a_claim_whose_volume_cannot_be_made_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / ".." / tmp_path.name) as api:  # which no volume may have in its path
            await api.post(CLASSES, storage_class("at-once"))
            await api.post(CLAIMS, claim("data", "at-once"))

            async def is_told() -> bool:
                events = (await api.get(EVENTS))["items"]
                told = [event["message"] for event in events if event["reason"] == "ProvisioningFailed"]
                return len(told) == 1 and "must not contain '..'" in told[0]

            await eventually(is_told, 20)

    asyncio.run(scenario())
