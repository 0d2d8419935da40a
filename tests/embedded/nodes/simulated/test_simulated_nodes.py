"""Simulated nodes on the embedded server: the stages of pods."""

import asyncio

import pytest

from stromboli.api.durations import Duration
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes.node_devices import DEVICE_CLASSES, SLICES
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.pod_claims_check import DEVICE_CLAIMS
from stromboli.embedded.nodes.real.process_runtime import VOLUMES
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.embedded.nodes.simulated.simulated_nodes import SimulatedRuntime
from stromboli.kube.api_resources import Resource
from tests.embedded.nodes.node_pods import pod
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
            assert {each["status"] for each in node["status"]["conditions"]} == {"Unknown"}
            assert all("lastHeartbeatTime" in each for each in node["status"]["conditions"])
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
            own = await cluster.until(
                "own", lambda node: "podCIDR" in node["spec"] and "nodeInfo" in node["status"], NODES
            )
            assert ready(own) == "True"
            assert len(own["status"]["conditions"]) == 4
            assert own["status"]["allocatable"] == {"cpu": "1", "pods": "110", "ephemeral-storage": "100Gi"}
            assert own["metadata"]["labels"]["kubernetes.io/hostname"] == "own"
            assert own["spec"]["podCIDR"] == "10.64.2.0/24"
            await cluster.nodes.synced()
            version = (await cluster.get("own", NODES))["metadata"]["resourceVersion"]
            await cluster.pod("p", node="own")
            await cluster.phase("p", "Running")
            assert "simulated" in await cluster.log("p")
            assert (await cluster.get("own", NODES))["metadata"]["resourceVersion"] == version

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


CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
EVENTS = Resource("", "v1", "events", "Event")


def test_a_pod_waits_for_its_volume_and_its_devices(tmp_path):
    spec = {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "device"}],
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    device = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "device"},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    result = {"request": "a", "driver": "gpu.stromboli.sh", "pool": "n1", "device": "gpu-0"}

    async def told(cluster, text):
        async with asyncio.timeout(30):
            while text.encode() not in await cluster.client.list(EVENTS, "default"):
                await asyncio.sleep(0.05)

    async def scenario():
        async with running_nodes(tmp_path, "8cpu") as cluster:
            await cluster.client.create(CLAIMS, claim, "default")
            await cluster.client.create(DEVICE_CLAIMS, device, "default")
            await cluster.pod("user", spec=spec)
            await told(cluster, "the claim is not bound to a volume")
            volume = {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "x"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": "1Gi"},
                    "hostPath": {"path": "/x"},
                },
            }
            await cluster.client.create(VOLUMES, volume)
            await told(cluster, "it has no devices yet")
            assert (await cluster.get("user"))["status"]["phase"] == "Pending"
            status = {"status": {"allocation": {"devices": {"results": [result]}}}}
            await cluster.client.patch(DEVICE_CLAIMS, "device", status, "default", subresource="status")
            started = await cluster.phase("user", "Running")  # the controller reserved it for the pod
            reserved = (await cluster.get("device", DEVICE_CLAIMS))["status"]["reservedFor"]
            assert [consumer["uid"] for consumer in reserved] == [started["metadata"]["uid"]]

    asyncio.run(scenario())


def test_gpus_of_a_node_are_published_and_go_with_it(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "8cpu,2gpu,dra,gpu-memory=40Gi,gpu-model=A100") as cluster:
            await cluster.nodes.synced()
            published = await cluster.get("n1-gpu.stromboli.sh", SLICES)
            assert published["spec"]["nodeName"] == "n1"
            first, second = published["spec"]["devices"]
            assert first["attributes"]["model"] == {"string": "A100"}
            assert first["capacity"]["memory"]["value"] == "40Gi"
            assert first["attributes"]["uuid"] != second["attributes"]["uuid"]
            assert (await cluster.get("gpu.stromboli.sh", DEVICE_CLASSES)) is not None
            await cluster.client.delete(NODES, "n1")
            await cluster.until("n1-gpu.stromboli.sh", lambda content: content is None, SLICES)

    asyncio.run(scenario())


def test_gpus_of_a_node_are_published_again_when_somebody_deletes_their_slice(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "2x8cpu,2gpu,dra") as cluster:
            for node in ("n1", "n2"):
                first = await cluster.until(f"{node}-gpu.stromboli.sh", bool, SLICES)
                await cluster.client.delete(SLICES, f"{node}-gpu.stromboli.sh")
                again = await cluster.until(f"{node}-gpu.stromboli.sh", bool, SLICES)
                assert again["metadata"]["uid"] != first["metadata"]["uid"]
                assert again["spec"] == first["spec"]

    asyncio.run(scenario())


def test_gpus_that_a_node_has_no_more_are_withdrawn(tmp_path):
    devices, published = "stromboli.sh/devices", "n1-gpu.stromboli.sh"

    async def scenario():
        async with running_nodes(tmp_path, "8cpu,2gpu,dra") as cluster:
            await cluster.until(published, lambda content: content is not None, SLICES)
            await cluster.client.patch(NODES, "n1", {"metadata": {"annotations": {devices: None}}})
            await cluster.until(published, lambda content: content is None, SLICES)
            await cluster.client.patch(NODES, "n1", {"metadata": {"annotations": {devices: "1"}}})
            await cluster.until(published, lambda content: content is not None, SLICES)
        async with running_nodes(tmp_path, "8cpu,4gpu,vgpu") as cluster:
            assert await cluster.get(published, SLICES) is None
        async with running_nodes(tmp_path, "8cpu,4gpu") as cluster:
            node = await cluster.get("n1", NODES)
            assert "annotations" not in node["metadata"]
            amounts = node["status"]["capacity"], node["status"]["allocatable"]
            assert all({name for name in each if "/" in name} == {"nvidia.com/gpu"} for each in amounts)

    asyncio.run(scenario())


def test_a_node_plays_the_device_plugin_of_shared_cards(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "8cpu,1gpu,vgpu") as cluster:
            lock = {"metadata": {"annotations": {"hamivgpu": "2026-01-01T00:00:00Z"}}}
            await cluster.client.patch(NODES, "n1", lock)
            await cluster.pod("user", annotations={"volcano.sh/bind-phase": "allocating"})
            await cluster.until(
                "user", lambda pod: pod["metadata"]["annotations"]["volcano.sh/bind-phase"] == "success"
            )
            await cluster.until("n1", lambda node: "hamivgpu" not in node["metadata"]["annotations"], NODES)

    asyncio.run(scenario())


def test_a_pod_whose_command_plainly_ends_does_and_its_log_has_what_it_prints(tmp_path):
    hello = ["sh", "-c", "date; echo Hello from the Kubernetes cluster"]

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod("hello", command=hello)
            await cluster.pod("fails", command=["sh", "-c", "echo $(date) it fails; exit 3"])
            await cluster.pod("again", command=["echo", "hi"], spec={"restartPolicy": "Always"})
            await cluster.pod("told", command=hello, annotations={RUN: "1h"})
            await cluster.pod("pi", command=["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"])
            await cluster.phase("hello", "Succeeded")
            assert f"the annotation {RUN}=30s of the pod" in await cluster.log("pi")
            assert "annotation" not in await cluster.log("told")
            date, text = (await cluster.log("hello")).splitlines()
            assert " UTC 20" in date
            assert text == hello[2].partition("echo ")[2]
            assert await cluster.log("hello", tail=1, follow=True) == f"{text}\n"
            failed = await cluster.phase("fails", "Failed")
            assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
            assert "simulated" in await cluster.log("fails")
            again = await cluster.until(
                "again",
                lambda pod: "waiting" in pod["status"].get("containerStatuses", [{"state": ""}])[0]["state"],
            )
            assert again["status"]["phase"] == "Running"
            assert again["status"]["containerStatuses"][0]["restartCount"] == 1
            assert await cluster.log("again", previous=True) == "hi\n"
            assert (await cluster.get("told"))["status"]["phase"] == "Running"
            events = await cluster.client.list(EVENTS, "default")
            assert b"Back-off restarting failed container main in pod again_default(" in events

    asyncio.run(scenario())


def test_an_init_container_runs_before_the_others_also_over_a_restart(tmp_path):
    inits = {"initContainers": [{"name": "init", "image": "none", "command": ["sleep", "1.5"]}]}

    def initializing(pod):
        return any("running" in each["state"] for each in pod["status"].get("initContainerStatuses", ()))

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            await cluster.pod("two", command=["sleep", "0.2"], spec=inits)
            before = await cluster.until("two", initializing)
            assert before["status"]["phase"] == "Pending"
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            after = await cluster.phase("two", "Succeeded")
            assert after["status"]["startTime"] == before["status"]["startTime"]

    asyncio.run(scenario())


class SettableClocks:
    """A wall clock that a test sets, and one that is never set."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_767_225_600.0, 100.0

    def pass_seconds(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


class RecordedWrites:
    """The phases that were written, and when by the clock that is never set."""

    def __init__(self, clocks: SettableClocks) -> None:
        self._clocks = clocks
        self.phases: list[tuple[float, str]] = []

    def patch_status(self, pod, status, failed=None) -> None:
        self.phases.append((self._clocks.steady - 100.0, status["phase"]))
        self.status = status


def simulated_runtime(clocks: SettableClocks) -> tuple[SimulatedRuntime, RecordedWrites]:
    writes = RecordedWrites(clocks)
    delays = StageDelays(start_delay=Duration(0.0, 0.0))
    runtime = SimulatedRuntime(
        writes, PodAddresses(), delays, lambda: clocks.wall, steady=lambda: clocks.steady
    )
    return runtime, writes


def play(runtime: SimulatedRuntime, clocks: SettableClocks, seconds: int) -> None:
    for _ in range(seconds):
        clocks.pass_seconds(1.0)
        runtime._timers._fire()


@pytest.mark.parametrize("jump", [-3600.0, 3600.0, 0.0])
@pytest.mark.parametrize("how", [{"annotations": {RUN: "60s"}}, {"command": ["sleep", "60"]}])
def test_a_pod_runs_as_long_as_it_should_when_the_clock_is_set(how, jump) -> None:
    async def scenario() -> None:
        clocks = SettableClocks()
        runtime, writes = simulated_runtime(clocks)
        runtime.put(pod(**how))
        play(runtime, clocks, 1)
        started = writes.status["containerStatuses"][0]["state"]["running"]["startedAt"]
        runtime.put(pod(phase="Running", started=started, **how))
        play(runtime, clocks, 20)
        clocks.wall += jump
        play(runtime, clocks, 10)
        runtime.put(pod(phase="Running", started=started, **how))  # seen again, unchanged
        play(runtime, clocks, 60)
        assert writes.phases == [(1.0, "Running"), (61.0, "Succeeded")]
        await runtime.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("how", [{"annotations": {RUN: "60s"}}, {"command": ["sleep", "60"]}])
def test_after_a_restart_a_pod_counts_from_its_recorded_start(how) -> None:
    async def scenario() -> None:
        clocks = SettableClocks()
        runtime, writes = simulated_runtime(clocks)
        runtime.put(pod(phase="Running", started=timestamp(clocks.wall - 50.0), **how))
        runtime.put(pod("future", phase="Running", started=timestamp(clocks.wall + 3600.0), **how))
        play(runtime, clocks, 70)
        assert writes.phases == [(10.0, "Succeeded"), (60.0, "Succeeded")]
        await runtime.close()

    asyncio.run(scenario())
