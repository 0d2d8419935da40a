"""What the server decides about new objects from what else is there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.embedded.api_requests import PODS, ApiCaller, config_map, pod, running
from tests.embedded.kube_controllers.test_controller_loop import eventually, is_

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def sized(name: str, cpu: str) -> Any:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


async def quota(api: ApiCaller, **hard: str) -> None:
    body = {"metadata": {"name": "q"}, "spec": {"hard": {key.replace("_", "."): hard[key] for key in hard}}}
    await api.post(QUOTAS, body)


def test_a_pod_gets_the_priority_of_its_class(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            await api.post(path, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
            plain = (await api.post(PODS, pod("a", priorityClassName="")))["spec"]
            assert (plain["priority"], "priorityClassName" in plain) == (0, False)
            high = (await api.post(PODS, pod("b", priorityClassName="high")))["spec"]
            assert (high["priority"], high["preemptionPolicy"]) == (7, "Never")
            status, answer = await api.request("POST", PODS, pod("c", priorityClassName="none"))
            assert (status, "no PriorityClass with name none was found" in answer["message"]) == (403, True)
            assert (await api.request("POST", PODS, pod("c", priority=5)))[0] == 403
            await api.post(path, {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})
            usual = (await api.post(PODS, pod("d")))["spec"]
            assert (usual["priority"], usual["priorityClassName"]) == (3, "usual")

    asyncio.run(scenario())


def test_a_pod_runs_as_an_account_that_exists(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            assert (await api.post(PODS, pod("a")))["spec"]["serviceAccountName"] == "default"
            status, answer = await api.request("POST", PODS, pod("b", serviceAccountName="nobody"))
            assert (status, 'serviceaccount "nobody" not found' in answer["message"]) == (403, True)

    asyncio.run(scenario())


def test_a_quota_counts_what_is_there_and_refuses_what_is_too_much(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, sized("before", "1"))
            await quota(api, requests_cpu="2500m", pods="3")
            await api.post(PODS, sized("a", "1500m"))
            status, answer = await api.request("POST", PODS, sized("b", "100m"))
            assert status == 403
            assert answer["message"] == (
                'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=2500m,'
                " limited: requests.cpu=2500m"
            )
            status, answer = await api.request("POST", PODS, pod("c"))
            assert (status, "must specify requests.cpu for: main" in answer["message"]) == (403, True)
            await eventually(lambda: is_(used_of(api), {"pods": "2", "requests.cpu": "2500m"}))
            await api.patch(f"{PODS}/before/status", {"status": {"phase": "Succeeded"}})
            await api.delete(f"{PODS}/a")
            await eventually(lambda: is_(used_of(api), {"pods": "0", "requests.cpu": "0"}))
            for number in range(3):
                await api.post(PODS, sized(f"n{number}", "1m"))
            assert (await api.request("POST", PODS, sized("n3", "1m")))[0] == 403
            await api.delete(f"{QUOTAS}/q")
            await api.post(PODS, pod("free"))

    asyncio.run(scenario())


def with_init_containers(name: str, *cpus: int) -> Any:
    """A pod whose container requests 2 CPUs; a negative number stands for a sidecar."""
    made = sized(name, "2")
    made["spec"]["initContainers"] = [
        {
            "name": f"init-{number}",
            "image": "x",
            "resources": {"requests": {"cpu": str(abs(cpu))}},
            **({"restartPolicy": "Always"} if cpu < 0 else {}),
        }
        for number, cpu in enumerate(cpus)
    ]
    return made


async def used_of(api: ApiCaller) -> Any:
    return (await api.get(f"{QUOTAS}/q")).get("status", {}).get("used")


def test_a_quota_counts_sidecars_next_to_later_init_containers_and_next_to_containers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await quota(api, requests_cpu="100")
            await api.post(PODS, with_init_containers("before", 5, -1))
            await eventually(lambda: is_(used_of(api), {"requests.cpu": "5"}))
            await api.delete(f"{PODS}/before")
            await api.post(PODS, with_init_containers("after", -3, 4))
            await eventually(lambda: is_(used_of(api), {"requests.cpu": "7"}))

    asyncio.run(scenario())


def test_a_quota_shows_counts_as_decimal_numbers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await quota(api, pods="2000", requests_cpu="2000", requests_memory="2Ti")
            for number in range(2):
                big = sized(f"p{number}", "512")
                big["spec"]["containers"][0]["resources"]["requests"]["memory"] = "512Gi"
                await api.post(PODS, big)
            expected = {"pods": "2", "requests.cpu": "1024", "requests.memory": "1Ti"}
            await eventually(lambda: is_(used_of(api), expected))

    asyncio.run(scenario())


def test_a_quota_counts_objects_of_any_kind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}})
            path = "/api/v1/namespaces/default/configmaps"
            await api.post(path, config_map("a"))
            assert (await api.request("POST", path, config_map("b")))[0] == 403
            await api.patch(f"{path}/a", {"data": {"x": "y"}})

    asyncio.run(scenario())


def test_a_quota_counts_node_ports_and_load_balancers(tmp_path: Path) -> None:
    def service(name: str, type: str, *ports: int, **spec: Any) -> dict[str, Any]:
        listed = [{"name": f"p{port}", "port": port} for port in ports]
        return {"metadata": {"name": name}, "spec": {"type": type, "ports": listed, **spec}}

    async def scenario() -> None:
        async with running(tmp_path) as api:
            path = "/api/v1/namespaces/default/services"
            await api.post(path, service("before", "NodePort", 80, 443))
            hard = {"services.nodeports": "3", "services.loadbalancers": "1"}
            await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
            await api.post(path, service("inside", "ClusterIP", 80))
            status, answer = await api.request("POST", path, service("a", "NodePort", 80, 443))
            assert (status, answer["message"].partition("exceeded quota: ")[2]) == (
                403,
                "q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3",
            )
            await api.post(path, service("b", "LoadBalancer", 80, 443, allocateLoadBalancerNodePorts=False))
            status, answer = await api.request("POST", path, service("c", "LoadBalancer", 80))
            assert (status, "limited: services.loadbalancers=1" in answer["message"]) == (403, True)
            await api.patch(f"{path}/inside", {"spec": {"type": "NodePort"}})
            assert (await api.request("POST", path, service("d", "NodePort", 80)))[0] == 403
            await api.delete(f"{path}/before")
            await api.post(path, service("d", "NodePort", 80))
            used = {"services.nodeports": "2", "services.loadbalancers": "1"}
            await eventually(lambda: is_(used_of(api), used))

    asyncio.run(scenario())


def test_an_eviction_asks_the_budget(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            selector = {"matchLabels": {"app": "x"}}
            spec = {"minAvailable": 1, "selector": selector}
            await api.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            for name in ("a", "b"):
                await api.post(PODS, pod(name, metadata={"labels": {"app": "x"}}))
                await api.patch(f"{PODS}/{name}/status", {"status": ready})

            async def allowed() -> Any:
                return (await api.get(f"{BUDGETS}/b")).get("status", {}).get("disruptionsAllowed")

            await eventually(lambda: is_(allowed(), 1))
            await api.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
            status, answer = await api.request("POST", f"{PODS}/b/eviction", {"metadata": {"name": "b"}})
            assert (status, answer["reason"]) == (429, "TooManyRequests")
            assert answer["details"]["causes"] == [
                {
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
                }
            ]
            await eventually(lambda: is_(allowed(), 0))
            await api.post(PODS, pod("waits", metadata={"labels": {"app": "x"}}))
            await api.post(f"{PODS}/waits/eviction", {})
            assert (await api.request("GET", f"{PODS}/waits"))[0] == 404

    asyncio.run(scenario())


def test_an_eviction_for_show_leaves_the_pod_and_one_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, pod("a"))
            await api.post(f"{PODS}/a/eviction", {"deleteOptions": {"dryRun": ["All"]}})
            await api.get(f"{PODS}/a")
            for nonsense in ({"gracePeriodSeconds": 10**15}, {"propagationPolicy": "Sideways"}, "now"):
                status, _ = await api.request("POST", f"{PODS}/a/eviction", {"deleteOptions": nonsense})
                assert status in (400, 422), nonsense
            await api.post(f"{PODS}/a/eviction", {})
            assert (await api.request("GET", f"{PODS}/a"))[0] == 404

    asyncio.run(scenario())
