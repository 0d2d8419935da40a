"""Real nodes on the embedded server: processes, their logs and exit codes."""

import asyncio
import os
import re
import sys

import pytest

from stromboli.embedded.nodes.pod_claims_check import VOLUME_CLAIMS
from stromboli.embedded.nodes.real import container_runner, process_stdio
from stromboli.embedded.nodes.real.container_launch import container_launch
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.kube.api_resources import Resource
from tests.embedded.nodes.node_services import CONFIG_MAPS, NODES, running_nodes

STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
ENDLESS = ["sh", "-c", "echo $$$$; trap 'echo bye; exit 0' TERM; while true; do sleep 0.02; done"]


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


async def logged(cluster, name, text, **query):
    for _ in range(300):
        log = await cluster.log(name, **query)
        if re.search(text, log):
            return log
        await asyncio.sleep(0.03)
    raise AssertionError(f"{name} never logged {text}: {log!r}")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_a_command_runs_and_its_exit_code_is_reported(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("good", command=["sh", "-c", "echo out; echo err >&2"])
            await cluster.pod("bad", command=["sh", "-c", "echo no; exit 3"])
            await cluster.pod("none")
            await cluster.pod("missing", command=["/no/such/command"])
            assert terminated(await cluster.phase("good", "Succeeded"))["reason"] == "Completed"
            assert terminated(await cluster.phase("bad", "Failed"))["exitCode"] == 3
            assert "no command" in terminated(await cluster.phase("none", "Failed"))["message"]
            assert terminated(await cluster.get("none"))["reason"] == "StartError"
            assert "/no/such/command" in terminated(await cluster.phase("missing", "Failed"))["message"]
            assert await cluster.log("good") == "out\nerr\n"
            assert await cluster.log("bad", tail=1) == "no\n"

    asyncio.run(scenario())


def test_names_of_peers_mean_this_machine(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod(
                "ring-1",
                command=["sh", "-c", "echo $MASTER ring-2.ring:80 $(MASTER) $STROMBOLI_ROOT"],
                container={"env": [{"name": "MASTER", "value": "ring-0.ring.default.svc"}]},
                spec={"hostname": "ring-1", "subdomain": "ring"},
            )
            await cluster.phase("ring-1", "Succeeded")
            assert (await cluster.log("ring-1")).startswith(f"127.0.0.1 127.0.0.1:80 127.0.0.1 {tmp_path}")

    asyncio.run(scenario())


def test_containers_have_their_environment_volumes_and_init_containers(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod(
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
            waits = await cluster.until("app", lambda pod: pod["status"].get("containerStatuses"))
            assert waits["status"]["phase"] == "Pending"
            await cluster.client.create(
                CONFIG_MAPS, {"metadata": {"name": "later"}, "data": {"words": "hello"}}, "default"
            )
            done = await cluster.phase("app", "Succeeded")
            lines = (await cluster.log("app")).splitlines()
            assert lines[:2] == ["app hello", "helloprepared"]
            assert lines[-1].endswith("/root")
            assert done["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    asyncio.run(scenario())


def test_a_container_that_ends_is_restarted_as_its_policy_says(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            flag = tmp_path / "flag"
            script = f"if [ -e {flag} ]; then echo second; exit 0; fi; touch {flag}; echo first; exit 1"
            await cluster.pod("retry", command=["sh", "-c", script], spec={"restartPolicy": "OnFailure"})
            done = await cluster.phase("retry", "Succeeded")
            status = done["status"]["containerStatuses"][0]
            assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)
            assert (await cluster.log("retry"), await cluster.log("retry", previous=True)) == (
                "second\n",
                "first\n",
            )
            await cluster.pod("crash", command=["false"], spec={"restartPolicy": "Always"})
            await cluster.until(
                "crash",
                lambda pod: (
                    "CrashLoopBackOff" in str(pod["status"])
                    and pod["status"]["containerStatuses"][0]["restartCount"] > 1
                ),
            )
            await cluster.delete("crash")
            await cluster.gone("crash")

    asyncio.run(scenario())


def test_a_deleted_pod_may_end_in_order_or_is_killed(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("polite", command=ENDLESS)
            await cluster.pod(
                "stubborn", command=["sh", "-c", "trap '' TERM; sleep 987 & echo $!; wait; sleep 987"]
            )
            polite = int((await logged(cluster, "polite", r"\d+\n")).split()[0])
            child = int((await logged(cluster, "stubborn", r"\d+\n")).split()[0])
            assert is_alive(polite)
            assert is_alive(child)
            assert len(list((tmp_path / "work" / "pods").iterdir())) == 2
            await cluster.delete("polite")
            await cluster.delete("stubborn", grace=1)
            await cluster.gone("polite")
            await cluster.gone("stubborn")
            assert not is_alive(polite)
            assert not is_alive(child)
            async with asyncio.timeout(10):  # folders are removed when the node observes the deletion
                while list((tmp_path / "work" / "pods").iterdir()):
                    await asyncio.sleep(0.03)

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_process_in_a_session_of_its_own_ends_with_the_pod(tmp_path, monkeypatch):
    monkeypatch.setattr(process_stdio, "OUTPUT_WAIT", 0.1)  # it holds the output of its container
    script = "setsid sh -c 'echo stray $$$$; sleep 987' & {}"

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("deleted", command=["sh", "-c", script.format("sleep 987")])
            await cluster.pod("stays", command=["sh", "-c", script.format("sleep 987")])
            strays = [int((await logged(cluster, name, "stray"))[6:]) for name in ("deleted", "stays")]
            await cluster.delete("deleted", 0)
            await eventually(lambda: not is_alive(strays[0]))
            assert is_alive(strays[1])
        assert not is_alive(strays[1])

    asyncio.run(scenario())


def test_a_log_can_be_followed(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("talks", command=["sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.2; done"])
            await logged(cluster, "talks", "1")
            assert await asyncio.wait_for(cluster.log("talks", follow=True), 20) == "1\n2\n3\n"

    asyncio.run(scenario())


def test_when_a_node_dies_its_processes_do(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=ENDLESS)
            pid = int((await logged(cluster, "p", r"\d+\n")).split()[0])
            await cluster.client.patch(
                NODES, "n1", {"metadata": {"annotations": {"stromboli.sh/failed": "true"}}}
            )
            await cluster.gone("p")
            assert not is_alive(pid)

    asyncio.run(scenario())


@pytest.mark.parametrize(("policy", "phase"), [("Never", "Failed"), ("Always", "Running")])
def test_after_a_restart_what_ran_is_lost_or_restarted(tmp_path, policy, phase):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=ENDLESS, spec={"restartPolicy": policy})
            pid = int((await logged(cluster, "p", r"\d+\n")).split()[0])
            await cluster.phase("p", "Running")
        assert not is_alive(pid)
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            pod = await cluster.until(
                "p",
                lambda pod: (
                    pod["status"]["phase"] == phase
                    and (phase == "Failed" or pod["status"]["containerStatuses"][0]["restartCount"] == 1)
                ),
            )
            if phase == "Failed":
                assert terminated(pod)["exitCode"] == 137

    asyncio.run(scenario())


def test_after_a_restart_restarts_count_on_and_completed_containers_stay_completed(tmp_path):
    runs = tmp_path / "runs"
    once = {"name": "once", "image": "x", "command": ["sh", "-c", f"echo ran >> {runs}"]}
    stays = {"name": "stays", "image": "x", "command": ENDLESS}
    counts = []

    def restarts(pod):
        counts.append(pod["status"]["containerStatuses"][0]["restartCount"])
        return counts[-1]

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", spec={"restartPolicy": "OnFailure", "containers": [once, stays]})
            await cluster.until(
                "p", lambda pod: all(word in str(pod["status"]) for word in ("terminated", "running"))
            )
            await cluster.pod("crash", command=["false"], spec={"restartPolicy": "Always"})
            await cluster.until("crash", lambda pod: "CrashLoop" in str(pod["status"]) and restarts(pod) > 1)
        seen = counts[-1]
        counts.clear()
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.until("crash", lambda pod: restarts(pod) > seen)
            assert min(counts) >= seen
            pod = await cluster.until("p", lambda pod: "137" in str(pod["status"]))
            status = {container["name"]: container for container in pod["status"]["containerStatuses"]}
            assert status["once"]["state"]["terminated"]["exitCode"] == 0
            assert (status["once"]["restartCount"], status["stays"]["restartCount"]) == (0, 1)
        assert runs.read_text() == "ran\n"

    asyncio.run(scenario())


def test_a_sidecar_runs_beside_and_goes_last(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            side = {"name": "side", "image": "x", "command": ENDLESS, "restartPolicy": "Always"}
            await cluster.pod("p", command=["sh", "-c", "sleep 0.3"], spec={"initContainers": [side]})
            await cluster.phase("p", "Succeeded")
            pid = int((await cluster.log("p", container="side")).split()[0])
            assert not is_alive(pid)

    asyncio.run(scenario())


async def eventually(holds):
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.02)


def test_a_process_that_begins_when_its_pod_is_gone_ends_at_once(tmp_path, monkeypatch):
    start = ContainerProcess.start

    async def scenario():
        gone = asyncio.Event()

        async def late(*args):
            process = await start(*args)
            await gone.wait()
            return process

        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            monkeypatch.setattr(ContainerProcess, "start", late)
            mark = tmp_path / "pid"
            stubborn = (
                f"trap '' TERM; echo $$$$ > {mark}.new; mv {mark}.new {mark}; while :; do sleep 0.05; done"
            )
            await cluster.pod("stubborn", command=["sh", "-c", stubborn])
            await eventually(mark.exists)
            await cluster.delete("stubborn", grace=0)
            await cluster.gone("stubborn")
            assert is_alive(int(mark.read_text()))
            gone.set()
            await eventually(lambda: not is_alive(int(mark.read_text())))

    asyncio.run(scenario())


def test_a_pod_waits_for_its_volume_and_what_it_writes_there_is_kept(tmp_path):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "folders",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "folders"},
        "provisioner": "stromboli.sh/folder",
    }
    more = {
        "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "container": {"volumeMounts": [{"name": "v", "mountPath": "/data"}]},
    }

    async def scenario():
        async with running_nodes(tmp_path, "2x8cpu,real") as cluster:
            await cluster.pod("writes", command=["sh", "-c", "echo kept > data/file"], **more)
            await cluster.client.create(VOLUME_CLAIMS, claim, "default")
            await cluster.client.create(STORAGE_CLASSES, storage_class)
            await cluster.phase("writes", "Succeeded")
            await cluster.pod("reads", node="n2", command=["cat", "data/file"], **more)
            await cluster.phase("reads", "Succeeded")
            assert await cluster.log("reads") == "kept\n"
            (folder,) = (tmp_path / "data" / "volumes").iterdir()
            assert (folder / "file").read_text() == "kept\n"

    asyncio.run(scenario())


def test_a_container_for_which_there_is_no_room_is_created_later(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            first = {"name": "first", "image": "x", "command": ["sh", "-c", "touch ../logs/main"]}
            await cluster.pod("p", command=["true"], spec={"initContainers": [first]})
            pod = await cluster.until("p", lambda pod: "CreateContainerError" in str(pod["status"]))
            assert pod["status"]["phase"] == "Pending"
            (in_the_way,) = (tmp_path / "work" / "pods").glob("*/logs/main")
            in_the_way.unlink()
            await cluster.phase("p", "Succeeded")

    asyncio.run(scenario())


def test_a_pod_that_cannot_be_run_for_a_reason_that_nobody_foresaw_fails(tmp_path, monkeypatch):
    def broken(sandbox, spec):
        if spec["name"] == "second":
            raise ZeroDivisionError("a bug")
        return container_launch(sandbox, spec)

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            sleeping = {"image": "none", "command": ["sleep", "987"]}
            containers = [{"name": name, **sleeping} for name in ("first", "second")]
            await cluster.pod("p", spec={"restartPolicy": "Always", "containers": containers})
            status = (await cluster.phase("p", "Failed"))["status"]
            assert (status["reason"], status["message"]) == (
                "InternalError",
                "Pod cannot be run: ZeroDivisionError('a bug')",
            )
            assert not cluster.nodes._runtimes["real"]._context.guardian._watched
            await cluster.delete("p")
            await cluster.gone("p")

    monkeypatch.setattr(container_runner, "container_launch", broken)
    asyncio.run(scenario())


def test_a_pod_fails_at_its_deadline(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=["sleep", "987"], spec={"activeDeadlineSeconds": 1})
            pod = await cluster.phase("p", "Failed")
            assert pod["status"]["reason"] == "DeadlineExceeded"
            assert terminated(pod)["exitCode"] == 143

    asyncio.run(scenario())
