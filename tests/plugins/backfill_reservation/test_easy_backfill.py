"""The first job without capacity is promised a start, and no job delays it."""

import pytest

from stromboli.api.names import HOSTNAME
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import group, pod, policy
from tests.plugins.backfill_reservation.backfill_worlds import NOON, POLICY, job, step, world


def test_a_short_job_starts_before_the_first_that_waits_and_a_long_one_does_not() -> None:
    here = world()
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    job(here, "long", 4, "2h")
    job(here, "short", 4, "30m")
    assert step(here).bound_per_job == {"default/short": 1}


def test_a_long_job_starts_if_it_fits_beside_the_reservation() -> None:
    here = world()
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    job(here, "long", 2, "2h")
    job(here, "another", 1)
    assert step(here).bound_per_job == {"default/long": 1}


def test_nodes_that_the_reservation_does_not_need_are_free_for_all() -> None:
    here = world("n1 cpu=10,memory=100Gi,pods=100; n2 cpu=4,memory=100Gi,pods=100")
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    job(here, "long", 4, "5h")
    assert step(here).binds == {"default/long-0": "n2"}


def test_in_strict_order_no_job_starts_before_the_first_pending_one() -> None:
    here = world(mode="none")
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    job(here, "short", 1, "1m")
    result = step(here)
    assert result.bound_per_job == {}
    assert "default/head waits for capacity before it" in result.why("short-0")


def test_a_job_that_can_never_fit_blocks_no_other() -> None:
    for mode in ("easy", "none"):
        here = world(mode=mode)
        job(here, "huge", 11, "1h")
        job(here, "small", 1)
        assert step(here).bound_per_job == {"default/small": 1}


def test_without_time_limits_nothing_is_promised_and_no_job_is_held_back() -> None:
    here = world()
    job(here, "running", 6)
    step(here)
    job(here, "head", 8, "1h")
    job(here, "small", 4)
    assert step(here).bound_per_job == {"default/small": 1}


def test_the_first_that_waits_reads_when_it_starts_at_the_latest() -> None:
    here = world()
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    job(here, "long", 4, "2h")
    result = step(here)
    promise = result.promised["default/head"]
    assert (promise.start, promise.nodes, promise.after) == (NOON + 3600, ("n1",), ("default/running",))
    head = "reserved to start by 2026-11-01T13:00:00Z on n1, after default/running ends"
    assert result.pending["default/head"].message == head
    assert result.pending["default/long"].message.startswith("it would delay default/head")


def test_a_promise_is_kept_when_jobs_end_at_their_limits() -> None:
    here = world("n1 cpu=4,memory=9Gi,pods=9; n2 cpu=4,memory=9Gi,pods=9")
    job(here, "one", 4, "1h")
    job(here, "two", 4, "2h")
    step(here)
    job(here, "head", 3, "1h", pods=2)
    job(here, "small", 1, "9h")
    assert step(here).promised["default/head"].start == NOON + 7200
    here.sleep(3598)
    here.finish("one-0")
    assert step(here).bound_per_job == {"default/small": 1}
    here.sleep(3599)
    here.finish("two-0")
    assert step(here).bound_per_job == {"default/head": 2}


def test_a_job_over_its_limit_is_expected_to_end_at_any_moment() -> None:
    here = world()
    job(here, "running", 6, "1h")
    step(here)
    job(here, "head", 8, "1h")
    here.sleep(4000)
    job(here, "short", 4, "1m")
    result = step(here)
    assert result.bound_per_job == {}
    assert result.promised["default/head"].overdue
    assert "over their time limit" in result.pending["default/head"].message
    here.finish("running-0")
    assert step(here).bound_per_job == {"default/head": 1}


def test_a_job_that_the_limits_of_its_queue_keep_waiting_is_promised_nothing() -> None:
    here = world(queues="small capability=cpu:7", mode="easy")
    job(here, "running", 6, "1h", queue="small")
    step(here)
    job(here, "head", 3, "1h", queue="small")
    job(here, "long", 4, "9h")
    assert step(here).bound_per_job == {"default/long": 1}


def test_a_gang_that_other_pods_keep_apart_is_promised_its_nodes() -> None:
    here = world("n1 cpu=4,memory=9Gi,pods=9; n2 cpu=4,memory=9Gi,pods=9; n3 cpu=2,memory=9Gi,pods=9")
    job(here, "one", 4, "1h")
    job(here, "two", 3, "2h")
    step(here)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "apart"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    job(here, "head", 2, "1h", pods=3, labels={"app": "apart"}, spec={"affinity": apart})
    job(here, "long", 1, "9h")
    job(here, "short", 1, "1h")
    result = step(here)
    assert result.promised["default/head"].start == NOON + 7200
    assert result.promised["default/head"].nodes == ("n1", "n2", "n3")
    assert result.bound_per_job == {"default/short": 1}


def test_a_job_of_another_queue_is_let_through_where_it_takes_nothing_of_the_reservation() -> None:
    here = world("n1 cpu=10,memory=9Gi,pods=99; n2 cpu=1,memory=9Gi,pods=9", queues="a; b")
    job(here, "running", 6, "1h", queue="a")
    step(here)
    job(here, "head", 8, "1h", queue="a")
    job(here, "other", 1, "9h", queue="b")
    assert step(here).bound_per_job == {"default/other": 1}


def promised_in_other_queue(mode: str, *terminating: int, **newer: int) -> dict[str, int]:
    """Which jobs start when all that runs ends early: `gang` waits in one queue, a newer job in the other.

    The pods that run terminate while these seconds pass, each followed by a cycle.
    """
    here = world(mode=mode, queues="a; z")
    job(here, "running", 4, "1h", queue="a")
    job(here, "other", 4, "1h", queue="a")
    step(here)
    job(here, "gang", 5, "1h", pods=2, queue="z")
    step(here)
    job(here, "newer", 3, "1h", queue="a", **newer)
    assert step(here).bound_per_job == {}
    for name in ("running-0", "other-0") if terminating else ():
        here.cluster.move(here.task(name), Status.RELEASING, here.task(name).node)
    for seconds in terminating:
        assert step(here.sleep(seconds)).bound_per_job == {}
    here.finish("running-0").finish("other-0")
    return step(here).bound_per_job


@pytest.mark.parametrize("terminating", [(), (0,), (0, 0), (0, 29, 29, 0), (0, 90, 0)])
@pytest.mark.parametrize("mode", ["easy", "conservative", "none"])
def test_a_promised_start_is_kept_when_the_jobs_before_it_end_and_their_queue_comes_first(
    mode: str, terminating: tuple[int, ...]
) -> None:
    assert promised_in_other_queue(mode, *terminating) == {"default/gang": 2}


@pytest.mark.parametrize("mode", ["easy", "none"])
def test_a_job_of_a_higher_priority_still_goes_before_a_promised_start(mode: str) -> None:
    assert promised_in_other_queue(mode, priority=10) == {"default/newer": 1}


RESERVE_AFTER = "easy\n      reserveAfter: {}"
"""Jobs were created months before."""


@pytest.mark.parametrize(
    ("after", "started"), [("10m", {"default/gang": 2}), ("20000h", {"default/newer": 1})]
)
def test_a_job_that_waited_for_reserve_after_has_the_first_turn(after: str, started: dict[str, int]) -> None:
    assert promised_in_other_queue(RESERVE_AFTER.format(after), priority=10) == started


@pytest.mark.parametrize(("after", "started"), [("10m", set()), ("20000h", {"default/urgent-0"})])
def test_a_job_that_waited_for_reserve_after_is_not_delayed_by_higher_priorities(
    after: str, started: set[str]
) -> None:
    here = beside_a_promise(POLICY.format(mode=RESERVE_AFTER.format(after)), 1000)
    assert set(step(here).binds) == started


def beside_a_promise(text: str, priority: int) -> World:
    """`head` waits for 8 of 10 CPUs; `urgent`, in a queue that comes later, fits into the 4 that are free."""
    queues = "a deserved=cpu:8; b deserved=cpu:4; z"
    here = World("n1 cpu=10,memory=100Gi,pods=100", queues, policy=text)
    job(here, "running", 6, "1h", queue="z")
    step(here)
    job(here, "head", 8, "1h", queue="a")
    step(here)
    job(here, "urgent", 4, queue="b", priority=priority)
    return here


@pytest.mark.parametrize("mode", ["easy", "none"])
@pytest.mark.parametrize(("priority", "started"), [(1000, {"default/urgent": 1}), (0, {})])
def test_a_job_of_a_higher_priority_in_another_queue_is_not_held_back(
    mode: str, priority: int, started: dict[str, int]
) -> None:
    assert step(beside_a_promise(POLICY.format(mode=mode), priority)).bound_per_job == started


@pytest.mark.parametrize("mode", ["easy", "none"])
def test_a_waiting_job_of_a_higher_priority_is_not_held_back_once_it_fits(mode: str) -> None:
    here = beside_a_promise(POLICY.format(mode=mode), 1000)
    job(here, "next", 2, "2h", queue="b", priority=1000)
    step(here)
    assert step(here).bound_per_job == {}
    here.finish("urgent-0")
    assert step(here).bound_per_job == {"default/next": 1}


@pytest.mark.parametrize("mode", ["easy", "none"])
@pytest.mark.parametrize("entry", ["", "  - name: priority\n    enableJobOrder: false\n"])
def test_priorities_do_not_count_where_the_policy_does_not_order_jobs_by_them(mode: str, entry: str) -> None:
    text = POLICY.format(mode=mode).replace("  - name: priority\n", entry)
    assert step(beside_a_promise(text, 1000)).bound_per_job == {}


def test_what_a_job_of_a_higher_priority_took_moves_the_promise() -> None:
    here = beside_a_promise(POLICY.format(mode="easy"), 1000)
    job(here, "late", 2, "3h", queue="b")
    assert step(here).bound_per_job == {"default/urgent": 1}
    assert "default/head" not in step(here).promised  # it is not known when the urgent job ends
    here.finish("urgent-0")
    assert step(here).promised["default/head"].start == NOON + 3600


@pytest.mark.parametrize("mode", ["easy", "conservative", "none"])
@pytest.mark.parametrize("nodes", ["n1 cpu=8", "n1 cpu=8; n2 cpu=8"])
def test_a_job_whose_devices_are_not_shared_out_reserves_no_node(mode: str, nodes: str) -> None:
    backfill = ("backfill-reservation", {"mode": mode})
    share = {"deviceshare.VGPUEnable": True}
    text = policy("allocate", "priority gang predicates", ("deviceshare", share), backfill)
    here = World("; ".join(f"{node},volcano.sh/gpu-memory=4" for node in nodes.split("; ")), policy=text)
    only = {"nodeSelector": {HOSTNAME: "n1"}}
    limits = {"cpu": 8, "volcano.sh/gpu-memory": 1}
    job(here, "hopeless", 8, spec={**only, "containers": [{"name": "main", "resources": {"limits": limits}}]})
    job(here, "small", 4, spec=only)
    assert step(here).bound_per_job == {"default/small": 1}


@pytest.mark.parametrize("mode", ["easy", "none"])
def test_a_job_that_precedes_a_promised_one_in_its_queue_still_goes_first(mode: str) -> None:
    here = world(mode=mode)
    job(here, "running", 8, "1h")
    job(here, "gang", 5, "1h", pods=2)
    step(here)
    here.add(group("older", 1, created=-100), pod("older-0", "older", cpu=10, created=-100))
    here.finish("running-0")
    assert step(here).bound_per_job == {"default/older": 1}


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_jobs_that_end_together_are_named_in_the_same_order_in_every_run(mode: str) -> None:
    def names() -> tuple[str, ...]:
        here = world(mode=mode)
        job(here, "gang", 2, "1h", pods=2)
        step(here)
        here.finish("gang-0")
        job(here, "next", 2, "3599s")
        step(here)
        job(here, "large", 10, "1h")
        return step(here).promised["default/large"].after

    assert len({names() for _ in range(12)}) == 1
