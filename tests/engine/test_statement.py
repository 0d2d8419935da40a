"""The three endings of a statement, and what leaves when (spec 01 10, 02 0.9)."""

from __future__ import annotations

import pytest

from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.session import Session
from stromboli.engine.transaction import EvictionReason, TentativePlacement
from stromboli.model.cluster import Change, Refused
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import group, node, pod, task_named


@pytest.fixture
def session() -> Session:
    objects = [node("n0"), pod("a", "job"), pod("b", "job"), pod("r", "job", on="n0", memory="1Gi")]
    return World().add(group("job", 2), *objects).session()


def test_what_is_neither_kept_nor_committed_is_undone_and_remembered_as_a_trial(session: Session) -> None:
    a, n0 = task_named(session.cluster, "a"), session.cluster.nodes["n0"]
    with session.statement() as trial:
        assert trial.allocate(a, n0) is None
        assert len(trial) == 1
        assert a.status is Status.ALLOCATED
    assert (a.status, a.node) == (Status.PENDING, None)
    assert session.attempts.tentative[a] == TentativePlacement(Status.ALLOCATED, n0, nominated=False)
    assert session.journal.decisions == []


def test_what_is_committed_leaves_as_binds_and_evictions(session: Session) -> None:
    a, r = task_named(session.cluster, "a"), task_named(session.cluster, "r")
    with session.statement() as trial:
        trial.evict(r, EvictionReason("preempt", "default/job", "gang"))
        trial.allocate(a, session.cluster.nodes["n0"])
        trial.commit()
    evict, pod_event, group_event, bind = session.journal.decisions
    assert pod_event.message == "Pod is evicted, because of preempt for default/job, chosen by gang"
    assert (group_event.kind, group_event.reason) == ("PodGroup", "Evict")
    assert bind == Bind("default", "a", a.uid, "n0", "default/job")
    assert isinstance(evict, Evict)
    assert (evict.key, evict.node, evict.reason, evict.beneficiary, evict.chosen_by) == (
        "default/r", "n0", "preempt", "default/job", "gang"
    )  # fmt: skip
    assert evict.frees == {"cpu": "1", "memory": "1Gi", "pods": "1"}
    session.journal.finish()
    assert (a.status, r.status) == (Status.BINDING, Status.RELEASING)


def test_what_is_kept_holds_until_the_session_ends(session: Session) -> None:
    a = task_named(session.cluster, "a")
    with session.statement() as trial:
        trial.pipeline(a, session.cluster.nodes["n0"])
        trial.keep()
    assert a.status is Status.PIPELINED
    session.journal.remember_uncommitted()
    session.journal.finish()
    assert session.attempts.uncommitted.pipelined == {"default/a": "n0"}
    assert a.status is Status.PENDING
    assert session.journal.decisions == []


def test_an_inner_statement_that_is_kept_ends_with_the_outer_one(session: Session) -> None:
    a, n0 = task_named(session.cluster, "a"), session.cluster.nodes["n0"]
    with session.statement():
        with session.statement() as inner:
            inner.allocate(a, n0)
            inner.keep()
        assert a.status is Status.ALLOCATED
    assert a.status is Status.PENDING


def test_only_the_outermost_statement_may_be_committed(session: Session) -> None:
    with (
        session.statement(),
        session.statement() as inner,
        pytest.raises(RuntimeError, match="only the outermost statement may be committed"),
    ):
        inner.commit()


def test_a_statement_ends_once(session: Session) -> None:
    with session.statement() as trial:
        trial.keep()
        with pytest.raises(RuntimeError, match="a statement ends once"):
            trial.commit()


def test_an_eviction_that_is_taken_back_restores_the_status_of_before(session: Session) -> None:
    r = task_named(session.cluster, "r")
    with session.statement() as trial:
        trial.evict(r, EvictionReason("preempt"))
        assert r.status is Status.RELEASING
    assert r.status is Status.RUNNING


def test_a_task_is_nominated_by_a_trial_that_evicted_pods_for_it(session: Session) -> None:
    a, n0 = task_named(session.cluster, "a"), session.cluster.nodes["n0"]
    with session.statement() as trial:
        trial.pipeline(a, n0, evicted=True)
        assert session.journal.is_nominated(a)
    assert session.attempts.tentative[a] == TentativePlacement(Status.PIPELINED, n0, nominated=True)
    assert not session.journal.is_nominated(a)


def test_release_frees_capacity_and_its_undo_takes_it_again(session: Session) -> None:
    a, n0 = task_named(session.cluster, "a"), session.cluster.nodes["n0"]
    with session.statement() as trial:
        trial.allocate(a, n0)
        trial.keep()
    with session.statement() as trial:
        trial.release(a)
        assert a.status is Status.PENDING
    assert (a.status, a.node) == (Status.ALLOCATED, n0)


def test_a_recorded_undo_runs_with_the_statement_around_it(session: Session) -> None:
    notes: list[str] = []
    with session.statement() as trial:
        session.journal.record(lambda: notes.append("kept"))
        trial.commit()
    with session.statement():
        session.journal.record(lambda: notes.append("undone"))
    assert notes == ["undone"]
    session.journal.finish()
    assert notes == ["undone"]


class Refuser:
    """Refuses one status."""

    def __init__(self, status: Status):
        self.status = status

    def on_move(self, change: Change) -> str | None:
        return "no device left" if change.status is self.status and not change.undo else None


def test_a_refused_move_changes_nothing(session: Session) -> None:
    a = task_named(session.cluster, "a")
    session.cluster.listeners = [Refuser(Status.ALLOCATED)]
    with session.statement() as trial:
        assert trial.allocate(a, session.cluster.nodes["n0"]) == Refused("no device left")
        assert len(trial) == 0
    assert a.status is Status.PENDING


def test_a_bind_that_is_refused_does_not_leave(session: Session) -> None:
    a, b = task_named(session.cluster, "a"), task_named(session.cluster, "b")
    session.cluster.listeners = [Refuser(Status.BINDING)]
    with session.statement() as trial:
        trial.allocate(a, session.cluster.nodes["n0"])
        trial.commit()
    assert session.journal.decisions == []
    assert session.attempts.verdicts[a.job][a].message == "no device left"
    session.cluster.listeners = []
    session.journal.finish()
    assert (a.status, b.status) == (Status.PENDING, Status.PENDING)
