"""Pods that are evicted, or whose node fails, are made anew; what they had done is lost."""

from __future__ import annotations

from stromboli.simulator.runs.run_record import EVICTED, NODE_FAILED
from stromboli.simulator.runs.simulation import NodeFailures
from tests.simulator.runs.small_runs import PREEMPTING, job, named, run, times

NO_GANGS = PREEMPTING.replace("  - name: gang\n", "")
"""Nobody keeps a gang above its minimum."""


def test_an_evicted_pod_waits_again_and_begins_anew() -> None:
    record = run(
        job("low", run=100, cpu=4, annotations={"volcano.sh/preemptable": "true"}),
        job("high", at=30, run=10, cpu=4, priority=100),
        policy=NO_GANGS,
    )
    assert times(record) == {"low": (40, 140), "high": (30, 40)}
    low = named(record, "low")
    assert (low.first_started, low.evictions, low.lost_work) == (0, 1, 30)
    [eviction] = record.evictions
    assert (eviction.time, eviction.pod, eviction.node, eviction.lost_work) == (30, "low-0", "n1", 30)
    assert eviction.beneficiary == "default/high"
    assert eviction.reason
    first = record.pods[0]
    assert (first.pod, first.started, first.ended, first.outcome) == ("low-0", 0, 30, EVICTED)


def test_all_of_a_gang_starts_again_when_it_falls_below_its_minimum() -> None:
    gang = job("gang", run=100, pods=4, minimum=4, annotations={"volcano.sh/preemptable": "true"})
    record = run(gang, job("high", at=30, run=10, priority=100), policy=NO_GANGS)
    high, low = named(record, "high"), named(record, "gang")
    assert high.started == 30
    assert low.evictions == 4
    assert low.lost_work == 4 * 30
    assert low.started == 40
    assert low.ended == 140


def test_an_elastic_job_goes_on_above_its_minimum() -> None:
    elastic = job("elastic", run=100, pods=4, minimum=2, annotations={"volcano.sh/preemptable": "true"})
    record = run(elastic, job("high", at=30, run=10, priority=100), policy=PREEMPTING)
    low = named(record, "elastic")
    assert (low.started, low.evictions, low.lost_work, low.ended) == (0, 1, 30, 140)


def test_pods_on_a_node_that_fails_start_again_elsewhere_or_after_its_repair() -> None:
    failures = NodeFailures(mean_time_between_failures=300, mean_time_to_repair=20)
    record = run(
        *(job(f"job-{number}", run=100) for number in range(20)),
        nodes="n1 cpu=2; n2 cpu=2",
        failures=failures,
    )
    assert all(each.ended is not None for each in record.jobs)
    lost = [pod for pod in record.pods if pod.outcome == NODE_FAILED]
    assert lost
    assert {eviction.reason for eviction in record.evictions} <= {"node n1 failed", "node n2 failed"}
    assert sum(each.lost_work for each in record.jobs) == sum(pod.ended - pod.started for pod in lost)
    assert record.measures["available_cpu_s"] < 4 * record.end


def test_other_seeds_are_other_failures() -> None:
    failures = NodeFailures(mean_time_between_failures=300, mean_time_to_repair=20)
    jobs = [job(f"job-{number}", run=100) for number in range(8)]
    ends = {run(*jobs, failures=failures, seed=seed).end for seed in (1, 1, 2)}
    assert len(ends) == 2


def test_failures_alone_keep_no_simulation_going() -> None:
    failures = NodeFailures(mean_time_between_failures=5, mean_time_to_repair=5)
    record = run(job("large", cpu=5), job("b", run=1), failures=failures)
    assert named(record, "b").ended is not None
    [note] = record.notes
    assert note.startswith("1 job never started: nodes are unavailable: Insufficient cpu; ")


def test_nodes_that_fail_before_any_pod_can_end_do_not_go_on_for_ever() -> None:
    failures = NodeFailures(mean_time_between_failures=1, mean_time_to_repair=1)
    record = run(job("long", run=10_000), failures=failures)
    assert named(record, "long").ended is None
    assert "each node failed 1000 times" in record.failed


def test_measures_begin_with_the_first_job_though_nodes_fail_before() -> None:
    failures = NodeFailures(mean_time_between_failures=50, mean_time_to_repair=5)
    record = run(job("late", at=10_000, run=10), failures=failures)
    assert record.measures["available_cpu_s"] <= 4 * (record.end - 10_000)


def test_a_job_that_never_starts_again_does_not_move_the_end() -> None:
    record = run(
        job("low", run=1000, cpu=4, annotations={"volcano.sh/preemptable": "true"}),
        job("high", at=30, run=float("inf"), cpu=4, priority=100),
        policy=NO_GANGS,
    )
    assert named(record, "low").started is None
    assert record.end == 30
