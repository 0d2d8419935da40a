"""Volumes of the default storage class; what Kubernetes does too is tested with its own controllers as well."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from stromboli.embedded.http.api_server import ApiServer
from tests.embedded.api_requests import ApiCaller, running
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


def static_volume(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "static"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**spec, "hostPath": {"path": "/nowhere"}},
    }


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
