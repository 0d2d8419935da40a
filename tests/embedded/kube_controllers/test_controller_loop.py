"""What happens to objects by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.controllers.workqueue import WorkQueue
from stromboli.embedded.kube_controllers import server_controllers
from stromboli.embedded.kube_controllers.controller import ServerContext
from stromboli.embedded.kube_controllers.pod_garbage_collection import QUARANTINE, PodGarbageCollector
from tests.controllers.manual_clock import Clock
from tests.embedded.api_requests import PODS, ApiCaller, config_map, pod, running

MAPS = "/api/v1/namespaces/default/configmaps"
SPACES = "/api/v1/namespaces"


async def eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.01)


async def names(api: ApiCaller, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.get(path))["items"]]


def owned(name: str, owner: dict[str, Any], block: bool = False) -> dict[str, Any]:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
    }
    return pod(
        name, metadata={"ownerReferences": [reference], "finalizers": ["example.com/x"] if block else []}
    )


def test_what_is_owned_goes_with_its_owner_and_what_never_had_one_goes_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            owner = await api.post(MAPS, config_map("owner"))
            for name in ("a", "b"):
                await api.post(PODS, owned(name, owner))
            await api.post(PODS, pod("free"))
            another = {**owner, "metadata": {**owner["metadata"], "uid": "of-none"}}
            await api.post(PODS, owned("never", another))
            await eventually(lambda: is_(names(api, PODS), ["a", "b", "free"]))
            await api.delete(f"{MAPS}/owner")
            await eventually(lambda: is_(names(api, PODS), ["free"]))
            await api.post(PODS, owned("late", owner))
            await eventually(lambda: is_(names(api, PODS), ["free"]))

    asyncio.run(scenario())


async def is_(value: Awaitable[Any], expected: Any) -> bool:
    return bool(await value == expected)


def test_every_namespace_has_the_ca_bundle(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, workloads=True) as api:
            bundle = {"ca.crt": api.server.ca.read_text()}
            await api.post(SPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
            for namespace in ("default", "kube-system", "team"):
                path = f"{SPACES}/{namespace}/configmaps/kube-root-ca.crt"

                async def published(path: str = path) -> bool:
                    status, content = await api.request("GET", path)
                    return status == 200 and content.get("data") == bundle

                await eventually(published)
                await api.patch(path, {"data": {"ca.crt": "mine"}})
                await eventually(published)
                await api.delete(path)
                await eventually(published)

    asyncio.run(scenario())


def test_orphans_stay(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            owner = await api.post(MAPS, config_map("owner"))
            await api.post(PODS, owned("a", owner))
            await api.delete(f"{MAPS}/owner", {"propagationPolicy": "Orphan"})

            async def gone() -> bool:
                return (await api.request("GET", f"{MAPS}/owner"))[0] == 404

            await eventually(gone)
            assert "ownerReferences" not in (await api.get(f"{PODS}/a"))["metadata"]

    asyncio.run(scenario())


def test_an_owner_waits_in_the_foreground(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            owner = await api.post(MAPS, config_map("owner"))
            await api.post(PODS, owned("a", owner, block=True))
            await api.delete(f"{MAPS}/owner?propagationPolicy=Foreground")

            async def leaving() -> bool:
                return "deletionTimestamp" in (await api.get(f"{PODS}/a"))["metadata"]

            await eventually(leaving)
            assert (await api.get(f"{MAPS}/owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]
            await api.patch(f"{PODS}/a", {"metadata": {"finalizers": None}})

            async def gone() -> bool:
                return (await api.request("GET", f"{MAPS}/owner"))[0] == 404

            await eventually(gone)

    asyncio.run(scenario())


async def conditions_of(api: ApiCaller, path: str) -> dict[str, dict[str, Any]]:
    """Of an object that will have some, by type."""
    found: list[dict[str, Any]] = []

    async def reported() -> bool:
        found[:] = (await api.get(path))["status"].get("conditions", ())
        return bool(found)

    await eventually(reported)
    return {condition["type"]: condition for condition in found}


def test_a_namespace_comes_with_an_account_and_goes_when_it_is_empty(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(SPACES, {"metadata": {"name": "team"}})
            await eventually(lambda: is_(names(api, f"{SPACES}/team/serviceaccounts"), ["default"]))
            path = f"{SPACES}/team/configmaps"
            held = config_map("held", finalizers=["example.com/x"])
            await api.post(path, held)
            await api.post(path, config_map("a"))
            assert (await api.delete(f"{SPACES}/team"))["status"]["phase"] == "Terminating"
            await eventually(lambda: is_(names(api, path), ["held"]))
            conditions = await conditions_of(api, f"{SPACES}/team")
            assert {name: condition["status"] for name, condition in conditions.items()} == {
                "NamespaceDeletionDiscoveryFailure": "False",
                "NamespaceDeletionGroupVersionParsingFailure": "False",
                "NamespaceDeletionContentFailure": "False",
                "NamespaceContentRemaining": "True",
                "NamespaceFinalizersRemaining": "True",
            }
            assert conditions["NamespaceContentRemaining"]["message"] == (
                "Some resources are remaining: configmaps. has 1 resource instances"
            )
            assert conditions["NamespaceFinalizersRemaining"]["message"] == (
                "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"
            )
            status, answer = await api.request("POST", path, config_map("b"))
            assert (status, answer["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
            await api.patch(f"{path}/held", {"metadata": {"finalizers": None}})

            async def gone() -> bool:
                return (await api.request("GET", f"{SPACES}/team"))[0] == 404

            await eventually(gone)
            assert (await api.request("DELETE", f"{SPACES}/default"))[0] == 403

    asyncio.run(scenario())


def test_a_pod_on_a_node_that_does_not_exist_waits_for_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
            await api.post("/api/v1/nodes", node)
            for name, node_name in (("a", "n1"), ("b", "nowhere")):
                await api.post(PODS, pod(name))
                await api.post(f"{PODS}/{name}/binding", {"target": {"name": node_name}})
                await api.delete(f"{PODS}/{name}")
            await eventually(lambda: is_(names(api, PODS), ["a"]))
            await api.delete("/api/v1/nodes/n1")
            await eventually(lambda: is_(names(api, PODS), []))

    asyncio.run(scenario())


def test_a_pod_on_a_node_that_does_not_exist_has_failed_though_a_finalizer_keeps_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, pod("kept", metadata={"finalizers": ["example.com/x"]}))
            await api.post(f"{PODS}/kept/binding", {"target": {"name": "nowhere"}})
            await api.delete(f"{PODS}/kept")

            async def failed() -> bool:
                return bool((await api.get(f"{PODS}/kept"))["status"]["phase"] == "Failed")

            await eventually(failed)

    asyncio.run(scenario())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the pod garbage collector, the only controller of the test."""
    clock = Clock()

    def collector(context: ServerContext) -> PodGarbageCollector:
        controller = PodGarbageCollector(context)
        controller.queue = WorkQueue(clock)
        return controller

    monkeypatch.setattr(server_controllers, "SERVER_CONTROLLERS", (collector,))
    return clock


async def in_quarantine(clock: Clock) -> int:
    return clock.pending


def test_a_pod_that_is_bound_to_a_deleted_node_is_deleted_after_a_quarantine(
    tmp_path: Path, clock: Clock
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for name in ("n1", "n2", "n3"):
                await api.post(
                    "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
                )
            await api.delete("/api/v1/nodes/n2")
            finalizers = {"finalizers": ["example.com/x"]}
            for name, node, meta in (
                ("a", "n1", {}),
                ("b", "n2", finalizers),
                ("c", "n3", {}),
                ("d", "n2", {}),
            ):
                await api.post(PODS, pod(name, metadata=meta))
                await api.post(f"{PODS}/{name}/binding", {"target": {"name": node}})
            await api.delete("/api/v1/nodes/n3")
            await api.post(PODS, pod("e"))
            await eventually(lambda: is_(in_quarantine(clock), 3))
            clock.pass_(QUARANTINE - 1)
            assert await names(api, PODS) == ["a", "b", "c", "d", "e"]
            clock.pass_(1)
            await eventually(lambda: is_(names(api, PODS), ["a", "b", "e"]))
            status = (await api.get(f"{PODS}/b"))["status"]
            assert status["phase"] == "Failed"
            reasons = {condition["type"]: condition.get("reason") for condition in status["conditions"]}
            assert reasons["DisruptionTarget"] == "DeletionByPodGC"

    asyncio.run(scenario())


def test_a_pod_stays_if_its_node_is_registered_within_the_quarantine(tmp_path: Path, clock: Clock) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for name in ("early", "late"):
                await api.post(PODS, pod(name))
                await api.post(f"{PODS}/{name}/binding", {"target": {"name": name}})
            await eventually(lambda: is_(in_quarantine(clock), 2))
            await api.post(
                "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "early"}}
            )
            clock.pass_(QUARANTINE)
            await eventually(lambda: is_(names(api, PODS), ["early"]))

    asyncio.run(scenario())


def test_what_an_owner_leaves_behind_goes_in_the_background(tmp_path: Path) -> None:
    """Though it has dependents of its own, which may wait for it to go."""

    async def scenario() -> None:
        async with running(tmp_path) as api:
            owner = await api.post(MAPS, config_map("owner"))
            middle = await api.post(PODS, owned("middle", owner))
            await api.post(PODS, owned("last", middle, block=True))
            await api.delete(f"{MAPS}/owner")
            await eventually(lambda: is_(names(api, PODS), ["last"]))

    asyncio.run(scenario())


GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"


def test_a_native_group_that_is_deleted_stays_until_its_pods_have_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            spec = {"schedulingPolicy": {"basic": {}}}
            for group in ("empty", "done", "gone"):
                await api.post(GROUPS, {"metadata": {"name": group}, "spec": spec})
            for group in ("done", "gone"):
                await api.post(PODS, pod(f"{group}-0", schedulingGroup={"podGroupName": group}))
            for group in ("empty", "done", "gone"):
                await api.delete(f"{GROUPS}/{group}")
            await eventually(lambda: is_(names(api, GROUPS), ["done", "gone"]))
            await api.patch(f"{PODS}/done-0/status", {"status": {"phase": "Succeeded"}})
            await eventually(lambda: is_(names(api, GROUPS), ["gone"]))
            await api.delete(f"{PODS}/gone-0")
            await eventually(lambda: is_(names(api, GROUPS), []))

    asyncio.run(scenario())


def test_a_controller_that_cannot_read_a_change_keeps_it_from_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: PodGarbageCollector, change: object) -> list[Any]:
        raise RuntimeError("unreadable")

    async def scenario() -> None:
        async with running(tmp_path) as api:
            owner = await api.post(MAPS, config_map("owner"))
            await api.post(PODS, owned("a", owner))
            await api.delete(f"{MAPS}/owner")
            await eventually(lambda: is_(names(api, PODS), []))

    monkeypatch.setattr(PodGarbageCollector, "keys_for", broken)
    asyncio.run(scenario())


def test_the_server_changes_no_other_object_of_the_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            objects = api.server.objects
            await api.post(MAPS, config_map("a"))
            earlier = objects.store.get("configmaps", "default", "a")
            await api.delete(f"{MAPS}/a")
            await api.post(MAPS, config_map("a"))
            assert objects.system_update(earlier, lambda stored: stored.update(data={"x": "y"})) is None
            assert (await api.get(f"{MAPS}/a")).get("data") in (None, {})

    asyncio.run(scenario())
