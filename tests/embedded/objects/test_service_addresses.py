"""Addresses of Services over restarts and deletions, in data of earlier releases, and where the range is full."""

from __future__ import annotations

import asyncio
import time
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.data_format import NAME
from stromboli.embedded.kinds.builtin_kinds import BUILT_IN
from stromboli.embedded.objects.service_addresses import NODE_PORTS, SERVICES, ServiceAddresses
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key
from tests.embedded.api_requests import running
from tests.embedded.kube_controllers.test_controller_loop import eventually
from tests.embedded.loop_lag import LIMIT, SLOWNESS

PATH = "/api/v1/namespaces/default/services"
KIND = next(kind for kind in BUILT_IN if kind.id == SERVICES)


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def test_addresses_are_the_same_after_a_restart_and_given_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            first = await api.post(PATH, service("first", type="NodePort"))
        async with running(tmp_path) as api:
            assert (await api.get(f"{PATH}/first"))["spec"] == first["spec"]
            taken = service("second", clusterIP=first["spec"]["clusterIP"])
            assert (await api.request("POST", PATH, taken))[0] == 422
            await api.delete(f"{PATH}/first")
            await api.post(PATH, taken)

    asyncio.run(scenario())


def test_services_that_come_at_once_get_different_addresses(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            made = await asyncio.gather(
                *(api.post(PATH, service(f"s{number}", type="NodePort")) for number in range(50))
            )
        assert len({each["spec"]["clusterIP"] for each in made}) == 50
        assert len({each["spec"]["ports"][0]["nodePort"] for each in made}) == 50

    asyncio.run(scenario())


def test_a_service_cannot_have_a_port_of_nodes_twice(tmp_path: Path) -> None:
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30100}

    async def scenario() -> None:
        async with running(tmp_path) as api:
            twice = service("twice", **local, ports=[{"port": 80, "nodePort": 30100}])
            status, answer = await api.request("POST", PATH, twice)
            assert status == 422
            assert "healthCheckNodePort: Invalid value: 30100: provided port is already" in answer["message"]
            await api.post(PATH, service("apart", **local, ports=[{"port": 80, "nodePort": 30101}]))

    asyncio.run(scenario())


def test_services_of_a_release_without_addresses_get_them(tmp_path: Path) -> None:
    def old(name: str, **spec: Any) -> None:
        content = service(name, **spec)
        content["metadata"] |= {"uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        store.put(Key(SERVICES, "default", name), content)

    async def earlier() -> None:
        nonlocal store
        async with running(tmp_path):
            pass
        (tmp_path / NAME).unlink()  # there were no marks
        store = Store(tmp_path / "objects.db")
        old("plain", type="ClusterIP")
        old("ports", type="NodePort", ports=[{"port": 80, "nodePort": 30100}, {"port": 81}])
        old("none", clusterIP="None")
        old("name", type="ExternalName", externalName="a.b")
        old("odd", clusterIP="192.168.7.7")
        await store.wait_committed()
        await store.close()

    async def now() -> None:
        async with running(tmp_path) as api:
            specs = {each["metadata"]["name"]: each["spec"] for each in (await api.get(PATH))["items"]}
            assert specs["plain"]["clusterIP"].startswith("10.63.")
            assert specs["plain"]["clusterIPs"] == [specs["plain"]["clusterIP"]]
            assert specs["plain"]["ipFamilies"] == ["IPv4"]
            assert specs["ports"]["ports"][0]["nodePort"] == 30100
            assert specs["ports"]["ports"][1]["nodePort"] not in (0, 30100)
            assert specs["none"]["clusterIPs"] == ["None"]
            assert "clusterIP" not in specs["name"]
            assert specs["odd"]["clusterIPs"] == ["192.168.7.7"]  # what somebody chose stays
            patched = await api.patch(f"{PATH}/odd", {"metadata": {"labels": {"a": "b"}}})
            assert patched["spec"]["clusterIP"] == "192.168.7.7"

    store: Store
    asyncio.run(earlier())
    asyncio.run(now())


def test_a_full_range_is_told_and_what_is_given_back_is_used_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "objects.db")
        addresses = ServiceAddresses(store, IPv4Network("10.9.9.0/29"), range(30000, 30003))
        stored = []
        for number in range(6):
            content = service(f"s{number}", type="NodePort" if number < 3 else "ClusterIP")
            addresses.allocate(KIND, content, None)
            store.put(Key(SERVICES, "default", f"s{number}"), content)
            stored.append(content["spec"]["clusterIP"])
        assert sorted(stored) == [f"10.9.9.{number}" for number in range(1, 7)]
        with pytest.raises(
            StatusError, match=r"range is full; delete Services: all 6 addresses of 10\.9\.9\.0/29"
        ):
            addresses.allocate(KIND, service("more"), None)
        with pytest.raises(StatusError, match="all 3 ports are in use"):
            addresses.allocate(
                KIND, service("more", clusterIP="None", type="NodePort", clusterIPs=["None"]), None
            )
        store.remove(Key(SERVICES, "default", "s4"), service("s4"))
        again = service("again")
        addresses.allocate(KIND, again, None)
        assert again["spec"]["clusterIP"] == stored[4]
        await store.wait_committed()
        await store.close()

    asyncio.run(scenario())


def test_a_service_may_have_all_ports_of_nodes_and_each_port_one_for_all_protocols(tmp_path: Path) -> None:
    """Which takes a time in proportion to their number: nobody else is served meanwhile."""

    async def scenario() -> None:
        store = Store(tmp_path / "objects.db")
        addresses = ServiceAddresses(store)
        ports = [{"port": number + 1, "protocol": "TCP"} for number in range(len(NODE_PORTS))]
        ports += [{"port": 7, "protocol": "UDP"}, {"port": 9, "protocol": "UDP", "nodePort": 30009}]
        content = service("all", type="NodePort", ports=ports)
        begin = time.thread_time()
        addresses.allocate(KIND, content, None)
        assert time.thread_time() - begin < LIMIT * SLOWNESS
        given = [port["nodePort"] for port in content["spec"]["ports"]]
        assert sorted(given[:-2]) == list(NODE_PORTS)
        assert (given[-2], given[-1]) == (given[6], given[8])
        await store.close()

    asyncio.run(scenario())


def test_the_service_of_the_api_server_leads_to_its_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        for _ in range(2):  # its port is another one the second time
            async with running(tmp_path) as api:
                port = int(api.server.url.rpartition(":")[2])
                made = await api.get(f"{PATH}/kubernetes")
                assert made["spec"]["clusterIP"] == "10.63.0.1"
                assert made["spec"]["ports"][0]["targetPort"] == port
                (subset,) = (await api.get("/api/v1/namespaces/default/endpoints/kubernetes"))["subsets"]
                assert subset["addresses"] == [{"ip": "127.0.0.1"}]
                assert subset["ports"][0]["port"] == port
                path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
                assert (await api.get(path))["ports"][0]["port"] == port

    asyncio.run(scenario())


def test_the_service_of_the_api_server_comes_back_when_it_is_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            before = await api.get(f"{PATH}/kubernetes")
            await api.request("DELETE", PATH)

            async def back() -> bool:
                status, again = await api.request("GET", f"{PATH}/kubernetes")
                endpoints = await api.request("GET", "/api/v1/namespaces/default/endpoints/kubernetes")
                return (status, endpoints[0]) == (200, 200) and again["spec"] == before["spec"]

            await eventually(back)

    asyncio.run(scenario())
