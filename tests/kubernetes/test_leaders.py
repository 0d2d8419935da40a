"""Schedulers that fight for the lease, and clocks that jump: one decides at a time, and nothing is bound twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.kubernetes.faults import Between, Trouble
from tests.kubernetes.scheduler_cluster import SOURCE, Scheduler, SchedulerCluster

pytestmark = pytest.mark.filterwarnings(  # connections of the one in between that a test broke off
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
SLOW = ("--writes-in-flight=1", "--kube-api-qps=40", "--kube-api-burst=5")
WRONG_CLOCK = """
import os, time
_time = time.time
def wrong():
    try:
        return _time() + float(open(os.environ["WRONG_BY"]).read() or 0)
    except (OSError, ValueError):
        return _time()
time.time = wrong
"""


def leader_of(*schedulers: Scheduler) -> Scheduler | None:
    return next(
        (scheduler for scheduler in schedulers if scheduler.process.poll() is None and scheduler.leads), None
    )


def test_a_leader_that_is_cut_off_gives_way_and_writes_nothing_more(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    cluster.add_nodes(5, cpu=20)
    first = cluster.start_scheduler(*SLOW, server=proxy.url)
    cluster.wait(lambda: first.leads, "the first to lead")
    second = cluster.start_scheduler()
    cluster.submit("train", pods=60)
    cluster.wait(lambda: len(cluster.bound("train")) > 5, "the first binds")
    proxy.rule = lambda method, path, count: Trouble.LOSE_REQUEST
    proxy.cut_watches()
    cluster.wait(lambda: second.leads, "the second to lead", 20)
    seen = len(proxy.seen)
    proxy.rule = lambda method, path, count: None
    cluster.wait(lambda: len(cluster.bound("train")) == 60, "all to be bound")
    first.process.wait(20)
    assert first.process.returncode == 1
    assert [entry for entry in proxy.seen[seen:] if entry.method != "GET"] == []
    cluster.check_capacity()


def test_a_leader_that_was_frozen_writes_nothing_when_it_wakes_up(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    cluster.add_nodes(5, cpu=20)
    first = cluster.start_scheduler(*SLOW, server=proxy.url)
    cluster.wait(lambda: first.leads, "the first to lead")
    second = cluster.start_scheduler()
    cluster.submit("train", pods=60)
    cluster.wait(lambda: len(cluster.bound("train")) > 5, "the first binds")
    first.signal(signal.SIGSTOP)
    cluster.wait(lambda: second.leads, "the second to lead", 20)
    seen = len(proxy.seen)
    first.signal(signal.SIGCONT)
    cluster.wait(lambda: len(cluster.bound("train")) == 60, "all to be bound")
    assert first.process.wait(20) == 1
    written = [entry for entry in proxy.seen[seen:] if entry.method != "GET" and entry.status < 300]
    assert len(written) <= 1, "no more than what was on its way when it froze"
    assert set(proxy.binds.values()) == {1}
    cluster.check_capacity()


def test_three_that_fight_for_the_lease_and_are_killed_in_turn(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    cluster.add_nodes(5, cpu=20)
    all_of_them = [cluster.start_scheduler(*SLOW, wait=False, server=proxy.url) for _ in range(3)]
    cluster.submit("train", pods=90)
    for killed in range(2):
        cluster.wait(lambda: len(proxy.binds) > 20 * (killed + 1), "some binds")  # noqa: B023
        assert sum(scheduler.process.poll() is None and scheduler.leads for scheduler in all_of_them) <= 1
        leader = leader_of(*all_of_them)
        if leader is not None:
            leader.kill()
    cluster.wait(lambda: len(cluster.bound("train")) == 90, "all to be bound")
    assert set(proxy.binds.values()) == {1}
    cluster.check_capacity()


def test_clocks_that_jump_by_a_day_change_nothing(
    cluster: SchedulerCluster, proxy: Between, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WRONG_CLOCK)
    wrong_by = tmp_path / "wrong-by"
    wrong_by.write_text("0")
    cluster.add_nodes(5, cpu=20)
    env = {"PYTHONPATH": os.pathsep.join((str(tmp_path), SOURCE)), "WRONG_BY": str(wrong_by)}
    first = cluster.start_scheduler(*SLOW, server=proxy.url, env=env)
    cluster.wait(lambda: first.leads, "it to lead")
    second = cluster.start_scheduler()
    cluster.submit("train", pods=60)
    for number, jump in enumerate(("86400", "-86400", "0")):
        cluster.wait(lambda: len(cluster.bound("train")) > 10 * (number + 1), "some binds")  # noqa: B023
        wrong_by.write_text(jump)
    cluster.wait_for_running("train", 60)
    cluster.wait(lambda: cluster.phase("train") == "Running", "the group to be Running")
    assert first.leads
    assert not second.leads
    lease = cluster.read("/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano")
    assert lease["spec"].get("leaseTransitions", 0) == 0
    assert not [pod for pod in cluster.pods("train") if pod["metadata"].get("deletionTimestamp")]
    assert set(proxy.binds.values()) == {1}
    cluster.check_capacity()
