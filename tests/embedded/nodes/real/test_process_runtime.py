"""Real nodes on the embedded server: processes, what they say, how they end."""

import asyncio
import os
import re
import sys

import pytest

from stromboli.embedded.nodes.real.container_process import ContainerProcess
from tests.embedded.nodes.node_services import CONFIG_MAPS, NODES, town

ENDLESS = ["sh", "-c", "echo $$$$; trap 'echo bye; exit 0' TERM; while true; do sleep 0.02; done"]


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


async def said(here, name, text, **query):
    for _ in range(300):
        log = await here.log(name, **query)
        if re.search(text, log):
            return log
        await asyncio.sleep(0.03)
    raise AssertionError(f"{name} never said {text}: {log!r}")


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_a_command_runs_and_its_end_is_told(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("good", command=["sh", "-c", "echo out; echo err >&2"])
            await here.pod("bad", command=["sh", "-c", "echo no; exit 3"])
            await here.pod("none")
            await here.pod("missing", command=["/no/such/command"])
            assert terminated(await here.phase("good", "Succeeded"))["reason"] == "Completed"
            assert terminated(await here.phase("bad", "Failed"))["exitCode"] == 3
            assert "no command" in terminated(await here.phase("none", "Failed"))["message"]
            assert "/no/such/command" in terminated(await here.phase("missing", "Failed"))["message"]
            assert await here.log("good") == "out\nerr\n"
            assert await here.log("bad", tail=1) == "no\n"

    asyncio.run(story())


def test_containers_have_their_environment_volumes_and_init_containers(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod(
                "app",
                command=[
                    "sh",
                    "-c",
                    'echo $WHO $(GREETING); cat "$STROMBOLI_ROOT/etc/config/words"; cat /dev/null made; pwd',
                ],
                container={
                    "env": [
                        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        {
                            "name": "GREETING",
                            "valueFrom": {"configMapKeyRef": {"name": "later", "key": "words"}},
                        },
                    ],
                    "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
                },
                spec={
                    "initContainers": [
                        {"name": "first", "image": "x", "command": ["sh", "-c", "echo prepared > made"]}
                    ],
                    "volumes": [{"name": "config", "configMap": {"name": "later"}}],
                },
            )
            waits = await here.until("app", lambda pod: pod["status"].get("containerStatuses"))
            assert waits["status"]["phase"] == "Pending"
            await here.client.create(
                CONFIG_MAPS, {"metadata": {"name": "later"}, "data": {"words": "hello"}}, "default"
            )
            done = await here.phase("app", "Succeeded")
            lines = (await here.log("app")).splitlines()
            assert lines[:2] == ["app hello", "helloprepared"]
            assert lines[-1].endswith("/root")
            assert done["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    asyncio.run(story())


def test_a_container_that_ends_is_restarted_as_its_policy_says(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            flag = tmp_path / "flag"
            script = f"if [ -e {flag} ]; then echo second; exit 0; fi; touch {flag}; echo first; exit 1"
            await here.pod("retry", command=["sh", "-c", script], spec={"restartPolicy": "OnFailure"})
            done = await here.phase("retry", "Succeeded")
            status = done["status"]["containerStatuses"][0]
            assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)
            assert (await here.log("retry"), await here.log("retry", previous=True)) == (
                "second\n",
                "first\n",
            )
            await here.pod("crash", command=["false"], spec={"restartPolicy": "Always"})
            await here.until(
                "crash",
                lambda pod: (
                    "CrashLoopBackOff" in str(pod["status"])
                    and pod["status"]["containerStatuses"][0]["restartCount"] > 1
                ),
            )
            await here.delete("crash")
            await here.gone("crash")

    asyncio.run(story())


def test_a_deleted_pod_may_end_in_order_or_is_killed(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("polite", command=ENDLESS)
            await here.pod("deaf", command=["sh", "-c", "trap '' TERM; sleep 987 & echo $!; wait; sleep 987"])
            polite = int((await said(here, "polite", r"\d+\n")).split()[0])
            child = int((await said(here, "deaf", r"\d+\n")).split()[0])
            assert lives(polite)
            assert lives(child)
            assert len(list((tmp_path / "work" / "pods").iterdir())) == 2
            await here.delete("polite")
            await here.delete("deaf", grace=1)
            await here.gone("polite")
            await here.gone("deaf")
            assert not lives(polite)
            assert not lives(child)
            async with asyncio.timeout(10):  # folders go when the node hears that the pods are gone
                while list((tmp_path / "work" / "pods").iterdir()):
                    await asyncio.sleep(0.03)

    asyncio.run(story())


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_who_made_himself_a_session_ends_with_the_pod(tmp_path):
    script = "setsid sh -c 'echo stray $$$$; sleep 987' & {}"

    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("deleted", command=["sh", "-c", script.format("sleep 987")])
            await here.pod("stays", command=["sh", "-c", script.format("sleep 987")])
            strays = [int((await said(here, name, "stray"))[6:]) for name in ("deleted", "stays")]
            await here.delete("deleted", 0)
            await eventually(lambda: not lives(strays[0]))
            assert lives(strays[1])
        assert not lives(strays[1])

    asyncio.run(story())


def test_a_log_can_be_followed(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("talks", command=["sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.2; done"])
            await said(here, "talks", "1")
            assert await asyncio.wait_for(here.log("talks", follow=True), 20) == "1\n2\n3\n"

    asyncio.run(story())


def test_when_a_node_dies_its_processes_do(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("p", command=ENDLESS)
            pid = int((await said(here, "p", r"\d+\n")).split()[0])
            await here.client.patch(
                NODES, "n1", {"metadata": {"annotations": {"stromboli.sh/failed": "true"}}}
            )
            await here.gone("p")
            assert not lives(pid)

    asyncio.run(story())


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("Always", "Running")])
def test_after_a_restart_what_ran_is_lost_or_restarted(tmp_path, policy, phase):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("p", command=ENDLESS, spec={"restartPolicy": policy})
            pid = int((await said(here, "p", r"\d+\n")).split()[0])
            await here.phase("p", "Running")
        assert not lives(pid)
        async with town(tmp_path, "1x8cpu,real") as here:
            pod = await here.until(
                "p",
                lambda pod: (
                    pod["status"]["phase"] == phase
                    and (phase == "Failed" or pod["status"]["containerStatuses"][0]["restartCount"] == 1)
                ),
            )
            if phase == "Failed":
                assert terminated(pod)["exitCode"] == 137

    asyncio.run(story())


def test_after_a_restart_restarts_count_on_and_what_was_through_stays_so(tmp_path):
    runs = tmp_path / "runs"
    once = {"name": "once", "image": "x", "command": ["sh", "-c", f"echo ran >> {runs}"]}
    stays = {"name": "stays", "image": "x", "command": ENDLESS}
    counts = []

    def restarts(pod):
        counts.append(pod["status"]["containerStatuses"][0]["restartCount"])
        return counts[-1]

    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.pod("p", spec={"restartPolicy": "OnFailure", "containers": [once, stays]})
            await here.until(
                "p", lambda pod: all(word in str(pod["status"]) for word in ("terminated", "running"))
            )
            await here.pod("crash", command=["false"], spec={"restartPolicy": "Always"})
            await here.until("crash", lambda pod: "CrashLoop" in str(pod["status"]) and restarts(pod) > 1)
        seen = counts[-1]
        counts.clear()
        async with town(tmp_path, "1x8cpu,real") as here:
            await here.until("crash", lambda pod: restarts(pod) > seen)
            assert min(counts) >= seen
            pod = await here.until("p", lambda pod: "137" in str(pod["status"]))
            status = {container["name"]: container for container in pod["status"]["containerStatuses"]}
            assert status["once"]["state"]["terminated"]["exitCode"] == 0
            assert (status["once"]["restartCount"], status["stays"]["restartCount"]) == (0, 1)
        assert runs.read_text() == "ran\n"

    asyncio.run(story())


def test_a_sidecar_runs_beside_and_goes_last(tmp_path):
    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            side = {"name": "side", "image": "x", "command": ENDLESS, "restartPolicy": "Always"}
            await here.pod("p", command=["sh", "-c", "sleep 0.3"], spec={"initContainers": [side]})
            await here.phase("p", "Succeeded")
            pid = int((await here.log("p", container="side")).split()[0])
            assert not lives(pid)

    asyncio.run(story())


async def eventually(holds):
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.02)


def test_a_process_that_begins_when_its_pod_is_gone_ends_at_once(tmp_path, monkeypatch):
    start = ContainerProcess.start

    async def late(*args):
        process = await start(*args)
        await asyncio.sleep(0.5)  # it stops listening, and its pod is deleted
        return process

    async def story():
        async with town(tmp_path, "1x8cpu,real") as here:
            monkeypatch.setattr(ContainerProcess, "start", late)
            mark = tmp_path / "pid"
            deaf = f"trap '' TERM; echo $$$$ > {mark}.new; mv {mark}.new {mark}; while :; do sleep 0.05; done"
            await here.pod("deaf", command=["sh", "-c", deaf])
            await eventually(mark.exists)
            await here.delete("deaf", grace=0)
            await here.gone("deaf")
            await eventually(lambda: not lives(int(mark.read_text())))

    asyncio.run(story())
