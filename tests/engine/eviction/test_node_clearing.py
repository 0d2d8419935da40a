"""When a node has enough for a task (what it takes to clear one is told in tests/actions)."""

from __future__ import annotations

from stromboli.engine.eviction.node_clearing import has_enough
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import group, node, pod, task_named


def test_enough_counts_what_leaves_and_what_is_promised() -> None:
    world = World().add(
        node("n0", cpu=4), group("j"), pod("stays", "j", on="n0", cpu=2),
        pod("goes", "j", on="n0", cpu=1, terminating=True), pod("t", "j", cpu=2), pod("u", "j", cpu=1),
    )  # fmt: skip
    session, cluster = world.session(), world.cluster
    place = cluster.nodes["n0"]
    assert has_enough(session, task_named(cluster, "t"), place)
    session.journal.move(task_named(cluster, "u"), Status.PIPELINED, place)
    assert not has_enough(session, task_named(cluster, "t"), place)
    assert has_enough(session, task_named(cluster, "t"), place, [task_named(cluster, "stays")])
