"""With `mode: conservative` every pending job is promised a start, and no later job delays it."""

from random import Random

import pytest

from stromboli.plugins.backfill_reservation import conservative
from stromboli.plugins.backfill_reservation.availability_profile import Booking
from stromboli.testing import World
from tests.manifests import pod, policy
from tests.plugins.backfill_reservation.backfill_worlds import NOON, job, step, world


def test_a_later_job_may_not_delay_the_second_that_waits() -> None:
    for mode, started in (("easy", {"default/late": 1}), ("conservative", {})):
        here = world(mode=mode)
        job(here, "running", 6, "1h")
        step(here)
        job(here, "first", 8, "1h")
        job(here, "second", 10, "1h")
        job(here, "late", 2, "3h")
        assert step(here).bound_per_job == started


def test_every_job_is_promised_a_start() -> None:
    here = world(mode="conservative")
    job(here, "running", 6, "1h")
    step(here)
    job(here, "first", 8, "1h")
    job(here, "second", 10, "1h")
    job(here, "third", 2, "30m")
    result = step(here)
    assert result.bound_per_job == {"default/third": 1}
    promised = {key: promise.start - NOON for key, promise in result.promised.items()}
    assert promised == {"default/first": 3600, "default/second": 7200}


def test_promises_improve_when_something_ends_early() -> None:
    here = world(mode="conservative")
    job(here, "running", 6, "1h")
    step(here)
    job(here, "first", 8, "1h")
    job(here, "second", 10, "1h")
    step(here)
    here.sleep(599)
    here.finish("running-0")
    result = step(here)
    assert result.bound_per_job == {"default/first": 1}
    assert result.promised["default/second"].start == here.rehearsal.now() + 3600


def test_beyond_the_depth_nothing_is_promised_and_no_job_is_delayed(caplog: pytest.LogCaptureFixture) -> None:
    here = world(mode="conservative\n      depth: 1")
    job(here, "running", 6, "1h")
    step(here)
    job(here, "first", 8, "1h")
    job(here, "second", 10, "1h")
    job(here, "short", 4, "59m")
    job(here, "long", 2, "9h")
    result = step(here)
    assert list(result.promised) == ["default/first"]
    assert "jobs after them, such as default/second, are promised none" in caplog.text
    assert result.bound_per_job == {"default/short": 1}


def test_a_gang_over_several_nodes_is_promised_a_start() -> None:
    here = world("n1 cpu=4,memory=100Gi,pods=100; n2 cpu=4,memory=100Gi,pods=100", mode="conservative")
    job(here, "one", 4, "1h")
    job(here, "two", 2, "2h")
    step(here)
    job(here, "gang", 4, "1h", pods=2)
    job(here, "small", 2, "4h")
    result = step(here)
    assert result.promised["default/gang"].start == NOON + 7200
    assert result.promised["default/gang"].nodes == ("n1", "n2")
    assert result.bound_per_job == {}


def test_a_promise_names_the_jobs_that_end_before() -> None:
    here = world(mode="conservative")
    job(here, "running", 6, "1h")
    step(here)
    job(here, "first", 8, "1h")
    assert step(here).promised["default/first"].after == ("default/running",)


def test_a_promise_by_search_stays_when_the_job_changes_in_nothing_that_counts() -> None:
    here = world("n1 cpu=4; n2 cpu=4", mode="conservative")
    job(here, "one", 4, "1h")
    job(here, "two", 4, "2h")
    step(here)
    job(here, "gang", 2, "1h", pods=2, roles={"a": 1, "b": 1}, role_minimums={"a": 1, "b": 1})
    job(here, "later", 4, "9h", pods=2)
    first = step(here).promised["default/gang"]
    here.cluster.dirty.jobs[here.task("gang-0").job] = None
    here.cluster.dirty.jobs[here.task("later-0").job] = None
    assert step(here).promised["default/gang"] == first


def test_many_jobs_are_promised_starts_in_several_cycles_and_no_job_overtakes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conservative, "MAX_READ", 1)
    here = world(mode="conservative")
    job(here, "running", 6, "1h")
    step(here)
    for name in ("first", "second", "third"):
        job(here, name, 8, "1h")
    job(here, "late", 4, "9h")
    results = [step(here) for _ in range(4)]
    assert [len(result.promised) for result in results] == [1, 2, 3, 4]
    assert [result.bound_per_job for result in results] == [{}] * 4
    starts = {key: promise.start - NOON for key, promise in results[-1].promised.items()}
    assert starts == {
        "default/first": 3600,
        "default/second": 7200,
        "default/third": 10800,
        "default/late": 14400,
    }


def test_many_promises_are_improved_in_several_cycles_and_none_is_made_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = world(mode="conservative")
    job(here, "running", 6, "9h")
    step(here)
    for name in ("first", "second", "third"):
        job(here, name, 8, "1h")
    promised = step(here).promised
    monkeypatch.setattr(conservative, "MAX_READ", 1)
    here.finish("running-0")
    starts = []
    for _ in range(3):
        result = step(here)
        assert all(promise.start <= promised[key].start for key, promise in result.promised.items())
        starts.append([promise.start for promise in result.promised.values()])
    assert starts[0][-1] == promised["default/third"].start
    assert max(starts[-1]) < NOON + 3 * 3600


def test_promises_improve_alike_with_and_without_nodes_without_new_capacity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = "; ".join(f"n{number} cpu=4,memory=100Gi,pods=100" for number in range(6))

    def promises() -> list[dict[str, tuple[float, tuple[str, ...]]]]:
        numbers = Random(7)
        here = world(nodes, mode="conservative")
        for number in range(12):
            job(here, f"running{number}", 2, f"{numbers.randint(60, 600)}m")
        step(here)
        for number in range(16):
            pods = numbers.choice((1, 2, 5))
            job(
                here, f"waiting{number}", numbers.choice((1, 2, 3)), f"{numbers.randint(30, 300)}m", pods=pods
            )
        told = [step(here)]
        for number in (3, 8, 5, 0):
            here.sleep(60)
            here.finish(f"running{number}-0")
            told.append(step(here))
        return [
            {key: (promise.start, promise.nodes) for key, promise in result.promised.items()}
            for result in told
        ]

    by_new_room = promises()
    monkeypatch.setattr(Booking, "may_improve", lambda *_: True)
    assert by_new_room == promises()


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_a_job_pipelined_on_releasing_capacity_starts_once_it_is_free(mode: str) -> None:
    """Behind a job that can be promised nothing, as it is larger than any node."""
    here = world(mode=mode)
    leaving = pod("leaving", cpu=4, on="n1", phase="Running", terminating=True)
    here.add(leaving)
    job(here, "running", 6, "1h", running_on="n1")
    job(here, "large", 20, "1h")
    job(here, "second", 4, "1h")
    for _ in range(4):
        assert step(here).pipelined == {"default/second-0": "n1"}
    assert step(here.remove(leaving)).bound_per_job == {"default/second": 1}


def test_every_running_job_gets_its_further_pods_once_there_is_capacity() -> None:
    here = world("n1 cpu=12,memory=100Gi,pods=100", mode="conservative")
    job(here, "running", 6, "1h")
    step(here)
    for name in ("first", "second"):
        job(here, name, 3, "1h", pods=2, minimum=1)
    assert step(here).bound_per_job == {"default/first": 1, "default/second": 1}
    assert [step(here).bound_per_job for _ in range(2)] == [{}, {}]
    here.finish("running-0")
    assert step(here).bound_per_job == {"default/first": 1, "default/second": 1}


def test_all_jobs_that_came_while_their_queue_had_its_share_are_tried_once_it_has_not() -> None:
    backfill = ("backfill-reservation", {"mode": "conservative"})
    plugins = policy("allocate", "priority gang predicates proportion", backfill)
    here = World("n1 cpu=9,memory=9Gi,pods=9", "small capability=cpu:4,memory:4Gi,pods:2", policy=plugins)
    terms = {"memory": "2Gi", "queue": "small"}
    job(here, "running", 2, "1h", pods=2, **terms)
    step(here)
    for name in ("first", "second"):
        job(here, name, 2, "1h", **terms)
    assert [step(here).bound_per_job for _ in range(2)] == [{}, {}]
    here.finish("running-0")
    here.finish("running-1")
    assert step(here).bound_per_job == {"default/first": 1, "default/second": 1}


def test_every_promise_by_search_improves_when_something_ends_early() -> None:
    here = world("; ".join(f"n{number} cpu=4,memory=9Gi,pods=9" for number in range(3)), mode="conservative")
    for number in range(3):
        job(here, f"running{number}", 4, "1h")
    step(here)
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("first", "second", "third"):
        job(here, name, 4, "30m", labels={"app": "a"}, spec={"affinity": apart})
    assert len(step(here).promised) == 3
    assert step(here).bound_per_job == {}
    here.finish("running1-0")
    here.finish("running2-0")
    assert step(here).bound_per_job == {"default/first": 1, "default/second": 1}


def test_a_promise_made_before_a_node_is_deleted_still_counts_for_its_job() -> None:
    here = world("n1 cpu=4; n2 cpu=4; n3 cpu=4", mode="conservative")
    for name, limit in (("one", "1h"), ("two", "2h"), ("three", "3h")):
        job(here, name, 4, limit)
    step(here)
    job(here, "first", 4, "1h")
    assert step(here).promised["default/first"].start == NOON + 3600
    here.remove(here.cluster.nodes["n2"].object)
    result = step(here)
    assert result.outcome.lost is None
    assert result.promised["default/first"].start == NOON + 3600
