"""All kinds together: objects in any order become the model, bad ones are told once, a check finds what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode
from stromboli.api.types.kinds import GROUP_OF
from stromboli.api.types.meta import Object
from stromboli.kube.api_resources import Resource
from stromboli.kube.reflector import UnusableObject
from stromboli.kube.request import Request
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.pauses import FIRST_PAUSE
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.consistency import check

NATIVE = "scheduling.k8s.io"
SIZE = {"cpu": "8", "memory": "16Gi", "pods": "110"}


def manifest_of(kind: str, name: str, version: int = 1, **fields: Any) -> dict[str, Any]:
    group = GROUP_OF[kind]
    meta = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": str(version)}
    meta |= {"namespace": "ns"} if kind in ("Pod", "PodGroup") else {}
    meta |= fields.pop("meta", {})
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": meta, **fields}


def pod(name: str, node: str = "", group: str = "g", version: int = 1, **meta: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"schedulerName": "volcano", "containers": [container]} | ({"nodeName": node} if node else {})
    meta = {"annotations": {"scheduling.k8s.io/group-name": group}} | meta
    phase = {"phase": "Running" if node else "Pending"}
    return manifest_of("Pod", name, version, meta=meta, spec=spec, status=phase)


def node(name: str, version: int = 1) -> dict[str, Any]:
    return manifest_of("Node", name, version, status={"allocatable": SIZE, "capacity": SIZE})


def decoded(manifest: dict[str, Any]) -> Object:
    difference = decode(manifest)
    assert difference is not None
    return difference


WORLD = [
    node("n1"),
    node("n2"),
    manifest_of("Queue", "default", spec={"weight": 1}, status={"state": "Open"}),
    manifest_of("PodGroup", "g", spec={"minMember": 2, "queue": "default"}, status={"phase": "Running"}),
    manifest_of("PriorityClass", "high", value=100),
    pod("a", "n1"),
    pod("b", "n2"),
    pod("c"),
]


class ObjectServer:
    """An API server that has these objects and whose watches say nothing."""

    def __init__(self, *manifests: dict[str, Any]) -> None:
        self.manifests = list(manifests)

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        items = [
            manifest
            for manifest in self.manifests
            if manifest["kind"] == resource.kind
            and manifest["apiVersion"].rpartition("/")[0] == resource.group
        ]
        return msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": items})

    async def send_with_retries(self, request: Request) -> bytes:
        """Discovery: there is no native group unless one is among the objects."""
        group = [
            manifest["apiVersion"] for manifest in self.manifests if manifest["apiVersion"].startswith(NATIVE)
        ]
        if request.path == f"/apis/{NATIVE}":
            return msgspec.json.encode(
                {"versions": [{"version": version.rpartition("/")[2]} for version in group]}
            )
        offered = [
            manifest for manifest in self.manifests if request.path == f"/apis/{manifest['apiVersion']}"
        ]
        difference = [{"name": "podgroups"} for manifest in offered if manifest["kind"] == "PodGroup"]
        return msgspec.json.encode({"resources": difference})

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(3600)
        yield self._nothing()

    async def _nothing(self) -> AsyncIterator[bytes]:
        for piece in ():
            yield piece


def mirror_of(*manifests: dict[str, Any]) -> ClusterMirror:
    mirror = ClusterMirror(ClusterWatches(ObjectServer()))
    apply(mirror, *manifests)
    return mirror


def apply(mirror: ClusterMirror, *manifests: dict[str, Any]) -> None:
    for manifest in manifests:
        mirror.seam.changes.put(decoded(manifest), new=False)
    mirror.sync()


def checked(mirror: ClusterMirror, source: ObjectServer) -> list[str]:
    """What a check finds while changes are applied all the time."""
    mirror.watches.client = source

    async def story() -> list[str]:
        running = asyncio.create_task(check(mirror, pause=0.0))
        while not running.done():
            mirror.sync()
            await asyncio.sleep(0.001)
        return [str(difference) for difference in await running]

    return asyncio.run(story())


def test_it_lists_all_kinds_and_is_in_step() -> None:
    async def story() -> ClusterMirror:
        async with ClusterMirror(ClusterWatches(ObjectServer(*WORLD))) as mirror:
            assert len(mirror.watches.unsynced) == len(mirror.watches.reflectors)
            await asyncio.wait_for(mirror.watches.synced(), 30)
            assert mirror.watches.unsynced == []
            mirror.sync()
            return mirror

    cluster = asyncio.run(story()).cluster
    assert {task.name: task.status for task in cluster.tasks.values()} == {
        "a": Status.RUNNING,
        "b": Status.RUNNING,
        "c": Status.PENDING,
    }


@given(st.permutations(WORLD))
def test_objects_may_come_in_any_order(order: list[dict[str, Any]]) -> None:
    assert checked(mirror_of(*order), ObjectServer(*WORLD)) == []


def test_a_check_names_what_is_missing_too_much_or_different() -> None:
    missing, other = (
        [manifest for manifest in WORLD if manifest["metadata"]["name"] != "b"],
        [*WORLD, pod("d", "n1")],
    )
    assert len(checked(mirror_of(*missing), ObjectServer(*WORLD))) == 1
    [difference] = checked(mirror_of(*other), ObjectServer(*WORLD))
    assert difference.startswith("Pod ns/d Pod-d: Running on n1 of ns/g")
    assert difference.endswith("on the API server: missing")
    [difference] = checked(mirror_of(*WORLD, node("n1", 2)), ObjectServer(*WORLD))
    assert difference.startswith("Node n1: Node-n1@2")


def test_a_check_finds_a_node_shard_that_was_missed() -> None:
    shard = manifest_of("NodeShard", "volcano", spec={"nodesDesired": ["n1"]})
    assert checked(mirror_of(*WORLD, shard), ObjectServer(*WORLD, shard)) == []
    (difference,) = checked(mirror_of(*WORLD), ObjectServer(*WORLD, shard))
    assert difference == "NodeShard volcano: missing; on the API server: NodeShard-volcano@1"


def test_a_check_finds_a_node_whose_sum_is_off() -> None:
    mirror = mirror_of(*WORLD)
    mirror.cluster.settle()
    mirror.cluster.columns._used[0, 0] += 5
    assert any("its tasks ask for" in difference for difference in checked(mirror, ObjectServer(*WORLD)))


def test_a_check_does_not_blame_a_bind_under_way() -> None:
    mirror = mirror_of(*WORLD)
    mirror.cluster.settle()
    task = mirror.cluster.tasks["Pod-c"]
    mirror.cluster.move(task, Status.BINDING, mirror.cluster.nodes["n1"])
    assert checked(mirror, ObjectServer(*WORLD)) == []


def test_an_echo_from_before_the_bind_changes_nothing() -> None:
    mirror = mirror_of(*WORLD)
    mirror.cluster.settle()
    task = mirror.cluster.tasks["Pod-c"]
    mirror.cluster.move(task, Status.BINDING, mirror.cluster.nodes["n1"])
    apply(mirror, pod("c", version=2))
    assert mirror.cluster.tasks["Pod-c"].status is Status.BINDING
    apply(mirror, pod("c", "n1", version=3))
    assert mirror.cluster.tasks["Pod-c"].status is Status.RUNNING


def test_a_pod_that_is_deleted_while_we_bind_it_leaves_its_place() -> None:
    mirror = mirror_of(*WORLD)
    mirror.cluster.settle()
    task = mirror.cluster.tasks["Pod-c"]
    mirror.cluster.move(task, Status.BINDING, mirror.cluster.nodes["n1"])
    dying = pod("c", version=2, deletionTimestamp="2026-01-01T00:00:00Z")
    apply(mirror, dying)
    task = mirror.cluster.tasks["Pod-c"]
    assert (task.status, task.terminating) == (Status.RELEASING, True)
    assert task.node is mirror.cluster.nodes["n1"]
    mirror.seam.changes.drop(decoded(dying))
    mirror.sync()
    assert "Pod-c" not in mirror.cluster.tasks
    assert (
        checked(
            mirror, ObjectServer(*(manifest for manifest in WORLD if manifest["metadata"]["name"] != "c"))
        )
        == []
    )


def test_an_object_that_cannot_be_used_is_told_once_until_it_is_mended() -> None:
    problems: list[UnusableObject] = []
    mirror = ClusterMirror(ClusterWatches(ObjectServer()), report=problems.append)
    bad = node("n1") | {"status": {"allocatable": {"cpu": "many"}}}
    apply(mirror, bad, node("n2"))
    apply(mirror, bad)
    assert [(problem.kind, problem.name) for problem in problems] == [("Node", "n1")]
    assert "many" in problems[0].text
    assert set(mirror.cluster.nodes) == {"n2"}
    mirror.report_again()
    assert len(problems) == 2
    apply(mirror, node("n1"))
    mirror.report_again()
    assert len(problems) == 2
    apply(mirror, bad)
    assert len(problems) == 3


def test_an_object_that_can_no_longer_be_used_stays_as_it_was_and_a_check_does_not_mind() -> None:
    mirror = mirror_of(*WORLD)
    bad = node("n1", 2) | {"status": {"allocatable": {"cpu": "many"}}}
    apply(mirror, bad)
    assert mirror.cluster.nodes["n1"].object is not None
    assert (
        checked(
            mirror,
            ObjectServer(*(manifest for manifest in WORLD if manifest["metadata"]["name"] != "n1"), bad),
        )
        == []
    )
    apply(mirror, node("n1", 3))
    assert len(checked(mirror, ObjectServer(*WORLD))) == 1


class Failing:
    """A mirror in whose model the claims of some pods raise, and what it reports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problems: list[UnusableObject] = []
        self.now = 1000.0
        self.bad: set[str] = set()
        self.tries: list[str] = []
        watches = ClusterWatches(ObjectServer())
        self.mirror = ClusterMirror(watches, report=self.problems.append, clock=lambda: self.now)
        enter_job = Cluster._enter_job

        def stumble(cluster: Cluster, job: Job, tasks: Sequence[Task]) -> None:
            self.tries += [task.name for task in tasks if task.name in self.bad]
            if any(task.name in self.bad for task in tasks):
                raise RuntimeError("a bug")
            enter_job(cluster, job, tasks)

        monkeypatch.setattr(Cluster, "_enter_job", stumble)
        apply(self.mirror, *WORLD)

    @property
    def names(self) -> set[str]:
        return {task.name for task in self.mirror.cluster.tasks.values()}


def test_an_object_that_fails_half_way_leaves_no_trace_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch)
    failing.bad.add("bad")
    apply(failing.mirror, pod("bad", "n1"), pod("d", "n1"))
    assert failing.names == {"a", "b", "c", "d"}
    assert [(problem.name, problem.text) for problem in failing.problems] == [
        ("bad", "could not be taken in: RuntimeError: a bug")
    ]
    apply(failing.mirror, pod("e"))
    assert failing.names == {"a", "b", "c", "d", "e"}
    assert len(failing.problems) == 1
    listed = ObjectServer(*WORLD, pod("bad", "n1"), pod("d", "n1"), pod("e"))
    assert checked(failing.mirror, listed) == []


def test_an_object_is_not_blamed_for_a_model_that_was_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch)
    broken = failing.mirror.cluster

    def stumble(task: Task) -> None:
        raise RuntimeError("it was the model")

    monkeypatch.setattr(broken.affinity_terms, "add", stumble)
    apply(failing.mirror, pod("d", "n1"))
    assert failing.mirror.cluster is not broken
    assert failing.names == {"a", "b", "c", "d"}
    assert failing.problems == []
    assert checked(failing.mirror, ObjectServer(*WORLD, pod("d", "n1"))) == []


def test_an_object_that_failed_is_tried_again_after_pauses_that_double(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing = Failing(monkeypatch)
    failing.bad.add("bad")
    apply(failing.mirror, pod("bad"))
    tried = []
    for second in range(100):
        failing.now += 1
        before = len(failing.tries)
        apply(failing.mirror, pod("bad", version=second + 2))
        tried += [second + 1] * (len(failing.tries) > before)
    assert tried == [FIRST_PAUSE, 3 * FIRST_PAUSE, 7 * FIRST_PAUSE]
    failing.bad.clear()
    failing.now += 8 * FIRST_PAUSE
    failing.mirror.sync()
    assert "bad" in failing.names


def test_a_namespace_with_many_such_objects_costs_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch)
    failing.bad |= {f"bad-{number}" for number in range(50)}
    elsewhere = pod("d", namespace="other")
    apply(failing.mirror, *(pod(name, namespace="theirs") for name in sorted(failing.bad)), elsewhere)
    assert len(failing.tries) <= 4
    assert "d" in failing.names
    apply(failing.mirror, pod("e", namespace="theirs"), pod("f"))
    assert "e" not in failing.names
    assert "f" in failing.names
    for name in sorted(failing.bad):
        failing.mirror.seam.changes.drop(decoded(pod(name, namespace="theirs")))
    failing.now += 10 * FIRST_PAUSE
    failing.mirror.sync()
    assert "e" in failing.names
    assert len(failing.tries) <= 4


def test_an_object_whose_removal_fails_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch)

    def stumble(task: Task) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(failing.mirror.cluster.affinity_terms, "remove", stumble)
    failing.mirror.seam.changes.drop(decoded(WORLD[-1]))
    failing.mirror.sync()
    assert failing.names == {"a", "b"}
    assert failing.problems == []


def test_a_model_that_cannot_be_settled_is_rebuilt_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch)
    models = [failing.mirror.cluster]
    for _ in range(35):
        failing.mirror.rebuild()
        failing.now += 1
        if failing.mirror.cluster is not models[-1]:
            models.append(failing.mirror.cluster)
    assert len(models) == 4
    assert checked(failing.mirror, ObjectServer(*WORLD)) == []


def test_a_pod_that_ran_nowhere_is_still_heard_of() -> None:
    mirror = mirror_of(*WORLD)
    for version, phase in enumerate(("Running", "Succeeded"), start=2):
        apply(mirror, pod("c", version=version) | {"status": {"phase": phase}})
    assert mirror.cluster.tasks["Pod-c"].status is Status.SUCCEEDED


def test_of_a_deleted_group_and_queue_nothing_is_remembered() -> None:
    mirror = mirror_of(*WORLD)
    job = next(iter(mirror.cluster.jobs.values()))
    job.reported["Unschedulable"] = ("Unschedulable", "told before")
    left = [manifest for manifest in WORLD if manifest["kind"] not in ("PodGroup", "Queue")]
    for manifest in WORLD:
        if manifest not in left:
            mirror.seam.changes.drop(decoded(manifest))
    mirror.sync()
    assert (job.phase, job.written, job.reported) == ("", None, {})
    assert checked(mirror, ObjectServer(*left)) == []


def test_a_group_that_was_deleted_and_created_anew_during_a_cycle_is_another_one() -> None:
    mirror = mirror_of(*WORLD)
    (job,) = mirror.cluster.jobs.values()
    job.reported["Unschedulable"] = ("Unschedulable", "about the first one")
    first = next(manifest for manifest in WORLD if manifest["kind"] == "PodGroup")
    second = {**first, "metadata": {**first["metadata"], "uid": "another"}}
    mirror.seam.changes.drop(decoded(first))
    mirror.seam.changes.put(decoded(second), new=True)
    mirror.sync()
    (job,) = mirror.cluster.jobs.values()
    assert job.group is not None
    assert (job.group.metadata.uid, job.reported) == ("another", {})
    assert len(job.tasks) == 3
