"""GPUs of pods on real nodes: what containers see, who waits, who is refused, and what outlives a restart."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from stromboli.embedded.nodes.machine.nvidia_smi import Gpu, NvidiaSmiError
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
from stromboli.embedded.nodes.real.resources import gpu_capacity, node_startup
from stromboli.embedded.nodes.real.resources.gpu_capacity import allocatable_gpus
from stromboli.kube.api_resources import Resource
from tests.embedded.nodes.node_services import NODES, running_nodes

EVENTS = Resource("", "v1", "events", "Event")
SHOW = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"]
ENDLESS = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exec sleep 987"]
CARDS = [Gpu(number, f"GPU-{number}", "NVIDIA H200", 143771) for number in range(2)]


def gpus(count, **more):
    return {"resources": {"limits": {"nvidia.com/gpu": str(count)}}, **more}


def cards_of(pod, field="containerStatuses", index=0):
    [status] = pod["status"][field][index]["allocatedResourcesStatus"]
    return [resource["resourceID"] for resource in status["resources"]]


async def events(cluster, name):
    items = json.loads(await cluster.client.list(EVENTS, "default"))["items"]
    return {event["reason"]: event["message"] for event in items if event["involvedObject"]["name"] == name}


async def event(cluster, name, reason):
    async with asyncio.timeout(20):
        while reason not in (happened := await events(cluster, name)):
            await asyncio.sleep(0.03)
    return happened[reason]


def test_a_container_sees_its_own_cards_and_none_if_it_asks_for_none(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=lambda: CARDS) as cluster:
            init = {"name": "first", "image": "x", "command": SHOW, **gpus(2)}
            await cluster.pod("one", command=SHOW, container=gpus(1), spec={"initContainers": [init]})
            one = await cluster.phase("one", "Succeeded")
            assert await cluster.log("one") == "GPU-0 GPU-0\n"
            assert await cluster.log("one", container="first") == "GPU-0,GPU-1 GPU-0,GPU-1\n"
            assert cards_of(one) == ["GPU-0"]
            assert cards_of(one, "initContainerStatuses") == ["GPU-0", "GPU-1"]
            await cluster.pod("none", command=SHOW)
            none = await cluster.phase("none", "Succeeded")
            assert await cluster.log("none") == "-1 void\n"
            assert "allocatedResourcesStatus" not in none["status"]["containerStatuses"][0]
            assert json.loads((tmp_path / "work" / "gpus.json").read_text()) == []

    asyncio.run(scenario())


def test_a_pod_cannot_widen_what_it_sees(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=lambda: CARDS) as cluster:
            names = ("CUDA_VISIBLE_DEVICES", "STROMBOLI_ROOT")
            variables = [{"name": name, "value": "0,1"} for name in names]
            script = [*SHOW[:2], f"{SHOW[2]}; test $STROMBOLI_ROOT = $PWD && echo marked"]
            await cluster.pod("greedy", command=script, container={"env": variables})
            await cluster.phase("greedy", "Succeeded")
            assert await cluster.log("greedy") == "-1 void\nmarked\n"
            assert "is overridden" in await event(cluster, "greedy", "VariableOverridden")

    asyncio.run(scenario())


def test_pods_that_start_in_the_same_moment_have_different_cards_and_a_third_is_refused(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=lambda: CARDS) as cluster:
            names = ["a", "b", "c"]
            await asyncio.gather(*(cluster.pod(name, command=ENDLESS, container=gpus(1)) for name in names))
            pods = [
                await cluster.until(name, lambda pod: pod["status"]["phase"] in ("Running", "Failed"))
                for name in names
            ]
            running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
            assert sorted(cards_of(pod) for pod in running) == [["GPU-0"], ["GPU-1"]]
            [refused] = [pod for pod in pods if pod not in running]
            assert refused["status"]["reason"] == "UnexpectedAdmissionError"
            assert "Requested: 1, Available: 0" in refused["status"]["message"]
            assert "containerStatuses" not in refused["status"], "kubectl would show why a container waits"
            name = running[0]["metadata"]["name"]
            await cluster.delete(name)
            await cluster.gone(name)
            await cluster.pod("next", command=ENDLESS, container=gpus(1))
            assert cards_of(await cluster.phase("next", "Running")) == cards_of(running[0])

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")
def test_a_card_is_given_out_when_all_processes_of_its_former_pod_are_gone(tmp_path):
    """The pod is deleted by force, and a process of it has a session of its own."""

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=lambda: CARDS[:1]) as cluster:
            script = "setsid sleep 987 & echo $!; trap '' TERM; wait; sleep 987"
            await cluster.pod("stubborn", command=["sh", "-c", script], container=gpus(1))
            await cluster.phase("stubborn", "Running")
            while not (pid := (await cluster.log("stubborn")).strip()):
                await asyncio.sleep(0.02)
            await cluster.delete("stubborn", grace=0)
            check = (
                f"test -e /proc/{pid} && grep -v 'State:.*Z' /proc/{pid}/status | grep State; echo checked"
            )
            await cluster.pod("next", command=["sh", "-c", check], container=gpus(1))
            await cluster.phase("next", "Succeeded")
            assert await cluster.log("next") == "checked\n"

    asyncio.run(scenario())


def test_clusters_that_share_a_machine_take_turns_with_its_cards(tmp_path):
    async def scenario():
        shared = {"find_gpus": lambda: CARDS[:1], "gpu_locks": tmp_path / "locks"}
        async with (
            running_nodes(tmp_path / "a", "1x8cpu,real", **shared) as first,
            running_nodes(tmp_path / "b", "1x8cpu,real", **shared) as second,
        ):
            await first.pod("p", command=ENDLESS, container=gpus(1))
            await first.phase("p", "Running")
            await second.pod("q", command=SHOW, container=gpus(1))
            assert "another cluster of yours have GPU-0" in await event(second, "q", "WaitingForGpus")
            await first.delete("p", grace=0)
            await second.phase("q", "Succeeded")

    for cluster in ("a", "b"):
        (tmp_path / cluster).mkdir()
    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc")
def test_after_a_kill_cards_are_given_out_when_the_processes_of_the_former_run_are_gone(tmp_path):
    """Whoever ran before was killed with its guardian, so nobody ended its processes."""

    async def scenario(left):
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=lambda: CARDS[:1]) as cluster:
            await cluster.pod("next", command=SHOW, container=gpus(1))
            await cluster.phase("next", "Succeeded")
            assert left.wait(10) == -signal.SIGKILL

    folder = tmp_path / "work" / "pods" / "default_old_uid-old" / "root"
    folder.mkdir(parents=True)
    record = [{"uid": "uid-old", "pod": "default/old", "containers": {"main": ["GPU-0"]}}]
    (tmp_path / "work" / "gpus.json").write_text(json.dumps(record))
    left = subprocess.Popen(["sleep", "987"], env=os.environ | {"STROMBOLI_ROOT": str(folder)})
    try:
        asyncio.run(scenario(left))
    finally:
        left.kill()
        left.wait()


def test_cards_of_a_former_pod_whose_processes_do_not_end_are_kept_and_others_start(tmp_path, monkeypatch):
    """Such as a process that waits for a driver that hangs, which no signal ends."""
    stuck, searched = [True], []

    def kill_marked(roots, seconds):
        searched.extend(roots)
        return {str(pod) for pod in roots if "old" in pod and stuck[0]}

    monkeypatch.setattr(node_startup, "kill_marked", kill_marked)

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=lambda: CARDS) as cluster:
            await cluster.pod("other", command=ENDLESS, container=gpus(1))
            assert cards_of(await cluster.phase("other", "Running")) == ["GPU-1"]
            await cluster.pod("next", command=SHOW, container=gpus(1))
            waiting = await event(cluster, "next", "WaitingForGpus")
            assert "processes of default/old hold" in waiting, "and not those of the pod that has ended"
            stuck[0] = False
            await cluster.phase("next", "Succeeded")
            assert await cluster.log("next") == "GPU-0 GPU-0\n"

    (tmp_path / "work" / "pods").mkdir(parents=True)
    record = [
        {"uid": f"uid-{name}", "pod": f"default/{name}", "containers": {"main": [card]}}
        for name, card in (("old", "GPU-0"), ("ended", "GPU-1"))
    ]
    (tmp_path / "work" / "gpus.json").write_text(json.dumps(record))
    asyncio.run(scenario())
    assert searched[-1] == str(tmp_path / "work" / "pods" / "default_old_uid-old")


def test_no_process_starts_while_the_former_guardian_still_kills(tmp_path, monkeypatch):
    """It would kill ours: they have the same mark."""
    answers = []

    def former_ended(guardian):
        answers.append(original(guardian))
        return answers[-1]

    original = ProcessGuardian.former_ended
    monkeypatch.setattr(ProcessGuardian, "former_ended", former_ended)

    async def scenario(lock):
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=list) as cluster:
            await cluster.pod("p", command=["true"])
            asked = len(answers)
            async with asyncio.timeout(60):
                while len(answers) < asked + 3:
                    await asyncio.sleep(0.01)
            assert not any(answers)
            assert (await cluster.get("p"))["status"]["phase"] == "Pending"
            lock.kill()
            lock.wait()
            await cluster.phase("p", "Succeeded")

    (tmp_path / "work").mkdir()
    hold = "import fcntl, sys, time; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX);"
    hold += "print('held', flush=True); time.sleep(100)"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / "work" / "pods.lock")], stdout=subprocess.PIPE
    ) as lock:
        assert lock.stdout.readline() == b"held\n"
        asyncio.run(scenario(lock))


def test_a_pod_waits_while_the_cards_cannot_be_listed(tmp_path):
    answers = [False]

    def find():
        if not answers[0]:
            raise NvidiaSmiError("nvidia-smi does not answer within 20 s")
        return CARDS

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real", find_gpus=find) as cluster:
            await cluster.pod("p", command=SHOW, container=gpus(1))
            assert "does not answer" in await event(cluster, "p", "WaitingForGpus")
            answers[0] = True
            await cluster.phase("p", "Succeeded")

    asyncio.run(scenario())


def test_a_card_that_fails_is_no_more_allocatable_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_capacity, "CHECK_AFTER", 0.1)
    working = list(CARDS[:1])

    async def allocatable(cluster, count):
        await cluster.until(
            "n1", lambda node: node["status"]["allocatable"]["nvidia.com/gpu"] == count, resource=NODES
        )

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,2gpu,real", find_gpus=lambda: list(working)) as cluster:
            await cluster.pod("p", command=SHOW, container=gpus(2))
            assert (await cluster.phase("p", "Failed"))["status"]["reason"] == "UnexpectedAdmissionError"
            await allocatable(cluster, "1")
            working.append(CARDS[1])
            await allocatable(cluster, "2")
            await cluster.pod("q", command=SHOW, container=gpus(2))
            await cluster.phase("q", "Succeeded")

    asyncio.run(scenario())


def node(name, capacity, allocatable, kind="real"):
    amounts = {"capacity": {"nvidia.com/gpu": capacity}, "allocatable": {"nvidia.com/gpu": allocatable}}
    return {"metadata": {"name": name, "labels": {"stromboli.sh/node": kind}}, "status": amounts}


def test_cards_that_are_left_go_to_real_nodes_in_order_of_their_names():
    nodes = [node("b", "2", "2"), node("a", "2", "2"), node("s", "8", "8", "simulated")]
    assert allocatable_gpus(nodes, 4) == {}
    assert allocatable_gpus(nodes, 3) == {"b": 1}
    assert allocatable_gpus(nodes, 0) == {"a": 0, "b": 0}
