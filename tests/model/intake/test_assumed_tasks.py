"""Tasks that we assumed bound or evicted: what their pods show meanwhile, and what a failed write leaves."""

from __future__ import annotations

import pytest

from stromboli.model.cluster import Cluster
from stromboli.model.intake.assumed_tasks import after_failed_bind, after_failed_eviction
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import Manifest, pod

PENDING, BINDING, BOUND = Status.PENDING, Status.BINDING, Status.BOUND
RUNNING, RELEASING, SUCCEEDED = Status.RUNNING, Status.RELEASING, Status.SUCCEEDED


def shown(node: str = "", phase: str = "Pending", deleted: bool = False) -> Manifest:
    return pod("web-0", on=node, phase=phase, terminating=deleted)


def only(cluster: Cluster) -> Task:
    (task,) = cluster.tasks.values()
    return task


def assumed_bound(world: World) -> None:
    world.add(shown())
    world.cluster.move(only(world.cluster), BINDING, world.cluster.nodes["n1"])


def assumed_evicted(world: World) -> None:
    world.add(shown("n1", "Running"))
    task = only(world.cluster)
    task.assumed = RELEASING
    world.cluster.move(task, RELEASING, task.node)


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
        (assumed_evicted, [shown("n1", "Unknown")], Status.UNKNOWN, "n1"),
        (assumed_evicted, [shown("n1", "Unknown"), shown("n1", "Running")], RELEASING, "n1"),
        (assumed_evicted, [shown("n1", "Running", deleted=True)], RELEASING, "n1"),
        (assumed_evicted, [shown("n1", "Succeeded")], SUCCEEDED, None),
    ],
)
def test_what_a_pod_shows_of_a_task_that_we_assumed_something_of(
    assume: object, pods: list[Manifest], status: Status, node: str | None
) -> None:
    world = World(nodes="n1; n2")
    assume(world)  # type: ignore[operator]
    world.add(*pods)
    task = only(world.cluster)
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
def test_what_a_failed_bind_leaves(pods: list[Manifest], status: Status | None) -> None:
    world = World(nodes="n1; n2")
    assumed_bound(world)
    world.add(*pods)
    assert after_failed_bind(only(world.cluster)) is status


@pytest.mark.parametrize(
    ("pods", "status"),
    [
        ([], BOUND),
        ([shown("n1", "Running", deleted=True)], None),
        ([shown("n1", "Succeeded")], None),
    ],
)
def test_what_a_failed_eviction_leaves(pods: list[Manifest], status: Status | None) -> None:
    world = World(nodes="n1; n2")
    assumed_evicted(world)
    world.add(*pods)
    assert after_failed_eviction(only(world.cluster)) is status


def test_a_failed_eviction_leaves_a_started_task_running() -> None:
    world = World(nodes="n1; n2")
    assumed_evicted(world)
    only(world.cluster).started = 1.0
    assert after_failed_eviction(only(world.cluster)) is RUNNING


def test_a_pod_that_is_deleted_while_being_bound_is_counted_once_by_affinity() -> None:
    world = World(nodes="n1; n2")
    cluster = world.cluster
    alive = cluster.pod_counts.get("alive", lambda task: not task.terminating)
    deleted = cluster.pod_counts.get("deleted", lambda task: task.terminating)
    assumed_bound(world)
    assert (alive.by_node.sum(), deleted.by_node.sum()) == (1, 0)
    world.add(shown(deleted=True))
    assert (alive.by_node.sum(), deleted.by_node.sum()) == (0, 1)
    world.remove(shown(deleted=True))
    assert (alive.by_node.sum(), deleted.by_node.sum()) == (0, 0)
