"""Native groups on the wire: found in whatever version there is, mirrored, and written one condition."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from stromboli.api.types.meta import Condition
from stromboli.api.types.native_group import NativePodGroup
from stromboli.engine.decisions import Decision, Event, NativeGroupCondition
from stromboli.kube.api_resources import RESOURCES, absence
from stromboli.kube.request import ApiError, Backoff
from stromboli.model.job import JobId
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches, NativeGroupReflector
from stromboli.scheduler.mirror.kubernetes_world import PATIENCE, KubernetesWorld
from stromboli.scheduler.writes.write_orders import DecisionOrders, WriteOrder, merge
from tests import manifests
from tests.kube.fake_api import GONE, FakeApi, body
from tests.kube.test_reflector import Script, ScriptEnded, Sink
from tests.scheduler.mirror.test_cluster_mirror import (
    NATIVE,
    WORLD,
    ObjectServer,
    apply,
    checked,
    manifest_of,
    mirror_of,
)
from tests.scheduler.mirror.test_kubernetes_world import Mirror as PlainMirror
from tests.scheduler.writes.test_decision_writer import write

V1ALPHA2 = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"}
V1BETA1 = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}, "priority": 7}
JOB = JobId("NativePodGroup", "ns", "g")


def native(version: str, spec: dict[str, Any], number: int = 1) -> dict[str, Any]:
    meta = {"name": "g", "namespace": "ns", "uid": "native-g", "resourceVersion": str(number)}
    return {"apiVersion": f"{NATIVE}/{version}", "kind": "PodGroup", "metadata": meta, "spec": spec}


def member(name: str) -> dict[str, Any]:
    spec = {"schedulerName": "volcano", "schedulingGroup": {"podGroupName": "g"}}
    return manifest_of("Pod", name, spec=spec, status={"phase": "Pending"})


# -- the mirror


def absent_groups(mirror: ClusterMirror) -> list[str]:
    return [
        reflector.resource.group for reflector in mirror.watches.reflectors if reflector.installed is False
    ]


@pytest.mark.parametrize(("version", "spec"), [("v1alpha2", V1ALPHA2), ("v1beta1", V1BETA1)])
def test_a_group_of_whatever_version_becomes_a_job(version: str, spec: dict[str, Any]) -> None:
    server = ObjectServer(*WORLD, native(version, spec), member("x"))

    async def story() -> ClusterMirror:
        async with ClusterMirror(ClusterWatches(server)) as mirror:
            await asyncio.wait_for(mirror.watches.synced(), 30)
            mirror.sync()
            return mirror

    mirror = asyncio.run(story())
    job = mirror.cluster.jobs[JOB]
    assert (job.minimum, job.disrupted_as_group, len(job.tasks)) == (2, True, 1)
    assert job.native is not None
    assert job.native.api_version == f"{NATIVE}/{version}"
    assert NATIVE not in absent_groups(mirror)
    assert checked(mirror, server) == []


def test_a_check_names_a_native_group_that_is_missing_or_different() -> None:
    server = ObjectServer(*WORLD, native("v1alpha2", V1ALPHA2))
    [difference] = checked(mirror_of(*WORLD), server)
    assert difference.startswith("NativePodGroup ns/g: missing")
    [difference] = checked(mirror_of(*WORLD, native("v1alpha2", V1ALPHA2, 2)), server)
    assert difference.startswith("NativePodGroup ns/g: native-g@2")


def test_a_server_without_native_groups_is_nothing_to_worry_about() -> None:
    async def story() -> ClusterMirror:
        async with ClusterMirror(ClusterWatches(ObjectServer(*WORLD))) as mirror:
            await asyncio.wait_for(mirror.watches.synced(), 30)
            return mirror

    mirror = asyncio.run(story())
    assert absent_groups(mirror) == [NATIVE]
    assert not any(reflector.problem for reflector in mirror.watches.reflectors)
    assert "native groups" in absence(RESOURCES[NativePodGroup])


def test_a_group_that_cannot_be_used_is_told_and_its_pods_wait() -> None:
    problems: list[Any] = []
    bad = native("v1alpha2", {**V1ALPHA2, "parentCompositePodGroupName": "all"})

    async def story() -> ClusterMirror:
        server = ObjectServer(*WORLD, bad, member("x"))
        async with ClusterMirror(ClusterWatches(server), report=problems.append) as mirror:
            await asyncio.wait_for(mirror.watches.synced(), 30)
            mirror.sync()
            return mirror

    cluster = asyncio.run(story()).cluster
    assert [(problem.kind, problem.name) for problem in problems] == [("NativePodGroup", "g")]
    assert "not supported" in problems[0].text
    assert not cluster.jobs[JOB].visible


# -- following a version


def group(version: int) -> dict[str, Any]:
    meta = {"name": "g", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"schedulingPolicy": {"basic": {}}}}


def page(*items: Any) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "5"}, "items": items}).encode()


def versions(*names: str) -> bytes:
    return json.dumps({"versions": [{"version": name} for name in names]}).encode()


HERE = b'{"resources": [{"name": "podgroups"}, {"name": "podgroups/status"}]}'
ELSEWHERE = b'{"resources": [{"name": "priorityclasses"}]}'


class VersionSink(Sink):
    """Records the version of every object."""

    def put(self, object: Any, new: bool) -> None:
        self.changes.append(f"put {object.name} {object.api_version.rpartition('/')[2]}")


def follow(*responses: Any) -> tuple[NativeGroupReflector, Script, VersionSink, list[float]]:
    script, sink, pauses = Script(*responses), VersionSink(), []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    reflector = NativeGroupReflector(
        script,
        RESOURCES[NativePodGroup],
        NativePodGroup,
        sink,
        backoff=Backoff(first=1, longest=8, jitter=lambda: 1.0),
        sleep=sleep,
        clock=lambda: 0.0,
        jitter=lambda: 1.0,
    )
    with pytest.raises(ScriptEnded):
        asyncio.run(reflector.run())
    return reflector, script, sink, pauses


def test_the_most_mature_version_is_followed() -> None:
    responses = versions("v1", "v1alpha2", "v1beta1", "odd"), ELSEWHERE, HERE, page(group(1))
    reflector, script, sink, _ = follow(*responses)
    assert script.requests[:3] == [
        f"GET /apis/{NATIVE}",
        f"GET /apis/{NATIVE}/v1",
        f"GET /apis/{NATIVE}/v1beta1",
    ]
    assert sink.changes == ["put g v1beta1"]
    assert reflector.installed


def test_a_version_of_another_shape_is_passed_over() -> None:
    reflector, script, _, pauses = follow(versions("v1", "v1alpha1"), ELSEWHERE)
    assert (reflector.installed, reflector.synced.is_set()) == (False, True)
    assert pauses  # and is looked for again later
    assert f"GET /apis/{NATIVE}/v1alpha1" not in script.requests


def test_it_appears_when_it_is_switched_on() -> None:
    responses = versions("v1"), ELSEWHERE, versions("v1", "v1alpha2"), ELSEWHERE, HERE, page(group(1))
    assert follow(*responses)[2].changes == ["put g v1alpha2"]


def test_an_upgrade_of_the_server_loses_no_group() -> None:
    """The old version is gone: they are found in the new one, and were never thought to be away."""
    before = versions("v1alpha2"), HERE, page(group(1)), ApiError(404, "NotFound", "no such version")
    after = versions("v1beta1"), HERE, page(group(2))
    assert follow(*before, *after)[2].changes == ["put g v1alpha2", "put g v1beta1"]


# -- the condition


UNSCHEDULABLE = NativeGroupCondition("ns", "g", "False", "Unschedulable", "no room")
DONE = NativeGroupCondition("ns", "g", "True", "Scheduled", "")


def order(decision: Decision, version: str = "v1alpha2", *standing: Condition, uid: str = "u1") -> WriteOrder:
    return WriteOrder(decision, uid, standing, api_version=f"{NATIVE}/{version}", generation=3)


@pytest.mark.parametrize(
    ("version", "type"), [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")]
)
def test_the_condition_is_patched_into_the_status(version: str, type: str) -> None:
    api = FakeApi()
    write(api, order(UNSCHEDULABLE, version))
    [asked] = api.writes
    assert (asked.method, asked.path) == (
        "PATCH",
        f"/apis/{NATIVE}/{version}/namespaces/ns/podgroups/g/status",
    )
    assert asked.content_type == "application/strategic-merge-patch+json"
    assert body(asked) == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [
                {
                    "type": type,
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no room",
                    "lastTransitionTime": "1970-01-01T00:16:40Z",
                    "observedGeneration": 3,
                }
            ]
        },
    }


def test_its_time_is_that_of_the_last_change_of_its_status() -> None:
    since = datetime(2026, 1, 2, tzinfo=UTC)
    stood = Condition("PodGroupScheduled", "False", "Unschedulable", "older words", since)
    api = FakeApi()
    write(api, order(UNSCHEDULABLE, "v1alpha2", stood))
    write(api, order(DONE, "v1alpha2", stood))
    times = [body(request)["status"]["conditions"][0]["lastTransitionTime"] for request in api.writes]
    assert times == ["2026-01-02T00:00:00Z", "1970-01-01T00:16:40Z"]


def test_of_two_that_wait_the_later_one_is_written() -> None:
    assert merge(order(UNSCHEDULABLE), order(DONE)).decision == DONE  # type: ignore[union-attr]
    assert merge(order(UNSCHEDULABLE), order(DONE, uid="other")) is None


def test_a_group_that_is_gone_is_no_failure() -> None:
    outcome = write(FakeApi([GONE]), order(UNSCHEDULABLE))
    assert (outcome.done, outcome.failures) == ([UNSCHEDULABLE], [])


def test_an_event_is_about_the_group_as_kubernetes_calls_it() -> None:
    api = FakeApi()
    write(api, WriteOrder(Event("NativePodGroup", "ns", "g", "Warning", "Unschedulable", "no room"), "u1"))
    about = api.events[0]["involvedObject"]
    assert (about["apiVersion"], about["kind"]) == (f"{NATIVE}/v1alpha2", "PodGroup")
    assert (about["name"], about["uid"]) == ("g", "u1")


# -- the world


def test_orders_know_the_uid_the_version_and_what_stands_there() -> None:
    orders: list[WriteOrder] = []
    mirror = PlainMirror()
    owner = manifests.native_group("g", 1, namespace="ns", version="v1beta1")
    stood = Condition("PodGroupInitiallyScheduled", "False", "Unschedulable", "older words")
    mirror.incoming += [manifests.queue(), {**owner, "status": {"conditions": [stood]}}]
    made = DecisionOrders(mirror)
    world = KubernetesWorld(mirror, lambda decisions: orders.extend(made.of(decisions)), lambda: 0.0)
    world.sync()
    event = Event("NativePodGroup", "ns", "g", "Warning", "Unschedulable", "no room")
    world.execute([UNSCHEDULABLE, event])
    assert [order.uid for order in orders] == ["NativePodGroup/ns/g", "NativePodGroup/ns/g"]
    assert (orders[0].api_version, orders[0].generation) == (f"{NATIVE}/v1beta1", 1)
    assert [condition.status for condition in orders[0].conditions] == ["False"]


def test_a_native_gang_that_was_torn_makes_room_as_a_whole() -> None:
    decisions: list[Decision] = []
    mirror, now = PlainMirror(), [0.0]
    since = Condition(
        "PodScheduled", "True", last_transition_time=datetime.fromtimestamp(manifests.EPOCH, UTC)
    )
    bound = manifests.pod("g-x-0", native="g", on="n1", phase="Pending", status={"conditions": [since]})
    mirror.incoming += [manifests.queue(), manifests.node("n1"), manifests.native_group("g", 2)]
    mirror.incoming += [bound, manifests.pod("g-x-1", native="g")]
    world = KubernetesWorld(mirror, decisions.extend, lambda: now[0], clock=lambda: now[0])
    now[0] = manifests.EPOCH + 1.0
    world.sync()
    now[0] += PATIENCE
    world.sync()
    kinds = [(type(decision).__name__, getattr(decision, "kind", "")) for decision in decisions]
    assert kinds == [("Event", "NativePodGroup"), ("Evict", "")]


def test_what_is_told_is_what_the_mirror_hears() -> None:
    """The patch, applied, is read as what was decided: so it is not decided again."""
    api = FakeApi()
    write(api, order(UNSCHEDULABLE))
    [condition] = body(api.writes[0])["status"]["conditions"]
    mirror = mirror_of(*WORLD)
    apply(mirror, {**native("v1alpha2", V1ALPHA2), "status": {"conditions": [condition]}})
    stands = mirror.cluster.jobs[JOB].conditions["PodGroupScheduled"]
    assert tuple(stands) == (UNSCHEDULABLE.status, UNSCHEDULABLE.reason, UNSCHEDULABLE.message)
    assert msgspec.json.encode(condition)
