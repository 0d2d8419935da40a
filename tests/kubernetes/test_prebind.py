"""Volumes and devices that are written before a gang is bound, on an API server: whole or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stromboli.api.types.devices import (
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ConsumerReference,
    DeviceRequest,
    ExactDeviceRequest,
    OpaqueConfiguration,
)
from stromboli.api.types.pod import ContainerExtendedResourceRequest
from stromboli.engine.decisions import Bind, ReleaseClaim
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.event_recorder import EventRecorder
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.ledgers import Grant
from stromboli.scheduler.writes.decision_writer import DecisionWriter
from stromboli.scheduler.writes.prebind import claim_writes
from stromboli.scheduler.writes.write_orders import Gang, WriteFailure, WriteOrder
from tests.kubernetes.faults import Between, Fault, Trouble
from tests.kubernetes.scheduler_cluster import NAMESPACE, SchedulerCluster

pytestmark = [
    pytest.mark.real_only,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
VOLUME_CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SELECTED = "volume.kubernetes.io/selected-node"
MERGE = "application/merge-patch+json"


@pytest.fixture(autouse=True)
def nothing_is_left(shared_cluster: SchedulerCluster) -> Iterator[None]:
    yield
    for collection in (CLAIMS, SLICES, VOLUME_CLAIMS, VOLUMES, CLASSES):
        for item in shared_cluster.read(collection)["items"]:
            path = f"{collection}/{item['metadata']['name']}"
            shared_cluster.plane.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        shared_cluster.plane.request("DELETE", collection)


# -- volumes, with whole schedulers; the test plays the controllers


def storage_class(cluster: SchedulerCluster, name: str, provisioner: str) -> None:
    cluster.plane.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


def volume(name: str, storage_class: str, node: str, claim: dict[str, Any] | None = None) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "local": {"path": "/mnt"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    if claim is not None:
        spec["claimRef"] = {
            "namespace": NAMESPACE,
            "name": claim["metadata"]["name"],
            "uid": claim["metadata"]["uid"],
        }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def submit(cluster: SchedulerCluster, job: str, pods: int, storage_class: str) -> None:
    """A gang of pods with a claim each."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": job, "namespace": NAMESPACE},
        "spec": {"minMember": pods, "queue": "default"},
    }
    manifests: list[Any] = [group]
    for number in range(pods):
        pod = cluster.pod(job, number)
        name = pod["metadata"]["name"]
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        manifests += [claim, pod]
    cluster.plane.apply(*manifests)


def add_nodes(cluster: SchedulerCluster, count: int) -> None:
    for number in range(count):
        cluster.add_nodes(1, cpu=2, prefix=f"n{number}", labels={"kubernetes.io/hostname": f"n{number}-0"})


def add_local_volumes(cluster: SchedulerCluster, count: int) -> None:
    """A volume for each node, which the controller has found to be available."""
    cluster.plane.apply(*(volume(f"v{number}", "local", f"n{number}-0") for number in range(count)))
    for number in range(count):
        status = {"status": {"phase": "Available"}}
        cluster.plane.request("PATCH", f"{VOLUMES}/v{number}/status", status, MERGE)


def claims(cluster: SchedulerCluster) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in cluster.read(VOLUME_CLAIMS)["items"]}


def bind_claim(cluster: SchedulerCluster, claim: dict[str, Any], volume: str) -> None:
    """As the controller does it that binds volumes."""
    patch = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    }
    name = claim["metadata"]["name"]
    cluster.plane.request("PATCH", f"{VOLUME_CLAIMS}/{name}", patch, MERGE)
    status = {"status": {"phase": "Bound"}}
    cluster.plane.request("PATCH", f"{VOLUMES}/{volume}/status", status, MERGE)
    cluster.plane.request("PATCH", f"{VOLUME_CLAIMS}/{name}/status", status, MERGE)


def bind_reserved_volumes(cluster: SchedulerCluster) -> int:
    """Bind every claim whose volume is reserved for it; how many are bound."""
    by_uid = {claim["metadata"]["uid"]: claim for claim in claims(cluster).values()}
    reserved = [item for item in cluster.read(VOLUMES)["items"] if item["spec"].get("claimRef")]
    for item in reserved:
        claim = by_uid[item["spec"]["claimRef"]["uid"]]
        if not claim["spec"].get("volumeName"):
            bind_claim(cluster, claim, item["metadata"]["name"])
    return len(reserved)


def test_local_volumes_are_reserved_for_a_gang_and_bound_before_its_pods(cluster: SchedulerCluster) -> None:
    add_nodes(cluster, 3)
    storage_class(cluster, "local", "kubernetes.io/no-provisioner")
    add_local_volumes(cluster, 3)
    scheduler = cluster.start_scheduler()
    submit(cluster, "train", 3, "local")

    def reserved() -> bool:
        assert not cluster.bound("train")
        return sum("claimRef" in item["spec"] for item in cluster.read(VOLUMES)["items"]) == 3

    cluster.wait(reserved, "the volumes to be reserved")
    for item in cluster.read(VOLUMES)["items"]:
        assert item["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    assert bind_reserved_volumes(cluster) == 3
    cluster.wait_for_running("train", 3)
    affinity = {
        item["spec"]["claimRef"]["name"]: f"n{item['metadata']['name'][1:]}-0"
        for item in cluster.read(VOLUMES)["items"]
    }
    assert {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.pods("train")} == affinity
    assert 'stage="PreBind"' in scheduler.get("/metrics")[1]
    status, text = scheduler.get("/debug/consistency")
    assert (status, json.loads(text)["differences"]) == (200, [])


def selected_nodes(cluster: SchedulerCluster) -> dict[str, str]:
    """The nodes of claims whose volumes are to be provisioned."""
    written = {name: claim["metadata"].get("annotations", {}) for name, claim in claims(cluster).items()}
    return {name: annotations[SELECTED] for name, annotations in written.items() if SELECTED in annotations}


def provision(cluster: SchedulerCluster) -> None:
    """As a provisioner does it: volumes where the scheduler wants them."""
    for name, node in selected_nodes(cluster).items():
        cluster.plane.apply(volume(f"v-{name}", "slow", node, claims(cluster)[name]))
    bind_reserved_volumes(cluster)


def test_a_provisioner_that_refuses_a_claim_undoes_the_gang_and_says_why(cluster: SchedulerCluster) -> None:
    add_nodes(cluster, 3)
    storage_class(cluster, "slow", "example.com/slow")
    cluster.start_scheduler()
    submit(cluster, "train", 3, "slow")
    cluster.wait(lambda: len(selected_nodes(cluster)) == 3, "the claims to have their nodes")
    refusal = {"metadata": {"annotations": {SELECTED: None}}}
    cluster.plane.request("PATCH", f"{VOLUME_CLAIMS}/train-1", refusal, MERGE)
    text = 'execute preBind for pod stories/train-1 failed: binding volumes: provisioning failed for PVC "train-1"'
    for name in ("train-0", "train-1", "train-2"):
        cluster.wait(
            lambda name=name: any(message.startswith(text) for _, message in cluster.events(name)),
            "each pod to be told",
        )
    assert not cluster.bound("train")
    cluster.wait(lambda: len(selected_nodes(cluster)) == 3, "another try")
    provision(cluster)
    cluster.wait_for_running("train", 3)
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.pods("train")}
    assert nodes == selected_nodes(cluster)


def test_a_leader_whose_gangs_wait_for_volumes_ends_at_once_and_the_next_goes_on(
    cluster: SchedulerCluster,
) -> None:
    add_nodes(cluster, 2)
    storage_class(cluster, "slow", "example.com/slow")
    first = cluster.start_scheduler("--shutdown-timeout=10m")
    submit(cluster, "train", 2, "slow")
    cluster.wait(lambda: len(selected_nodes(cluster)) == 2, "the claims to have their nodes")
    before = selected_nodes(cluster)
    assert first.stop() == 0
    cluster.start_scheduler()
    provision(cluster)
    cluster.wait_for_running("train", 2)
    assert selected_nodes(cluster) == before


def test_a_scheduler_that_dies_between_volumes_and_binds_leaves_what_the_next_goes_on_with(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    add_nodes(cluster, 3)
    storage_class(cluster, "local", "kubernetes.io/no-provisioner")
    add_local_volumes(cluster, 3)
    proxy.rule = lambda method, path, count: 500 if path == f"{VOLUMES}/v2" and method == "PATCH" else None
    first = cluster.start_scheduler(server=proxy.url)
    submit(cluster, "train", 3, "local")
    cluster.wait(
        lambda: sum("claimRef" in item["spec"] for item in cluster.read(VOLUMES)["items"]) == 2,
        "two of three volumes to be reserved",
    )
    first.kill()
    bind_reserved_volumes(cluster)
    cluster.start_scheduler()
    cluster.wait(lambda: bind_reserved_volumes(cluster) == 3, "the third volume to be reserved")
    cluster.wait_for_running("train", 3)


# -- devices, with a writer that has the rights of a deployed scheduler


def device_claim(cluster: SchedulerCluster, name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }
    created: dict[str, Any] = json.loads(cluster.plane.request("POST", CLAIMS, body))
    return created


PARAMETERS = {"sharing": None, "nested": {"none": None, "list": [None, {}]}}


def devices(*names: str, request: str = "gpu", **fields: Any) -> AllocationResult:
    results = tuple(AllocatedDevice(request, "gpu.example.com", "pool", name, **fields) for name in names)
    opaque = OpaqueConfiguration("gpu.example.com", PARAMETERS)
    configuration = AllocatedConfiguration(opaque, requests=(request,), source="FromClass")
    return AllocationResult(AllocatedDevices(results, (configuration,)))


def grant(claim: dict[str, Any], pod: dict[str, Any], allocation: AllocationResult | None) -> ClaimGrant:
    metadata = pod["metadata"]
    consumer = ConsumerReference("", "pods", metadata["name"], metadata["uid"])
    return ClaimGrant(NAMESPACE, claim["metadata"]["name"], claim["metadata"]["uid"], consumer, allocation)


def pending_pods(cluster: SchedulerCluster, job: str, count: int) -> list[dict[str, Any]]:
    """Pods that ask for a GPU each, as an extended resource."""
    pods = [cluster.pod(job, number) for number in range(count)]
    for pod in pods:
        amounts = {"example.com/gpu": "1"}
        pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    cluster.plane.apply(*pods)
    return sorted(cluster.pods(job), key=lambda pod: str(pod["metadata"]["name"]))


def write(
    cluster: SchedulerCluster, *gangs: list[Bind], releases: tuple[ReleaseClaim, ...] = ()
) -> list[WriteFailure]:
    """Let a writer for each gang, all at once, do what was decided; the failures."""
    failures: list[WriteFailure] = []

    async def writing(binds: list[Bind]) -> None:
        async with Client(find_access(str(cluster.folder / "scheduler.kubeconfig"))) as client:
            writer = DecisionWriter(
                client,
                EventRecorder("volcano", "test", lambda: 1e9),
                lambda: 60.0,
                lambda *told: failures.extend(told),
            )
            gang = Gang()
            orders = [WriteOrder(bind) for bind in binds]
            for order, bind in zip(orders, binds, strict=True):
                gang.add(order, bind.uid, None)
            writer.outbox.submit([*orders, *map(WriteOrder, releases)])
            writer.start()
            async with asyncio.timeout(60.0):
                while len(writer):
                    await asyncio.sleep(0.02)
            assert await writer.finish(0.0)

    async def all_of_them() -> None:
        await asyncio.gather(*map(writing, gangs))

    asyncio.run(all_of_them())
    return failures


def bind(pod: dict[str, Any], *grants: Grant) -> Bind:
    metadata = pod["metadata"]
    return Bind(NAMESPACE, metadata["name"], metadata["uid"], "node-0", f"{NAMESPACE}/train", grants)


def state(cluster: SchedulerCluster, claim: dict[str, Any]) -> tuple[list[str], list[str], bool]:
    """The devices of a claim, its consumers, and whether it is protected."""
    found = cluster.read(f"{CLAIMS}/{claim['metadata']['name']}")
    status = found.get("status", {})
    results = status.get("allocation", {}).get("devices", {}).get("results", [])
    return (
        [result["device"] for result in results],
        [consumer["name"] for consumer in status.get("reservedFor", [])],
        bool(found["metadata"].get("finalizers")),
    )


def test_claims_are_allocated_reserved_and_released_as_the_api_server_wants_it(
    cluster: SchedulerCluster,
) -> None:
    cluster.add_nodes(1)
    first, second = pending_pods(cluster, "train", 2)
    own, shared, left = (device_claim(cluster, name) for name in ("own", "shared", "left"))
    mapping = ContainerExtendedResourceRequest("main", "example.com/gpu", "container-0-request-0")
    extended = ExtendedResourceGrant(
        NAMESPACE,
        ConsumerReference("", "pods", "train-0", first["metadata"]["uid"]),
        (DeviceRequest("container-0-request-0", ExactDeviceRequest("gpu", count=1)),),
        (mapping,),
        devices("g2", request="container-0-request-0"),
    )
    failures = write(
        cluster,
        [
            bind(first, grant(own, first, devices("g0")), grant(shared, first, devices("g1")), extended),
            bind(second, grant(shared, second, devices("g1"))),
        ],
    )
    assert not failures
    assert len(cluster.bound("train")) == 2
    assert state(cluster, own) == (["g0"], ["train-0"], True)
    assert state(cluster, shared) == (["g1"], ["train-0", "train-1"], True)
    for name in ("own", "shared"):
        (configuration,) = cluster.read(f"{CLAIMS}/{name}")["status"]["allocation"]["devices"]["config"]
        assert configuration["opaque"]["parameters"] == PARAMETERS
    status = next(pod for pod in cluster.pods("train") if pod["metadata"]["name"] == "train-0")["status"]
    made = status["extendedResourceClaimStatus"]["resourceClaimName"]
    assert state(cluster, {"metadata": {"name": made}}) == (["g2"], ["train-0"], True)
    assert state(cluster, left) == ([], [], False)
    seen = [cluster.read(f"{CLAIMS}/{name}")["metadata"] for name in ("own", "left")]
    releases = tuple(
        ReleaseClaim(NAMESPACE, meta["name"], meta["uid"], meta["resourceVersion"], delete=True)
        for meta in seen
    )
    write(cluster, [], releases=releases)
    assert state(cluster, own)[0] == ["g0"], "its pod runs"
    assert "left" not in [item["metadata"]["name"] for item in cluster.read(CLAIMS)["items"]]


def test_of_two_schedulers_that_fight_over_a_claim_one_wins_and_the_gang_of_the_other_is_undone(
    cluster: SchedulerCluster,
) -> None:
    cluster.add_nodes(1)
    fought = device_claim(cluster, "fought")
    gangs = []
    others = []
    for number in range(2):
        pods = pending_pods(cluster, f"gang{number}", 2)
        others.append(device_claim(cluster, f"other{number}"))
        gangs.append(
            [
                bind(pods[0], grant(others[number], pods[0], devices(f"o{number}"))),
                bind(pods[1], grant(fought, pods[1], devices(f"g{number}"))),
            ]
        )
    failures = write(cluster, *gangs)
    assert len(failures) == 2
    (loser,) = {failure.decision.name[:5] for failure in failures}
    winner = "gang1" if loser == "gang0" else "gang0"
    assert {failure.why for failure in failures} == {
        f"allocating devices: resourceclaim {NAMESPACE}/fought was allocated elsewhere meanwhile"
    }
    assert len(cluster.bound(winner)) == 2
    assert not cluster.bound(loser)
    assert state(cluster, fought) == ([f"g{winner[-1]}"], [f"{winner}-1"], True)
    assert state(cluster, others[int(loser[-1])]) == ([], [], False)


def test_a_gang_whose_device_fails_is_undone(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(1)
    pods = pending_pods(cluster, "train", 2)
    own, broken = device_claim(cluster, "own"), device_claim(cluster, "broken")
    conditions = {"binding_conditions": ("Ready",), "binding_failure_conditions": ("Broken",)}
    condition = {
        "type": "Broken",
        "status": "True",
        "reason": "Test",
        "message": "no power",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    reported = {"driver": "gpu.example.com", "pool": "pool", "device": "g1", "conditions": [condition]}

    def report() -> None:
        path = f"{CLAIMS}/broken"
        cluster.wait(lambda: "allocation" in cluster.read(path).get("status", {}), "an allocation")
        cluster.plane.request("PATCH", f"{path}/status", {"status": {"devices": [reported]}}, MERGE)

    failures = _with_reports(
        cluster,
        [
            bind(pods[0], grant(own, pods[0], devices("g0"))),
            bind(pods[1], grant(broken, pods[1], devices("g1", **conditions))),
        ],
        report,
    )
    text = f"allocating devices: resourceclaim {NAMESPACE}/broken: device g1 has Broken: no power"
    assert {failure.why for failure in failures} == {text}
    assert state(cluster, own) == state(cluster, broken) == ([], [], False)


def _with_reports(
    cluster: SchedulerCluster, binds: list[Bind], report: Callable[[], None]
) -> list[WriteFailure]:
    """As `write`, while somebody reports; the watch is played by looking again soon."""
    with ThreadPoolExecutor() as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_writes, "LOOK_AGAIN", 0.2)
        reported = pool.submit(report)
        failures = write(cluster, binds)
        reported.result()
    return failures


# -- devices, with whole schedulers


def submit_with_devices(cluster: SchedulerCluster, job: str, pods: int) -> None:
    """A gang of pods with a claim for a device each, on nodes with one device each."""
    driver = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    slices = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"node-{number}"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": f"node-{number}",
                "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        }
        for number in range(pods)
    ]
    cluster.plane.apply({**driver, "spec": {}}, *slices)
    manifests: list[Any] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": job, "namespace": NAMESPACE},
            "spec": {"minMember": pods, "queue": "default"},
        }
    ]
    for number in range(pods):
        pod = cluster.pod(job, number)
        name = pod["metadata"]["name"]
        device_claim(cluster, name)
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        manifests.append(pod)
    cluster.plane.apply(*manifests)


def given_devices(cluster: SchedulerCluster) -> list[str]:
    """The pools, of a device each, that claims were allocated from."""
    statuses = [item.get("status", {}) for item in cluster.read(CLAIMS)["items"]]
    return [
        result["pool"]
        for status in statuses
        for result in status.get("allocation", {}).get("devices", {}).get("results", [])
    ]


def all_is_well(cluster: SchedulerCluster, pods: int) -> None:
    """Each pod has the device of its node, no device is given twice, and the model equals the objects."""
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.bound("train")}
    assert len(nodes) == pods
    assert sorted(given_devices(cluster)) == sorted(nodes.values())
    for name, node in nodes.items():
        status = cluster.read(f"{CLAIMS}/{name}")["status"]
        assert [result["pool"] for result in status["allocation"]["devices"]["results"]] == [node]
        assert [consumer["name"] for consumer in status["reservedFor"]] == [name]
    status, text = cluster.schedulers[-1].get("/debug/consistency")
    assert (status, json.loads(text)["differences"]) == (200, [])


def test_a_scheduler_that_dies_between_claims_and_binds_leaves_what_the_next_goes_on_with(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    cluster.add_nodes(3)
    proxy.rule = lambda method, path, count: 500 if path.endswith("/binding") else None
    first = cluster.start_scheduler(server=proxy.url)
    submit_with_devices(cluster, "train", 3)
    cluster.wait(lambda: len(given_devices(cluster)) == 3, "the claims to be allocated")
    first.kill()
    assert not cluster.bound("train")
    cluster.start_scheduler()
    cluster.wait_for_running("train", 3)
    all_is_well(cluster, 3)


def test_writes_of_claims_that_fail_or_lose_their_answers_leave_no_gang_by_half(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    def rule(method: str, path: str, count: int) -> Fault:
        if method != "PATCH" or "/resourceclaims/" not in path:
            return None
        return (500, Trouble.LOSE_ANSWER, Trouble.LOSE_REQUEST, None)[count % 4]

    proxy.rule = rule
    cluster.add_nodes(3)
    cluster.start_scheduler(server=proxy.url)
    submit_with_devices(cluster, "train", 3)
    cluster.wait(lambda: bool(cluster.bound("train")), "the first bind")
    assert len(given_devices(cluster)) == 3, "no pod is bound before all claims are allocated"
    cluster.wait_for_running("train", 3)
    all_is_well(cluster, 3)


def test_a_claim_that_cannot_be_allocated_undoes_the_gang_and_says_why(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    proxy.rule = lambda method, path, count: 403 if "/train-1/status" in path and "claims" in path else None
    cluster.add_nodes(3)
    cluster.start_scheduler(server=proxy.url)
    submit_with_devices(cluster, "train", 3)
    text = "execute preBind for pod stories/train-1 failed: allocating devices: trouble, resync the task"
    for name in ("train-0", "train-2"):
        cluster.wait(lambda name=name: text in [told for _, told in cluster.events(name)], "a pod to be told")
    cluster.wait(lambda: not given_devices(cluster), "all devices to be given back")
    assert not cluster.bound("train")
    proxy.rule = lambda method, path, count: None
    cluster.wait_for_running("train", 3)
    all_is_well(cluster, 3)
