"""Tasks that we assumed bound or evicted: what their pods show meanwhile, and what a failed write leaves."""

from __future__ import annotations

import pytest

from stromboli.api.types.pod import Pod
from stromboli.model.cluster import Cluster
from stromboli.model.intake.assumed_tasks import after_failed_bind, after_failed_eviction
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.model.task import Task
from tests import building

PENDING, BINDING, BOUND = Status.PENDING, Status.BINDING, Status.BOUND
RUNNING, RELEASING, SUCCEEDED = Status.RUNNING, Status.RELEASING, Status.SUCCEEDED


def shown(node: str = "", phase: str = "Pending", deleted: bool = False) -> Pod:
    return building.pod("web-0", node=node, phase=phase, dying=deleted)


def intake_of(*pods: Pod) -> Intake:
    intake = Intake()
    for thing in (building.queue(), building.node("n1"), building.node("n2"), *pods):
        intake.put(thing)
    intake.cluster.settle()
    return intake


def only(cluster: Cluster) -> Task:
    (task,) = cluster.tasks.values()
    return task


def assumed_bound(intake: Intake) -> None:
    intake.put(shown())
    intake.cluster.move(only(intake.cluster), BINDING, intake.cluster.nodes["n1"])


def assumed_evicted(intake: Intake) -> None:
    intake.put(shown("n1", "Running"))
    task = only(intake.cluster)
    task.assumed = RELEASING
    intake.cluster.move(task, RELEASING, task.node)


@pytest.mark.parametrize(
    ("assume", "pods", "status", "node"),
    [
        (assumed_bound, [shown()], BINDING, "n1"),
        (assumed_bound, [shown(deleted=True)], RELEASING, "n1"),
        (assumed_bound, [shown(deleted=True), shown(deleted=True)], RELEASING, "n1"),
        (assumed_bound, [shown(deleted=True), shown("n1", deleted=True)], RELEASING, "n1"),
        (assumed_bound, [shown("n1")], BOUND, "n1"),
        (assumed_bound, [shown("n2")], BOUND, "n2"),
        (assumed_bound, [shown("n1", "Running")], RUNNING, "n1"),
        (assumed_bound, [shown("n1", "Running"), shown()], RUNNING, "n1"),
        (assumed_bound, [shown(phase="Failed")], Status.FAILED, None),
        (assumed_evicted, [shown("n1", "Running")], RELEASING, "n1"),
        (assumed_evicted, [shown("n1", "Running"), shown("n1", "Running")], RELEASING, "n1"),
        (assumed_evicted, [shown("n1")], RELEASING, "n1"),
        (assumed_evicted, [shown("n1", "Running", deleted=True)], RELEASING, "n1"),
        (assumed_evicted, [shown("n1", "Succeeded")], SUCCEEDED, None),
    ],
)
def test_what_a_pod_shows_of_a_task_that_we_assumed_something_of(
    assume: object, pods: list[Pod], status: Status, node: str | None
) -> None:
    intake = intake_of()
    assume(intake)  # type: ignore[operator]
    for pod in pods:
        intake.put(pod)
    task = only(intake.cluster)
    assert (task.status, task.node.name if task.node else None) == (status, node)


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([], PENDING),
        ([shown(deleted=True)], RELEASING),
        ([shown("n1")], None),
        ([shown("n1", deleted=True)], None),
        ([shown(deleted=True), shown("n1", deleted=True)], None),
    ],
)
def test_what_a_failed_bind_leaves(pods: list[Pod], status: Status | None) -> None:
    intake = intake_of()
    assumed_bound(intake)
    for pod in pods:
        intake.put(pod)
    assert after_failed_bind(only(intake.cluster)) is status


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([], BOUND),
        ([shown("n1", "Running", deleted=True)], None),
        ([shown("n1", "Succeeded")], None),
    ],
)
def test_what_a_failed_eviction_leaves(pods: list[Pod], status: Status | None) -> None:
    intake = intake_of()
    assumed_evicted(intake)
    for pod in pods:
        intake.put(pod)
    assert after_failed_eviction(only(intake.cluster)) is status


def test_a_failed_eviction_leaves_a_started_task_running() -> None:
    intake = intake_of()
    assumed_evicted(intake)
    only(intake.cluster).started = 1.0
    assert after_failed_eviction(only(intake.cluster)) is RUNNING


def test_a_pod_that_is_deleted_while_being_bound_is_counted_once_by_affinity() -> None:
    intake = intake_of()
    cluster = intake.cluster
    alive = cluster.pod_counts.get("alive", lambda task: not task.terminating)
    deleted = cluster.pod_counts.get("deleted", lambda task: task.terminating)
    assumed_bound(intake)
    assert (alive.by_node.sum(), deleted.by_node.sum()) == (1, 0)
    intake.put(shown(deleted=True))
    assert (alive.by_node.sum(), deleted.by_node.sum()) == (0, 1)
    intake.drop(shown(deleted=True))
    assert (alive.by_node.sum(), deleted.by_node.sum()) == (0, 0)
