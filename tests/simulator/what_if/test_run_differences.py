"""Differences between two runs, on records made by hand."""

from stromboli.simulator.runs.run_record import EVICTED, EvictionRecord, JobRecord, PodRecord, RunRecord
from stromboli.simulator.what_if.run_differences import differences, ends_before, placement


def record(
    *jobs: JobRecord, pods: list[PodRecord] | None = None, evictions: list[EvictionRecord] | None = None
) -> RunRecord:
    return RunRecord("r", {}, {}, list(jobs), pods or [], evictions=evictions or [])


def job(name: str, started: float | None, ended: float | None = None) -> JobRecord:
    return JobRecord(name, 0.0, 1, {}, started, ended, queue="q")


def test_later_and_earlier_are_told_apart_and_a_period_is_no_difference() -> None:
    without = record(job("a", 10, 20), job("b", 10, 20), job("c", 10, 20), job("d", 10, 20))
    with_it = record(job("a", 15, 25), job("b", 5, 15), job("c", 11, 21), job("d", 10, 40))
    found = differences(without, with_it, ())
    assert [shift.job for shift in found.later] == ["a", "d"]
    assert [(shift.job, shift.start_delay) for shift in found.earlier] == [("b", -5)]
    assert found.later[1].end_delay == 20


def test_never_is_later_than_any_moment() -> None:
    without = record(job("a", 10), job("b", None), job("c", None))
    with_it = record(job("a", None), job("b", 10), job("c", None))
    found = differences(without, with_it, ())
    assert ([shift.job for shift in found.later], [shift.job for shift in found.earlier]) == (["a"], ["b"])
    assert found.unstarted == ["c"]


def test_what_is_submitted_and_evictions_that_happen_anyway_are_not_counted() -> None:
    evicted = EvictionRecord(5, 0, "a-0", "n1", 5.0, "r", "mine")
    pods = [PodRecord(0, "a-0", "n1", 0, 5, EVICTED), PodRecord(0, "a-0", "n2", 30, 40)]
    without = record(job("a", 10), evictions=[evicted])
    with_it = record(job("a", 10), job("mine", 3), pods=pods, evictions=[evicted, evicted])
    found = differences(without, with_it, {"mine"})
    (eviction,) = found.evictions
    assert (eviction.pod, eviction.job, eviction.restart) == ("a-0", "a", 30)
    assert found.later == []


def test_a_job_comes_after_those_that_end_on_its_nodes_while_it_waits() -> None:
    pods = [
        PodRecord(0, "a-0", "n1", -5, 10),
        PodRecord(1, "b-0", "n2", -5, 20),
        PodRecord(2, "mine-0", "n1", 10, 30),
    ]
    run = record(job("a", -5, 10), job("b", -5, 20), job("mine", 10, 30), pods=pods)
    assert placement(run, "mine") == {"mine-0": "n1"}
    assert ends_before(run, run.jobs[2], {"n1"}) == {"a": 10}
