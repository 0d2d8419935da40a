"""How objects become the model: pods, PodGroups, queues and nodes as they really come (spec 01 2.2-2.4, 3.1, 5)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.node import Taint
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from tests.building import (
    cluster_of,
    group,
    idle_pod,
    intake_of,
    job_of,
    node,
    pod,
    priority_class,
    queue,
    running,
    task_of,
)

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
    cluster = cluster_of(node("n0"), pod("p", phase=phase, node="n0" if placed else "", dying=dying))
    assert task_of(cluster, "p").status is status


def test_a_finished_pod_stays_in_its_job_but_not_on_its_node() -> None:
    cluster = cluster_of(queue(), group("job"), node("n0"), pod("p", "job", phase="Succeeded", node="n0"))
    assert not cluster.nodes["n0"].tasks
    assert job_of(cluster, "job").ready_count == 1


def test_a_pod_of_another_scheduler_counts_once_it_has_a_node() -> None:
    other: dict[str, Any] = {"scheduler": names.OTHER_SCHEDULER_NAME}
    intake = intake_of(node("n0"), pod("p", **other))
    assert not intake.cluster.tasks
    intake.put(running("p", "n0", cpu=3, **other))
    intake.cluster.settle()
    assert not task_of(intake.cluster, "p").ours
    assert intake.cluster.columns.row("n0")["idle"]["cpu"] == 1000


def test_an_echo_without_a_node_does_not_unbind_a_pod() -> None:
    intake = intake_of(queue(), node("n0"), group("job"), pod("p", "job"))
    task = task_of(intake.cluster, "p")
    intake.cluster.move(task, Status.BINDING, intake.cluster.nodes["n0"])
    intake.put(pod("p", "job"))
    assert task_of(intake.cluster, "p") is task
    intake.drop(pod("p", "job"))
    assert not intake.cluster.tasks


def test_a_pod_without_a_group_occupies_its_node_only() -> None:
    cluster = cluster_of(node("n0"), running("p", "n0"))
    assert task_of(cluster, "p").job is None
    assert not cluster.jobs
    assert cluster.columns.row("n0")["used"]["cpu"] == 1000


def test_a_bad_pod_changes_nothing() -> None:
    intake = intake_of(node("n0"), running("p", "n0"))
    with pytest.raises(BadObject, match="Pod default/p"):
        intake.put(running("p", "n0", cpu="a lot"))
    intake.cluster.settle()
    assert intake.cluster.columns.row("n0")["used"]["cpu"] == 1000


def test_two_pods_of_one_uid_are_not_taken_for_one() -> None:
    one, other = running("a", "n0"), running("b", "n0")
    one.metadata.uid = other.metadata.uid = "same"
    with pytest.raises(BadObject, match=r"Pod default/b: metadata\.uid: pod default/a has the same"):
        intake_of(node("n0"), one, other)


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
    assert task_of(cluster_of(pod("p", priority=given, annotations=notes)), "p").priority == priority


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
    cluster = cluster_of(pod("p", annotations=notes, labels=labels))
    assert task_of(cluster, "p").preemptable is preemptable


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
    assert task_of(cluster_of(pod("p", annotations=notes)), "p").zone == zone


def test_a_role_is_an_annotation_or_else_a_label() -> None:
    cluster = cluster_of(
        pod("a", role="ps", labels={names.TASK_SPEC: "worker"}), pod("b", labels={names.TASK_SPEC: "worker"})
    )
    assert (task_of(cluster, "a").role, task_of(cluster, "b").role) == ("ps", "worker")


def test_alike_pods_share_a_shape_and_ask_for_nothing_alike() -> None:
    cluster = cluster_of(pod("a"), pod("b", labels={"x": "y"}, priority=3), pod("c", cpu=2), idle_pod("d"))
    shapes = [task_of(cluster, name).shape for name in "abcd"]
    assert shapes[0] is shapes[1]
    assert shapes[0] is not shapes[2]
    assert [shape.best_effort for shape in shapes] == [False, False, False, True]


# -- jobs and queues


def test_a_job_is_visible_with_its_group_and_its_queue() -> None:
    intake = intake_of(pod("p", "job"))
    job = job_of(intake.cluster, "job")
    assert not job.visible
    intake.put(group("job", queue="late"))
    assert not job.visible
    intake.put(queue("late"))
    assert job.visible
    assert job in intake.cluster.backlog
    intake.drop(queue("late"))
    assert not job.visible
    assert job not in intake.cluster.backlog


def test_a_job_without_group_and_tasks_is_forgotten() -> None:
    intake = intake_of(queue(), group("job"), pod("p", "job"))
    intake.drop(group("job"))
    assert job_of(intake.cluster, "job").tasks
    intake.drop(pod("p", "job"))
    assert not intake.cluster.jobs


def test_a_group_that_names_no_queue_belongs_to_the_default_one() -> None:
    intake = Intake(default_queue="everybody")
    intake.put(group("job", queue=""))
    assert job_of(intake.cluster, "job").queue.name == "everybody"


def test_a_job_takes_what_it_holds_along_to_another_queue() -> None:
    intake = intake_of(queue("a"), queue("b"), node("n0"), group("job", queue="a"), running("p", "n0", "job"))
    assert intake.cluster.queues["a"].allocated[CPU] == 1000
    intake.put(group("job", queue="b"))
    assert intake.cluster.queues["a"].allocated == {}
    assert intake.cluster.queues["b"].allocated[CPU] == 1000


@pytest.mark.parametrize(
    ("state", "is_open"), [("", True), ("Open", True), ("Closed", False), ("Closing", False)]
)
def test_a_queue_without_a_state_is_open(state: str, is_open: bool) -> None:
    assert cluster_of(queue("q", state=state)).queues["q"].open is is_open


def test_job_priority_is_that_of_its_class_else_of_the_default_class() -> None:
    intake = intake_of(queue(), group("a", priority_class="high"), group("b"))
    a, b = job_of(intake.cluster, "a"), job_of(intake.cluster, "b")
    assert (a.priority, b.priority) == (0, 0)
    intake.put(priority_class("high", 100))
    intake.put(priority_class("usual", 5, default=True))
    assert (a.priority, b.priority) == (100, 5)
    intake.drop(priority_class("high", 100))
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
    cluster = cluster_of(queue(), group("job", annotations=notes))
    assert job_of(cluster, "job").waiting_time == seconds


# -- nodes


def test_a_node_that_arrives_after_its_pods_carries_them() -> None:
    intake = intake_of(running("p", "late", cpu=3))
    intake.cluster.settle()
    assert len(intake.cluster.columns) == 0
    intake.put(node("late", cpu=4))
    intake.cluster.settle()
    assert intake.cluster.columns.row("late")["idle"]["cpu"] == 1000
    assert intake.cluster.total[CPU] == 4000


def test_a_node_that_shrinks_under_its_pods_goes_into_the_red() -> None:
    intake = intake_of(node("n0", cpu=4), running("p", "n0", cpu=3))
    intake.cluster.settle()
    intake.put(node("n0", cpu=2))
    intake.cluster.settle()
    assert intake.cluster.columns.row("n0")["idle"]["cpu"] == -1000
    assert intake.cluster.total[CPU] == 2000


def test_a_node_that_goes_keeps_its_pods_in_mind() -> None:
    intake = intake_of(node("n0"), node("n1"), running("p", "n0"))
    intake.cluster.settle()
    intake.drop(node("n0"))
    intake.cluster.settle()
    assert [one.name for one in intake.cluster.columns.nodes] == ["n1"]
    intake.put(node("n0"))
    intake.cluster.settle()
    assert intake.cluster.columns.row("n0")["used"]["cpu"] == 1000


def test_nodes_stand_by_age_and_then_by_name() -> None:
    cluster = cluster_of(node("b", created=1), node("a", created=2), node("c", created=1))
    assert [one.name for one in cluster.columns.nodes] == ["b", "c", "a"]


def test_oversubscription_adds_to_what_may_be_given_but_not_to_what_kubernetes_sees() -> None:
    """# quirk: spec 01 5.3: also on a node without the label"""
    notes = {names.OVERSUBSCRIPTION_CPU: "500", names.OVERSUBSCRIPTION_MEMORY: "nonsense"}
    cluster = cluster_of(node("n0", cpu=1, memory="1Gi", annotations=notes))
    (one,) = cluster.columns.nodes
    assert (one.allocatable[CPU], one.allocatable[MEMORY]) == (1500, 2**30)
    assert one.view_allocatable[1] == 1000


def test_oversubscription_beyond_64_bits_is_refused() -> None:
    with pytest.raises(BadObject, match=r"Node n0: metadata\.annotations\.volcano\.sh/oversubscription-cpu"):
        cluster_of(node("n0", cpu="9e15", annotations={names.OVERSUBSCRIPTION_CPU: "4e18"}))


def test_a_heartbeat_is_no_change_a_taint_is() -> None:
    intake = intake_of(node("n0"))
    intake.cluster.settle()
    before = intake.cluster.columns.objects
    intake.put(node("n0"))
    assert intake.cluster.columns.objects == before
    intake.put(node("n0", taints=[Taint("a", "b", "NoSchedule")]))
    assert intake.cluster.columns.objects > before


def test_releasing_room_will_be_idle_and_promised_room_will_not() -> None:
    cluster = cluster_of(node("n0", cpu=4), running("a", "n0", cpu=3, dying=True), pod("b", cpu=2))
    cluster.move(task_of(cluster, "b"), Status.PIPELINED, cluster.nodes["n0"])
    row = {column: amounts["cpu"] for column, amounts in cluster.columns.row("n0").items()}
    assert row == {"allocatable": 4000, "idle": 1000, "used": 3000, "releasing": 3000, "pipelined": 2000}
