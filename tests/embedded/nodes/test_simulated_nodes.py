"""Simulated nodes on the embedded server: what pods go through."""

import asyncio

from tests.embedded.nodes.node_services import NODES, town

RUN, EXIT = "stromboli.sh/run-time", "stromboli.sh/exit-code"


def ready(node):
    return next(
        condition["status"] for condition in node["status"]["conditions"] if condition["type"] == "Ready"
    )


def test_a_pod_starts_runs_and_succeeds(tmp_path):
    async def story():
        async with town(tmp_path, "2x8cpu") as here:
            await here.pod("job", annotations={RUN: "200ms"})
            await here.pod("bad", annotations={RUN: "100ms", EXIT: "3"})
            await here.pod("stays", node="n2")
            done, bad, stays = [
                await here.phase(*expected)
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
            await here.delete("stays")
            await here.gone("stays")

    asyncio.run(story())


def test_after_a_restart_no_address_is_given_twice_and_nodes_may_have_grown(tmp_path):
    async def story():
        async with town(tmp_path, "11x8cpu") as here:
            for name in ("n2", "n10"):
                await here.pod(f"old-{name}", node=name)
                await here.phase(f"old-{name}", "Running")
        async with town(tmp_path, "11x16cpu") as here:
            pods = ["old-n2", "old-n10"]
            for name in ("n2", "n10"):
                await here.pod(f"new-{name}", node=name)
                pods.append(f"new-{name}")
            addresses = {(await here.phase(name, "Running"))["status"]["podIP"] for name in pods}
            assert len(addresses) == 4
            node = await here.get("n10", NODES)
            assert node["status"]["allocatable"]["cpu"] == "16"
            assert (await here.get("new-n10"))["status"]["podIP"].startswith(node["spec"]["podCIDR"][:-4])

    asyncio.run(story())


def test_a_pod_that_runs_too_long_is_ended(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu") as here:
            await here.pod("slow", spec={"activeDeadlineSeconds": 1})
            assert (await here.phase("slow", "Failed"))["status"]["reason"] == "DeadlineExceeded"

    asyncio.run(story())


def test_after_a_restart_pods_go_on_where_they_were(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu") as here:
            await here.pod("long", annotations={RUN: "1h"})
            await here.pod("soon", annotations={RUN: "1500ms"})
            before = await here.phase("long", "Running")
            await here.phase("soon", "Running")
        async with town(tmp_path, "1x8cpu") as here:
            await here.phase("soon", "Succeeded")
            assert (await here.get("long"))["status"] == before["status"]

    asyncio.run(story())


def test_a_node_that_fails_loses_its_pods_and_may_come_back(tmp_path):
    async def story():
        async with town(tmp_path, "2x8cpu") as here:
            await here.pod("lost")
            patient = [
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 3600}
            ]
            await here.pod("waits", spec={"tolerations": patient})
            await here.pod("elsewhere", node="n2")
            for name in ("lost", "waits", "elsewhere"):
                await here.phase(name, "Running")
            await here.client.patch(
                NODES, "n1", {"metadata": {"annotations": {"stromboli.sh/failed": "true"}}}
            )
            await here.gone("lost")
            node = await here.until(
                "n1", lambda node: ready(node) == "Unknown" and node["spec"].get("taints"), NODES
            )
            assert {taint["effect"] for taint in node["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
            waits = await here.until("waits", lambda pod: not all(_true(pod)))
            assert waits["status"]["phase"] == "Running"
            await here.client.patch(NODES, "n1", {"metadata": {"annotations": {"stromboli.sh/failed": None}}})
            await here.until(
                "n1", lambda node: ready(node) == "True" and not node["spec"].get("taints"), NODES
            )
            assert (await here.get("elsewhere"))["status"]["phase"] == "Running"
            await here.delete("waits")
            await here.gone("waits")

    asyncio.run(story())


def _true(pod):
    return [
        condition["status"] == "True"
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready"
    ]


def test_a_node_that_is_deleted_takes_its_pods_along(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu") as here:
            await here.pod("p")
            await here.phase("p", "Running")
            await here.client.delete(NODES, "n1")
            await here.gone("p")

    asyncio.run(story())


def test_a_node_with_our_label_is_run_whoever_made_it(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu") as here:
            body = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "own", "labels": {"stromboli.sh/node": "simulated"}},
                "status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}},
            }
            await here.client.create(NODES, body)
            await here.until(
                "own", lambda node: node["status"].get("conditions") and ready(node) == "True", NODES
            )
            await here.pod("p", node="own")
            await here.phase("p", "Running")
            assert "simulated" in await here.log("p")

    asyncio.run(story())


def test_hundreds_of_pods_come_and_go(tmp_path):
    async def story():
        async with town(tmp_path, "10x32cpu") as here:
            names = [f"p{number}" for number in range(200)]
            await asyncio.gather(
                *(
                    here.pod(name, f"n{1 + index % 10}", annotations={RUN: "100ms..300ms"})
                    for index, name in enumerate(names)
                )
            )
            for name in names:
                pod = await here.phase(name, "Succeeded")
                assert pod["status"]["podIP"]

    asyncio.run(story())
