"""How objects become the model: pods, PodGroups, queues and nodes as they really come (spec 01 2.2-2.4, 3.1, 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.node import Taint
from stromboli.model.dimensions import MOST
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.model.task import Condition
from stromboli.testing import World
from tests.manifests import (
    decoded,
    group,
    job_named,
    native_group,
    node,
    pod,
    priority_class,
    queue,
    task_named,
)
from tests.properties.rebuild import facts

CPU, MEMORY = 0, 1

# -- pods


@pytest.mark.parametrize(
    ("phase", "placed", "dying", "status"),
    [
        ("Running", True, False, Status.RUNNING),
        ("Running", True, True, Status.RELEASING),
        ("Pending", False, False, Status.PENDING),
        ("Pending", False, True, Status.RELEASING),
        ("Pending", True, False, Status.BOUND),
        ("Pending", True, True, Status.RELEASING),
        ("Succeeded", True, True, Status.SUCCEEDED),
        ("Failed", True, True, Status.FAILED),
        ("Unknown", True, True, Status.UNKNOWN),
        ("Odd", True, False, Status.UNKNOWN),
    ],
)
def test_status_follows_phase_node_and_deletion(
    phase: str, placed: bool, dying: bool, status: Status
) -> None:
    cluster = (
        World().add(node("n0"), pod("p", phase=phase, on="n0" if placed else "", terminating=dying)).cluster
    )
    assert task_named(cluster, "p").status is status


def test_a_finished_pod_stays_in_its_job_but_not_on_its_node() -> None:
    cluster = World().add(group("job"), node("n0"), pod("p", "job", phase="Succeeded", on="n0")).cluster
    assert not cluster.nodes["n0"].tasks
    assert job_named(cluster, "job").ready_count == 1


def test_a_pod_of_another_scheduler_counts_once_it_has_a_node() -> None:
    other: dict[str, Any] = {"scheduler": names.OTHER_SCHEDULER_NAME}
    world = World().add(node("n0"), pod("p", **other))
    assert not world.cluster.tasks
    world.add(pod("p", on="n0", cpu=3, **other))
    assert not task_named(world.cluster, "p").ours
    assert world.cluster.columns.row("n0")["idle"]["cpu"] == 1000


BOTH = (names.SCHEDULER_NAME, names.OTHER_SCHEDULER_NAME)
"""The schedulers for whose pods `up` is responsible."""


def test_a_pod_of_kubernetes_scheduler_that_arrives_bound_only_occupies_capacity() -> None:
    """Also where that name is one of ours: a static pod, say, or one that names its node itself."""
    other: dict[str, Any] = {"scheduler": names.OTHER_SCHEDULER_NAME}
    intake = Intake(schedulers=BOTH)
    manifests = [
        node("n0", cpu=8),
        group("job"),
        pod("static", on="n0", cpu=3, **other),
        pod("waits", **other),
    ]
    manifests.append(pod("bound", "job", on="n0", **other))
    for manifest in manifests:
        intake.put(decoded(manifest))
    intake.cluster.settle()
    static, waits, bound = (task_named(intake.cluster, name) for name in ("static", "waits", "bound"))
    assert (static.ours, static.job, static.node) == (False, None, intake.cluster.nodes["n0"])
    assert intake.cluster.columns.row("n0")["idle"]["cpu"] == 4000
    assert (waits.ours, bound.ours) == (True, True)  # a pod that we bound is ours after a restart too
    assert bound.job is job_named(intake.cluster, "job")


def test_a_pod_that_another_scheduler_binds_meanwhile_is_its_own() -> None:
    other: dict[str, Any] = {"scheduler": names.OTHER_SCHEDULER_NAME}
    intake = Intake(schedulers=BOTH)
    for manifest in (node("n0"), pod("p", **other), pod("p", on="n0", **other)):
        intake.put(decoded(manifest))
    intake.cluster.settle()
    assert not task_named(intake.cluster, "p").ours


def test_an_echo_without_a_node_does_not_unbind_a_pod() -> None:
    world = World().add(node("n0"), group("job"), pod("p", "job"))
    task = task_named(world.cluster, "p")
    world.cluster.move(task, Status.BINDING, world.cluster.nodes["n0"])
    world.add(pod("p", "job"))
    assert task_named(world.cluster, "p") is task
    world.remove(pod("p", "job"))
    assert not world.cluster.tasks


def test_a_pod_without_a_group_occupies_its_node_only() -> None:
    cluster = World().add(node("n0"), pod("p", on="n0")).cluster
    assert task_named(cluster, "p").job is None
    assert not cluster.jobs
    assert cluster.columns.row("n0")["used"]["cpu"] == 1000


def test_a_bad_pod_changes_nothing() -> None:
    world = World().add(node("n0"), pod("p", on="n0"))
    with pytest.raises(BadObject, match="Pod default/p"):
        world.rehearsal.intake.put(decoded(pod("p", on="n0", cpu="a lot")))
    assert world.cluster.columns.row("n0")["used"]["cpu"] == 1000


def test_a_pod_whose_resources_have_no_column_counts_with_the_others() -> None:
    world = World().add(node("n0"))
    for number in range(MOST - len(world.cluster.dims)):
        world.cluster.dims.row(f"example.com/{number}")
    odd = pod("p", on="n0", cpu=2, **{"example.com/odd": 1})
    with pytest.raises(BadObject, match="more than 512 different resource names"):
        world.rehearsal.intake.put(decoded(odd))
    assert world.cluster.columns.row("n0")["used"]["cpu"] == 2000
    with pytest.raises(BadObject, match="more than 512"):
        world.rehearsal.intake.put(decoded(odd | {"status": {"phase": "Succeeded"}}))
    assert world.cluster.columns.row("n0")["used"]["cpu"] == 0
    with pytest.raises(BadObject, match="more than 512"):
        world.rehearsal.intake.put(decoded(pod("q", **{"example.com/odd": 1})))
    assert [task.name for task in world.cluster.tasks.values()] == ["p"]


def test_a_huge_pod_that_ends_leaves_its_node() -> None:
    world = World().add(node("n0"))
    for phase, held in (("Running", 3 * 2**60), ("Running", 3 * 2**60), ("Succeeded", 0)):
        world.rehearsal.intake.put(decoded(pod("p", on="n0", phase=phase, memory="3Ei")))
        world.cluster.settle()
        assert world.cluster.columns.row("n0")["used"]["memory"] == held


def test_two_pods_of_one_uid_are_not_taken_for_one() -> None:
    twins = [pod(name, on="n0", metadata={"uid": "same"}) for name in "ab"]
    with pytest.raises(BadObject, match=r"Pod default/b: metadata\.uid: pod default/a has the same"):
        World().add(node("n0"), *twins)


@pytest.mark.parametrize(
    ("given", "annotated", "priority"),
    [
        (None, None, 1),
        (7, None, 7),
        (7, "-3", -3),
        (7, "high", 7),
        (7, "1_0", 7),
        (7, str(2**31), 7),
        (None, "9" * 50, 1),
    ],
)
def test_a_task_priority_is_annotated_given_or_one(
    given: int | None, annotated: str | None, priority: int
) -> None:
    notes = {} if annotated is None else {names.TASK_PRIORITY: annotated}
    intake = Intake()
    intake.put(decoded(pod("p", priority=given, annotations=notes)))
    assert task_named(intake.cluster, "p").priority == priority


@pytest.mark.parametrize(
    ("annotated", "labelled", "preemptable"),
    [
        (None, None, True),
        ("false", "true", False),
        (None, "false", False),
        ("nonsense", None, False),
        ("T", None, True),
    ],
)
def test_a_pod_is_preemptable_unless_it_says_otherwise(
    annotated: str | None, labelled: str | None, preemptable: bool
) -> None:
    notes = {} if annotated is None else {names.PREEMPTABLE: annotated}
    labels = {} if labelled is None else {names.PREEMPTABLE: labelled}
    cluster = World().add(pod("p", annotations=notes, labels=labels)).cluster
    assert task_named(cluster, "p").preemptable is preemptable


@pytest.mark.parametrize(
    ("notes", "zone"),
    [
        ({}, ""),
        ({names.REVOCABLE_ZONE: "*"}, "*"),
        ({names.REVOCABLE_ZONE: "z1"}, ""),
        ({names.PREEMPTABLE: "true"}, "*"),
        ({names.REVOCABLE_ZONE: "z1", names.PREEMPTABLE: "true"}, ""),
    ],
)
def test_the_revocable_zone_is_any_or_none(notes: dict[str, str], zone: str) -> None:
    assert task_named(World().add(pod("p", annotations=notes)).cluster, "p").zone == zone


def test_a_role_is_an_annotation_or_else_a_label() -> None:
    cluster = (
        World()
        .add(
            pod("a", role="ps", labels={names.TASK_SPEC: "worker"}),
            pod("b", labels={names.TASK_SPEC: "worker"}),
        )
        .cluster
    )
    assert (task_named(cluster, "a").role, task_named(cluster, "b").role) == ("ps", "worker")


def test_alike_pods_share_a_shape_and_ask_for_nothing_alike() -> None:
    cluster = (
        World()
        .add(pod("a"), pod("b", labels={"x": "y"}, priority=3), pod("c", cpu=2), pod("d", cpu=0))
        .cluster
    )
    shapes = [task_named(cluster, name).shape for name in "abcd"]
    assert shapes[0] is shapes[1]
    assert shapes[0] is not shapes[2]
    assert [shape.best_effort for shape in shapes] == [False, False, False, True]


# -- jobs and queues


def test_a_job_is_visible_with_its_group_and_its_queue() -> None:
    world = World().add(pod("p", "job"))
    job = job_named(world.cluster, "job")
    assert not job.visible
    world.add(group("job", queue="late"))
    assert not job.visible
    world.add(queue("late"))
    assert job.visible
    assert job in world.cluster.backlog
    world.remove(queue("late"))
    assert not job.visible
    assert job not in world.cluster.backlog


def test_a_job_without_group_and_tasks_is_forgotten() -> None:
    world = World().add(group("job"), pod("p", "job"))
    world.remove(group("job"))
    assert job_named(world.cluster, "job").tasks
    world.remove(pod("p", "job"))
    assert not world.cluster.jobs


def test_a_group_that_names_no_queue_belongs_to_the_default_one() -> None:
    intake = Intake(default_queue="everybody")
    intake.put(decoded(group("job", queue="")))
    assert job_named(intake.cluster, "job").queue.name == "everybody"


def test_a_job_takes_what_it_holds_along_to_another_queue() -> None:
    world = World().add(queue("a"), queue("b"), node("n0"), group("job", queue="a"), pod("p", "job", on="n0"))
    assert world.cluster.queues["a"].allocated[CPU] == 1000
    world.add(group("job", queue="b"))
    assert world.cluster.queues["a"].allocated == {}
    assert world.cluster.queues["b"].allocated[CPU] == 1000


@pytest.mark.parametrize(
    ("state", "is_open"), [("", True), ("Open", True), ("Closed", False), ("Closing", False)]
)
def test_a_queue_without_a_state_is_open(state: str, is_open: bool) -> None:
    assert World().add(queue("q", state=state)).cluster.queues["q"].open is is_open


def test_job_priority_is_that_of_its_class_else_of_the_default_class() -> None:
    world = World().add(group("a", priorityClassName="high"), group("b"))
    a, b = job_named(world.cluster, "a"), job_named(world.cluster, "b")
    assert (a.priority, b.priority) == (0, 0)
    world.add(priority_class("high", 100))
    world.add(priority_class("usual", 5, default=True))
    assert (a.priority, b.priority) == (100, 5)
    world.remove(priority_class("high", 100))
    assert a.priority == 5


@pytest.mark.parametrize(
    ("notes", "seconds"),
    [
        ({names.SLA_WAITING_TIME: "1h2m"}, 3720.0),
        ({names.OLD_SLA_WAITING_TIME: "10s"}, 10.0),
        ({names.SLA_WAITING_TIME: "-5s"}, None),
        ({names.SLA_WAITING_TIME: "soon", names.OLD_SLA_WAITING_TIME: "10s"}, 10.0),
        ({}, None),
    ],
)
def test_the_waiting_time_is_a_positive_duration(notes: dict[str, str], seconds: float | None) -> None:
    cluster = World().add(group("job", annotations=notes)).cluster
    assert job_named(cluster, "job").waiting_time == seconds


# -- nodes


def test_a_node_that_arrives_after_its_pods_carries_them() -> None:
    world = World().add(pod("p", on="late", cpu=3))
    assert len(world.cluster.columns) == 0
    world.add(node("late", cpu=4))
    assert world.cluster.columns.row("late")["idle"]["cpu"] == 1000
    assert world.cluster.total[CPU] == 4000


def test_a_node_that_shrinks_under_its_pods_goes_into_the_red() -> None:
    world = World().add(node("n0", cpu=4), pod("p", on="n0", cpu=3))
    world.add(node("n0", cpu=2))
    assert world.cluster.columns.row("n0")["idle"]["cpu"] == -1000
    assert world.cluster.total[CPU] == 2000


def test_a_node_that_goes_keeps_its_pods_in_mind() -> None:
    world = World().add(node("n0"), node("n1"), pod("p", on="n0"))
    world.remove(node("n0"))
    assert [place.name for place in world.cluster.columns.nodes] == ["n1"]
    world.add(node("n0"))
    assert world.cluster.columns.row("n0")["used"]["cpu"] == 1000


def test_nodes_stand_by_age_and_then_by_name() -> None:
    cluster = World().add(node("b", created=1), node("a", created=2), node("c", created=1)).cluster
    assert [place.name for place in cluster.columns.nodes] == ["b", "c", "a"]


def test_oversubscription_adds_to_what_may_be_given_but_not_to_what_kubernetes_sees() -> None:
    """# quirk: spec 01 5.3: also on a node without the label"""
    notes = {names.OVERSUBSCRIPTION_CPU: "500", names.OVERSUBSCRIPTION_MEMORY: "nonsense"}
    cluster = World().add(node("n0", cpu=1, memory="1Gi", annotations=notes)).cluster
    (place,) = cluster.columns.nodes
    assert (place.allocatable[CPU], place.allocatable[MEMORY]) == (1500, 2**30)
    assert place.view_allocatable[1] == 1000


def test_oversubscription_beyond_64_bits_is_refused() -> None:
    with pytest.raises(BadObject, match=r"Node n0: metadata\.annotations\.volcano\.sh/oversubscription-cpu"):
        World().add(node("n0", cpu="9e15", annotations={names.OVERSUBSCRIPTION_CPU: "4e18"}))


def test_a_heartbeat_is_no_change_a_taint_is() -> None:
    world = World().add(node("n0", created=0))
    before = world.cluster.columns.objects
    world.add(node("n0", created=0))
    assert world.cluster.columns.objects == before
    world.add(node("n0", created=0, spec={"taints": [Taint("a", "b", "NoSchedule")]}))
    assert world.cluster.columns.objects > before


def test_releasing_room_will_be_idle_and_promised_room_will_not() -> None:
    cluster = (
        World().add(node("n0", cpu=4), pod("a", on="n0", cpu=3, terminating=True), pod("b", cpu=2)).cluster
    )
    cluster.move(task_named(cluster, "b"), Status.PIPELINED, cluster.nodes["n0"])
    row = {column: amounts["cpu"] for column, amounts in cluster.columns.row("n0").items()}
    assert row == {"allocatable": 4000, "idle": 1000, "used": 3000, "releasing": 3000, "pipelined": 2000}


@pytest.mark.parametrize("make", [group, native_group])
def test_of_a_group_that_was_created_anew_unseen_nothing_is_remembered(make: Callable[..., Any]) -> None:
    """Its deletion and creation may reach the model as one change, as when they happen during a cycle."""
    first, second = make("job", 2, created=1), make("job", 1, created=1)
    first["metadata"]["uid"], second["metadata"]["uid"] = "u1", "u2"
    native = make is native_group
    member = pod("p", native="job") if native else pod("p", "job")
    told, fresh = World().add(first, member), World().add(second, member)
    job = job_named(told.cluster, "job")
    job.reported["Unschedulable"] = ("Unschedulable", "about the first one")
    job.conditions["Unschedulable"] = Condition("True", "r", "m")
    job.phase, job.moved_at = names.GROUP_RUNNING, 7.0
    told.add(second)
    assert facts(told.cluster) == facts(fresh.cluster)
    assert job_named(told.cluster, "job").moved_at == 0.0
