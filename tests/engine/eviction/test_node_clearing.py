"""When a node has enough for a task (what it takes to clear one is told in tests/actions)."""

from __future__ import annotations

from stromboli.engine.eviction.node_clearing import has_enough
from stromboli.model.status import Status
from tests.building import (
    cluster_of,
    group,
    node,
    pod,
    queue,
    running,
    session_over,
    task_of,
)


def test_enough_counts_what_leaves_and_what_is_promised() -> None:
    cluster = cluster_of(
        queue(), node("n0", cpu=4), group("j"), running("stays", "n0", "j", cpu=2),
        running("goes", "n0", "j", cpu=1, dying=True), pod("t", "j", cpu=2), pod("u", "j", cpu=1),
    )  # fmt: skip
    session, place = session_over(cluster), cluster.nodes["n0"]
    assert has_enough(session, task_of(cluster, "t"), place)
    session.move(task_of(cluster, "u"), Status.PIPELINED, place)
    assert not has_enough(session, task_of(cluster, "t"), place)
    assert has_enough(session, task_of(cluster, "t"), place, [task_of(cluster, "stays")])
