"""Short pods in large numbers, and pods of every bad sort, leave neither processes nor files behind."""

import asyncio
import gc
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from stromboli.embedded.http.api_server import ApiServer
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from tests.embedded.nodes.node_services import PODS, running_nodes
from tests.embedded.up_process import Up, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
BATCH_JOBS = Resource("batch", "v1", "jobs", "Job")
VOLCANO_JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MANY = 1000
MEBIBYTE = 1 << 20


def processes(folder):
    """Those that pods in the folder started, and the guardian."""
    marks = (f"STROMBOLI_ROOT={folder}/".encode(), f"{folder}/work/pods".encode())
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            texts = [Path(f"/proc/{pid}/{name}").read_bytes() for name in ("environ", "cmdline")]
        except OSError:
            continue
        if any(mark in text for mark in marks for text in texts):
            found.append(int(pid))
    return found


def folders(folder):
    pods = folder / "work" / "pods"
    return sorted(path.name for path in pods.iterdir()) if pods.exists() else []


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def settles(measure, expected, seconds=30):
    """Wait until a measure is at most as expected."""
    value = measure()
    for _ in range(int(seconds / 0.1)):
        if value <= expected:
            return
        await asyncio.sleep(0.1)
        value = measure()
    raise AssertionError(f"{measure.__name__}: {value}, and no more than {expected} were expected")


def descriptors():
    """All but connections: these stay open for a while, as many as there were requests at a time."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum(not link.startswith("socket:") for link in links)


def tasks():
    """Of nodes."""
    files = [task.get_coro().cr_code.co_filename for task in asyncio.all_tasks()]
    return sum("stromboli/embedded/nodes/real/" in file for file in files)


def timers():
    """Of nodes."""
    handles = [handle for handle in asyncio.get_running_loop()._scheduled if not handle.cancelled()]
    modules = [getattr(handle._callback, "__module__", None) or "" for handle in handles]
    return sum(module.startswith("stromboli.embedded.nodes.real") for module in modules)


async def pods_left(cluster):
    return json.loads(await cluster.client.list(PODS, namespace="default"))["items"]


async def run_pods(cluster, count, name):
    """Create pods, 50 requests at a time, and delete them when all have succeeded."""
    slots = asyncio.Semaphore(50)

    async def create(number):
        async with slots:
            await cluster.pod(
                f"{name}-{number}", node=f"n{number % 2 + 1}", command=["sh", "-c", "echo hi > file"]
            )

    async def delete(number):
        async with slots:
            await cluster.delete(f"{name}-{number}")

    await asyncio.gather(*map(create, range(count)))
    async with asyncio.timeout(300):
        while any(pod["status"]["phase"] != "Succeeded" for pod in await pods_left(cluster)):
            await asyncio.sleep(0.5)
        await asyncio.gather(*map(delete, range(count)))
        while await pods_left(cluster):
            await asyncio.sleep(0.2)


@pytest.mark.slow
def test_a_thousand_short_pods_leave_nothing_behind(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "2x8cpu,real") as cluster:
            await run_pods(cluster, 60, "first")  # connections and caches are there from now on
            gc.collect()
            opened, memory = descriptors(), resident()
            await run_pods(cluster, MANY, "short")
            await settles(lambda: len(folders(tmp_path)), 0)
            await settles(descriptors, opened)
            await settles(tasks, 0)
            await settles(timers, 0)
            gc.collect()
            assert resident() < memory + 100 * MEBIBYTE
            runtime = cluster.nodes._runtimes["real"]
            state = (runtime._workers, runtime._folders, runtime._terminating, runtime._stopping)
            assert [len(each) for each in state] == [0, 0, 0, 0]
            assert not runtime._context.guardian._watched
            assert len(processes(tmp_path)) == 1  # the guardian
        assert processes(tmp_path) == []

    asyncio.run(scenario())


BAD_PODS = {
    "daemon": "setsid sh -c 'sleep 987' & setsid -f sleep 987; sleep 987",
    "stubborn": "trap '' TERM; while :; do sleep 0.05; done",
    "readonly": "mkdir -p a/b; touch a/b/c; chmod 500 a/b a; sleep 987",
    "forks": "for n in 1 2 3 4 5; do (trap '' TERM; sleep 987) & done; wait",
    "ended": "setsid -f sleep 987; touch left; exit 1",
}


async def create_bad_pods(cluster):
    for name, script in BAD_PODS.items():
        await cluster.pod(name, command=["sh", "-c", f"touch begun; {script}"])
    for name in BAD_PODS:
        await cluster.until(name, lambda pod: pod["status"].get("phase") in ("Running", "Failed"))


def begun(folder):
    return len(list((folder / "work" / "pods").glob("*/root/begun")))


def test_pods_of_every_bad_sort_leave_nothing_behind_when_they_are_deleted(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await create_bad_pods(cluster)
            for name in BAD_PODS:
                await cluster.delete(name, grace=1)
            for name in BAD_PODS:
                await cluster.gone(name)
            await settles(lambda: len(processes(tmp_path)), 1)
            await settles(lambda: len(folders(tmp_path)), 0)

    asyncio.run(scenario())


def client_of(server, folder):
    return Client(find_access(str(server.write_kubeconfig(folder / "kubeconfig"))))


@pytest.mark.slow
def test_what_pods_left_that_were_deleted_while_nobody_ran_them_goes_at_the_next_start(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await create_bad_pods(cluster)
            await cluster.pod("done", command=["echo", "said"])
            await cluster.phase("done", "Succeeded")
        assert processes(tmp_path) == []
        assert len(folders(tmp_path)) == len(BAD_PODS) + 1
        async with ApiServer(tmp_path / "data", tls=False) as server, client_of(server, tmp_path) as client:
            for name in BAD_PODS:
                await client.delete(PODS, name, "default", {"gracePeriodSeconds": 0})
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await settles(lambda: len(folders(tmp_path)), 1)
            assert folders(tmp_path)[0].startswith("default_done_")
            assert await cluster.log("done") == "said\n"

    asyncio.run(scenario())


STRAY = "setsid -f sleep 987 > log 2>&1"
"""A process that leaves its group, and does not hold the output of its container, which would be waited for."""


def template(script):
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    return {"spec": {"restartPolicy": "OnFailure", "containers": [container]}}


async def create_jobs(client):
    """Jobs of both sorts in a namespace; those that are slow wait for the file `go` of the data folder."""
    await client.create(NAMESPACES, {"metadata": {"name": "team"}})
    for number, wait in enumerate(["", "while [ ! -e ../../../../go ]; do sleep 0.05; done;"] * 2):
        spec = {"template": template(f"{STRAY}; {wait} echo {number} > file")}
        await client.create(BATCH_JOBS, {"metadata": {"name": f"job-{number}"}, "spec": spec}, "team")
    task = {"name": "task", "replicas": 4, "template": template(f"{STRAY}; touch file")}
    spec = {"minAvailable": 4, "schedulerName": "volcano", "tasks": [task]}
    await client.create(VOLCANO_JOBS, {"metadata": {"name": "gang"}, "spec": spec}, "team")


async def phases(client):
    items = json.loads(await client.list(PODS, namespace="team"))["items"]
    return sorted(item["status"].get("phase") for item in items)


async def reach(client, *expected):
    async with asyncio.timeout(60):
        while await phases(client) != sorted(expected):
            await asyncio.sleep(0.1)


@pytest.mark.slow
def test_jobs_leave_nothing_behind_when_up_is_killed_and_their_namespace_is_deleted(tmp_path):
    data = tmp_path / "data"

    async def with_client(use, *arguments):
        async with Client(find_access(str(data / "kubeconfig"))) as client:
            await use(client, *arguments)

    async def delete_namespace(client):
        await client.delete(NAMESPACES, "team")
        async with asyncio.timeout(60):
            while await phases(client):
                await asyncio.sleep(0.1)

    with Up(data, "--nodes", "2x16cpu,64Gi,real") as up:
        asyncio.run(with_client(create_jobs))
        asyncio.run(with_client(reach, *["Running"] * 2, *["Succeeded"] * 6))
        up.stop(signal.SIGKILL)
        eventually(lambda: processes(data) == [])
        assert len(folders(data)) == 8
        up.start()
        (data / "go").touch()
        asyncio.run(with_client(reach, *["Succeeded"] * 8))
        assert len(folders(data)) == 8
        asyncio.run(with_client(delete_namespace))
        eventually(lambda: folders(data) == [])
        eventually(lambda: len(processes(data)) <= 1)  # the guardian
    eventually(lambda: processes(data) == [])
