"""Trying to do without a victim: whatever comes of it, what the statement around has decided stands."""

from __future__ import annotations

from stromboli.engine.transaction import EvictionReason
from stromboli.model.status import Status
from tests.building import cluster_of, group, node, pod, queue, running, session_over, task_of


def test_an_attempt_that_is_undone_leaves_nominations_and_reasons_of_evictions_alone() -> None:
    cluster = cluster_of(
        *(queue(), node("n0", cpu=1), group("old"), running("victim", "n0", "old", cpu=1)),
        *(group("new"), pod("t", "new", cpu=1)),
    )
    session, reason = session_over(cluster), EvictionReason("preempt", "default/new")
    victim, task = task_of(cluster, "victim"), task_of(cluster, "t")
    with session.statement() as trial:
        trial.evict(victim, reason)
        trial.pipeline(task, cluster.nodes["n0"], evicted=True)
        with session.statement():
            trial.restore(victim, Status.RUNNING)
            trial.release(task)
        assert (victim.status, task.status) == (Status.RELEASING, Status.PIPELINED)
        assert session.eviction_of(victim) == reason
        assert session.is_nominated(task)
    assert session.eviction_of(victim) == EvictionReason("")
    assert not session.is_nominated(task)
