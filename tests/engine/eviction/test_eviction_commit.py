"""Trying to do without a victim: whatever comes of it, what the statement around has decided stands."""

from __future__ import annotations

from stromboli.engine.transaction import EvictionReason
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import group, node, pod, task_named


def test_an_attempt_that_is_undone_leaves_nominations_and_reasons_of_evictions_alone() -> None:
    world = World().add(node("n0", cpu=1), group("old"), pod("victim", "old", on="n0", cpu=1))
    world.add(group("new"), pod("t", "new", cpu=1))
    session, cluster, reason = world.session(), world.cluster, EvictionReason("preempt", "default/new")
    victim, task = task_named(cluster, "victim"), task_named(cluster, "t")
    with session.statement() as trial:
        trial.evict(victim, reason)
        trial.pipeline(task, cluster.nodes["n0"], evicted=True)
        with session.statement():
            trial.restore(victim)
            trial.release(task)
        assert (victim.status, task.status) == (Status.RELEASING, Status.PIPELINED)
        assert session.journal.eviction_of(victim) == reason
        assert session.journal.is_nominated(task)
    assert session.journal.eviction_of(victim) == EvictionReason("")
    assert not session.journal.is_nominated(task)
