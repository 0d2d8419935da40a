"""Simulated nodes on the embedded server: the stages of pods."""

import asyncio

from tests.embedded.nodes.node_services import NODES, running_nodes

RUN, EXIT = "stromboli.sh/run-time", "stromboli.sh/exit-code"


def ready(node):
    return next(
        condition["status"] for condition in node["status"]["conditions"] if condition["type"] == "Ready"
    )


def test_a_pod_starts_runs_and_succeeds(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "2x8cpu") as cluster:
            await cluster.pod("job", annotations={RUN: "200ms"})
            await cluster.pod("bad", annotations={RUN: "100ms", EXIT: "3"})
            await cluster.pod("stays", node="n2")
            done, bad, stays = [
                await cluster.phase(*expected)
                for expected in (("job", "Succeeded"), ("bad", "Failed"), ("stays", "Running"))
            ]
            assert done["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
            ended = bad["status"]["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (3, "Error")
            conditions = {
                condition["type"]: condition["status"] for condition in stays["status"]["conditions"]
            }
            assert conditions["Ready"] == conditions["Initialized"] == conditions["ContainersReady"] == "True"
            assert stays["status"]["podIP"].startswith("10.64.2.")
            await cluster.delete("stays")
            await cluster.gone("stays")

    asyncio.run(scenario())


def test_after_a_restart_no_address_is_given_twice_and_nodes_may_have_grown(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "11x8cpu") as cluster:
            for name in ("n2", "n10"):
                await cluster.pod(f"old-{name}", node=name)
                await cluster.phase(f"old-{name}", "Running")
        async with running_nodes(tmp_path, "11x16cpu") as cluster:
            pods = ["old-n2", "old-n10"]
            for name in ("n2", "n10"):
                await cluster.pod(f"new-{name}", node=name)
                pods.append(f"new-{name}")
            addresses = {(await cluster.phase(name, "Running"))["status"]["podIP"] for name in pods}
            assert len(addresses) == 4
            node = await cluster.get("n10", NODES)
            assert node["status"]["allocatable"]["cpu"] == "16"
            assert (await cluster.get("new-n10"))["status"]["podIP"].startswith(node["spec"]["podCIDR"][:-4])

    asyncio.run(scenario())


def test_a_pod_that_runs_too_long_is_ended(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod("slow", spec={"activeDeadlineSeconds": 1})
            assert (await cluster.phase("slow", "Failed"))["status"]["reason"] == "DeadlineExceeded"

    asyncio.run(scenario())


def test_after_a_restart_pods_go_on_where_they_were(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod("long", annotations={RUN: "1h"})
            await cluster.pod("soon", annotations={RUN: "1500ms"})
            before = await cluster.phase("long", "Running")
            await cluster.phase("soon", "Running")
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.phase("soon", "Succeeded")
            assert (await cluster.get("long"))["status"] == before["status"]

    asyncio.run(scenario())


def test_a_node_that_fails_loses_its_pods_and_may_come_back(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "2x8cpu") as cluster:
            await cluster.pod("lost")
            unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
            tolerations = [{**unreachable, "effect": "NoExecute", "tolerationSeconds": 3600}]
            await cluster.pod("waits", spec={"tolerations": tolerations})
            await cluster.pod("elsewhere", node="n2")
            for name in ("lost", "waits", "elsewhere"):
                await cluster.phase(name, "Running")
            await cluster.client.patch(
                NODES, "n1", {"metadata": {"annotations": {"stromboli.sh/failed": "true"}}}
            )
            await cluster.gone("lost")
            node = await cluster.until(
                "n1", lambda node: ready(node) == "Unknown" and node["spec"].get("taints"), NODES
            )
            assert {taint["effect"] for taint in node["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
            waits = await cluster.until("waits", lambda pod: not all(_true(pod)))
            assert waits["status"]["phase"] == "Running"
            await cluster.client.patch(
                NODES, "n1", {"metadata": {"annotations": {"stromboli.sh/failed": None}}}
            )
            await cluster.until(
                "n1", lambda node: ready(node) == "True" and not node["spec"].get("taints"), NODES
            )
            assert (await cluster.get("elsewhere"))["status"]["phase"] == "Running"
            await cluster.delete("waits")
            await cluster.gone("waits")

    asyncio.run(scenario())


def _true(pod):
    return [
        condition["status"] == "True"
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]


def test_a_node_that_is_deleted_takes_its_pods_along(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod("p")
            await cluster.phase("p", "Running")
            await cluster.client.delete(NODES, "n1")
            await cluster.gone("p")

    asyncio.run(scenario())


def test_a_node_with_our_label_is_run_if_another_client_created_it(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            body = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "own", "labels": {"stromboli.sh/node": "simulated"}},
                "status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}},
            }
            await cluster.client.create(NODES, body)
            await cluster.until(
                "own", lambda node: node["status"].get("conditions") and ready(node) == "True", NODES
            )
            await cluster.pod("p", node="own")
            await cluster.phase("p", "Running")
            assert "simulated" in await cluster.log("p")

    asyncio.run(scenario())


def test_hundreds_of_pods_come_and_go(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "10x32cpu") as cluster:
            names = [f"p{number}" for number in range(200)]
            await asyncio.gather(
                *(
                    cluster.pod(name, f"n{1 + index % 10}", annotations={RUN: "100ms..300ms"})
                    for index, name in enumerate(names)
                )
            )
            for name in names:
                pod = await cluster.phase(name, "Succeeded")
                assert pod["status"]["podIP"]

    asyncio.run(scenario())
