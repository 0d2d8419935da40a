"""Whatever goes over very many objects is done in slices, between which the event loop serves others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.nodes.usage.cluster_usage import ContainerUsage, Usage
from stromboli.embedded.nodes.usage.simulated_usage import Level
from stromboli.embedded.store.records import Key
from tests.embedded.api_requests import PODS, ApiCaller, config_map, pod, running
from tests.embedded.loop_lag import LoopLag

COUNT = 10_000
MAPS = "/api/v1/namespaces/default/configmaps"
OWNER = "00000000-0000-0000-0000-000000000001"
USAGE = "/apis/metrics.k8s.io/v1beta1/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
LABELS = "%2C".join(f"a!=v{number}" for number in range(50))
READS = [
    ("a list", PODS, ""),
    ("a table", PODS, TABLE),
    ("metadata", PODS, METADATA),
    ("a label selector", f"{PODS}?labelSelector={LABELS}", ""),
    ("a field selector", f"{PODS}?fieldSelector=status.phase!=Running,spec.nodeName!=a", ""),
    ("usage", USAGE, ""),
    ("a table of usage", USAGE, TABLE),
    ("a watch", f"{PODS}?watch=true&timeoutSeconds=1", ""),
    ("a watch of a table", f"{PODS}?watch=true&timeoutSeconds=1", TABLE),
    (
        "a watch with a field selector",
        f"{PODS}?watch=true&timeoutSeconds=1&fieldSelector=spec.nodeName!=b",
        "",
    ),
]


class EveryPodRuns:
    """Usage of pods that no node runs."""

    async def measure(self) -> None:
        """There is nothing to measure."""

    def pod_usage(self, namespace: str, pod: str) -> list[ContainerUsage]:
        return [Level("m", 0.5, 1 << 30, 0.0).at(1000.0)]

    async def node_usage(self, node: str) -> Usage | None:
        return None


async def fill(server: ApiServer, names: str, **meta: Any) -> None:
    """Pods as they are stored, without the way through the API."""
    container = {
        "name": "m",
        "image": "i",
        "env": [{"name": f"E{number}", "value": "x"} for number in range(10)],
    }
    for number in range(COUNT):
        name = f"{names}{number:05}"
        content = pod(
            name, containers=[container], metadata={"namespace": "default", "uid": f"uid-{name}", **meta}
        )
        content["status"] = {"phase": "Pending"}
        server.store.put(Key("pods", "default", name), content)
        if number % 200 == 0:
            await server.store.wait_committed()
            await asyncio.sleep(0)
    await server.store.wait_committed()


async def read(api: ApiCaller, path: str, accept: str) -> int:
    """The size of the answer, which is not decoded."""
    headers = {"Authorization": f"Bearer {api.server.token}", "Accept": accept or "application/json"}
    size = 0
    async with api._session.get(api.server.url + path, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        async for chunk in answer.content.iter_chunked(65536):
            size += len(chunk)
    return size


@pytest.mark.slow
def test_reading_very_many_objects_lets_others_be_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tls=False, usage=EveryPodRuns()) as api:
            await fill(api.server, "p")
            for subject, path, accept in READS:
                async with LoopLag() as lag:
                    size = await read(api, path, accept)
                assert size > COUNT * 100, subject
                lag.check(subject)

    asyncio.run(scenario())


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.slow
def test_deleting_very_many_objects_lets_others_be_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            pods = api.server.store.table("pods")
            await fill(api.server, "p")
            async with (
                LoopLag() as lag,
                api._session.delete(
                    api.server.url + PODS, headers={"Authorization": f"Bearer {api.server.token}"}
                ) as answer,
            ):
                assert answer.status == 200
                while await answer.content.readany():
                    pass
            lag.check("a collection")
            owner = config_map("owner", uid=OWNER, namespace="default")
            api.server.store.put(Key("configmaps", "default", "owner"), owner)
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": OWNER}
            await fill(api.server, "d", ownerReferences=[{**reference, "blockOwnerDeletion": True}])
            assert len(pods) == COUNT
            async with LoopLag() as lag:
                await api.delete(f"{MAPS}/owner?propagationPolicy=Foreground")
                await until(lambda: not len(pods))
            lag.check("dependents of an owner")

    asyncio.run(scenario())


@pytest.mark.slow
def test_counting_very_many_pods_lets_others_be_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            await fill(api.server, "p", labels={"app": "web"})
            budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
            async with LoopLag() as lag:
                for number in range(3):
                    await api.post(budgets, {"metadata": {"name": f"b{number}"}, "spec": spec})
                store = api.server.store
                await until(lambda: b'"expectedPods":10000' in store.get(disrupted, "default", "b2").data)
            lag.check("budgets")

    disrupted = "poddisruptionbudgets.policy"
    asyncio.run(scenario())


def test_the_use_of_a_quota_is_counted_once_and_not_at_every_write(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            await fill(api.server, "p")
            quotas = "/api/v1/namespaces/default/resourcequotas"
            await api.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": str(COUNT + 9)}}})
            store = api.server.store
            await until(lambda: b'"used"' in store.get("resourcequotas", "default", "q").data)
            async with LoopLag() as lag:
                for number in range(9):
                    await api.post(PODS, pod(f"new{number}"))
                    used = f'"used":{{"pods":"{COUNT + 1 + number}"}}'.encode()
                    await until(lambda used=used: used in store.get("resourcequotas", "default", "q").data)
            lag.check("pods below a quota")
            assert (await api.request("POST", PODS, pod("late")))[0] == 403

    asyncio.run(scenario())


def test_a_namespace_has_so_many_quotas_of_so_many_resources(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            quotas = "/api/v1/namespaces/default/resourcequotas"
            hard = {f"count/things{number}": "1" for number in range(501)}
            status, answer = await api.request(
                "POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}}
            )
            assert (status, "limits 501 resources, and 500 are allowed" in answer["message"]) == (403, True)
            for number in range(100):
                await api.post(quotas, {"metadata": {"name": f"q{number}"}})
            status, answer = await api.request("POST", quotas, {"metadata": {"name": "q"}})
            assert (status, "would have 101 quotas, and 100 are allowed" in answer["message"]) == (403, True)

    asyncio.run(scenario())
