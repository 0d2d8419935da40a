"""What a summary says of a run, by the definitions of the field."""

from __future__ import annotations

import time

import numpy as np
import pytest

from stromboli.simulator.reports import measures
from stromboli.simulator.reports.fair_shares import max_min
from stromboli.simulator.reports.interval_cells import Cells
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.runs.run_record import (
    EVICTED,
    EvictionRecord,
    JobRecord,
    PodRecord,
    RunRecord,
    Sample,
)
from tests.simulator.reports.run_records import busy_run, job, record_of


def test_the_promised_measures_follow_their_definitions():
    record = record_of(job("a", 10, 10, 110, cpu=4), job("b", 20, 110, 115, cpu=2), end=115)
    told = summary(record)
    assert told["jobs"] == 2
    assert told["makespan_s"] == 105, "from the first submission to the last end"
    assert told["utilisation"] == pytest.approx((4 * 100 + 2 * 5) / (4 * 105))
    assert told["mean_wait_s"] == 45
    assert told["mean_bounded_slowdown"] == pytest.approx((1 + (90 + 5) / 10) / 2), "5 s of run count as 10 s"
    assert told["mean_slowdown"] == pytest.approx((1 + 95 / 5) / 2)
    assert (told["median_wait_s"], told["max_wait_s"], told["finished"]) == (45, 90, 2)
    assert told["throughput_per_hour"] == pytest.approx(2 / (105 / 3600))


def test_measures_of_the_run_itself_stand_beside_the_others_and_replace_none():
    record = record_of(measures={"gpu_allocation": 0.95, "fragmentation": 0.03, "jobs": 7.0})
    told = summary(record)
    assert (told["gpu_allocation"], told["fragmentation"], told["jobs"]) == (0.95, 0.03, 0)


def test_utilisation_counts_runs_of_pods_that_a_record_leaves_out(monkeypatch):
    monkeypatch.setattr(measures, "MOST_POD_RECORDS", 1)
    record = record_of(job("a", 0, 0, 100, cpu=4), job("b", 0, 0, 100, cpu=2), measures={"used_cpu_s": 400.0})
    del record.pods[1:]
    assert summary(record)["utilisation"] == pytest.approx(400 / (4 * 100))


def test_a_run_without_jobs_has_no_means():
    told = summary(RunRecord("empty", {"cpu": 4}, {}, []))
    assert told["jobs"] == 0
    assert told["utilisation"] == 0
    assert told["makespan_s"] == 0
    assert [told[name] for name in ("mean_wait_s", "mean_bounded_slowdown", "throughput_per_hour")] == [
        None
    ] * 3
    assert told["queues"] == told["users"] == told["gangs"] == {}


def test_a_cluster_without_anything_is_used_to_no_part():
    told = summary(RunRecord("nothing", {}, {}, [job("a", 0, None, None)]))
    assert told["utilisation"] == 0
    assert told["utilisation_of"] is None
    assert told["waiting"] == 1


def test_an_interrupted_run_is_measured_up_to_its_end():
    record = record_of(
        job("done", 0, 0, 10, cpu=4),
        job("runs", 0, 10, None, cpu=2, run_time=1000),
        job("waits", 5, None, None, cpu=4),
        end=20,
        partial=True,
    )
    told = summary(record)
    assert told["makespan_s"] == 20
    assert told["utilisation"] == pytest.approx((40 + 20) / 80)
    assert (told["finished"], told["running"], told["waiting"]) == (1, 1, 1)
    assert told["mean_wait_s"] == 5, "of those that started"
    assert told["longest_still_waiting_s"] == 15
    assert told["mean_bounded_slowdown"] == pytest.approx((1 + 1010 / 1000) / 2), "its run time is known"


def test_jobs_that_an_interrupted_run_did_not_come_to_do_not_wait():
    jobs = [
        job("runs", 0, 0, None, queue="q"),
        job("waits", 40, None, None, queue="q"),
        job("later", 500, None, None),
    ]
    measures = summary(record_of(*jobs, end=100, partial=True))
    assert (measures["running"], measures["waiting"], measures["not_submitted"]) == (1, 1, 1)
    assert measures["longest_still_waiting_s"] == 60
    assert list(measures["queues"]) == ["q"]


def test_jobs_that_never_end_have_waits_and_no_slowdown():
    record = record_of(job("stays", 0, 2, None, cpu=3), job("left", 4, None, None, dropped=True), end=6)
    told = summary(record)
    assert told["mean_wait_s"] == 2
    assert told["mean_bounded_slowdown"] is None
    assert (told["dropped"], told["waiting"], told["running"]) == (1, 0, 1)
    assert told["utilisation"] == pytest.approx(3 * 4 / (4 * 6))


def test_an_evicted_job_waits_until_the_run_that_counts():
    evicted = JobRecord(
        "a", 0, 2, {"cpu": 2}, 50, 60, first_started=10, run_time=10, evictions=2, lost_work=10
    )
    pods = [PodRecord(0, f"a-{pod}", "n1", 10, 15, EVICTED) for pod in range(2)]
    pods += [PodRecord(0, f"a-{pod}", "n1", 50, 60) for pod in range(2)]
    evictions = [EvictionRecord(15, 0, f"a-{pod}", "n1", 5, "preempt") for pod in range(2)]
    told = summary(record_of(evicted, pods=pods, evictions=evictions, end=60))
    assert (told["mean_wait_s"], told["mean_first_wait_s"]) == (50, 10)
    assert told["mean_bounded_slowdown"] == 6
    assert (told["evictions"], told["evicted_jobs"], told["lost_work_s"]) == (2, 1, 10)
    assert told["utilisation"] == pytest.approx(30 / 240)
    assert told["useful_utilisation"] == pytest.approx(20 / 240)


def test_gpus_matter_more_than_cpus_where_jobs_ask_for_them():
    jobs = [JobRecord("a", 0, 1, {"cpu": 1, "nvidia.com/gpu": 2}, 0, 10, run_time=10)]
    capacity = {"cpu": 10.0, "memory": 1e12, "nvidia.com/gpu": 2.0}
    told = summary(RunRecord("gpus", capacity, {"n1": capacity}, jobs))
    assert told["utilisation_of"] == "nvidia.com/gpu"
    assert told["utilisation_by_resource"] == pytest.approx({"nvidia.com/gpu": 1, "cpu": 0.1, "memory": 0})
    without = summary(RunRecord("cpus", capacity, {"n1": capacity}, [job("a", 0, 0, 10)]))
    assert without["utilisation_of"] == "cpu"


def test_parts_of_gpus_are_asked_for_by_card():
    requests = {"volcano.sh/vgpu-number": 4.0, "volcano.sh/vgpu-memory": 2000.0, "cpu": 1.0}
    capacity = {"cpu": 1.0, "volcano.sh/vgpu-number": 8000.0, "volcano.sh/vgpu-memory": 8000.0}
    told = summary(RunRecord("cards", capacity, {"n1": capacity}, [JobRecord("a", 0, 2, requests, 0, 10)]))
    assert told["utilisation_of"] == "volcano.sh/vgpu-memory"
    assert told["utilisation"] == pytest.approx(0.5), "2 pods with 2 cards of 1000 each"


def test_jobs_that_ask_for_nothing_are_a_class_of_their_own():
    jobs = [job("a", 0, 0, 1, cpu=2), JobRecord("b", 0, 1, {}, 0, 1)]
    assert list(summary(record_of(*jobs))["requests"]) == ["0", "2"]


def test_queues_are_held_against_what_the_policy_says_they_deserve():
    samples = [
        Sample(0, {}, deserved_by_queue={"q1": {"cpu": 1}, "q2": {"cpu": 3}}),
        Sample(50, {}, deserved_by_queue={"q1": {"cpu": 3}, "q2": {"cpu": 1}}),
    ]
    jobs = [job("a", 0, 0, 100, cpu=3, queue="q1"), job("b", 0, 0, 50, cpu=1, queue="q2")]
    queues = summary(record_of(*jobs, samples=samples, end=100))["queues"]
    assert queues["q1"]["used"] == pytest.approx(0.75)
    assert queues["q1"]["share"] == pytest.approx(300 / 350)
    assert queues["q1"]["deserved"] == pytest.approx(0.5)
    assert queues["q2"]["deserved"] == pytest.approx(0.5)
    assert list(queues) == ["q1", "q2"], "most resource-time first"
    assert queues["q2"]["jobs"] == 1


def test_users_deserve_equal_parts_while_they_have_jobs():
    jobs = [
        job("a", 0, 0, 100, cpu=4, user="ann"),
        job("b", 0, 100, 200, cpu=4, user="bob"),
    ]
    users = summary(record_of(*jobs, end=200))["users"]
    assert users["ann"]["deserved"] == pytest.approx(0.25), "half of the cluster while both want all of it"
    assert users["bob"]["deserved"] == pytest.approx(0.75), "and bob all of it afterwards"
    assert users["ann"]["used"] == users["bob"]["used"] == pytest.approx(0.5)


def test_jobs_without_users_are_not_shown_by_user():
    assert summary(record_of(job("a", 0, 0, 1)))["users"] == {}


def test_gangs_are_told_apart_by_size_in_classes_that_double():
    sizes = {1: "1", 2: "2", 3: "3-4", 4: "3-4", 5: "5-8", 9: "9-16"}
    jobs = [job(f"j{pods}", 0, pods, 20, pods=pods, cpu=pods) for pods in sizes]
    gangs = summary(record_of(*jobs, cpu=100, end=20))["gangs"]
    assert list(gangs) == ["1", "2", "3-4", "5-8", "9-16"]
    assert (gangs["3-4"]["jobs"], gangs["3-4"]["mean_wait_s"]) == (2, 3.5)
    requests = summary(record_of(job("a", 0, 0, 1, cpu=3), cpu=4))["requests"]
    assert list(requests) == ["3-4"]


def test_a_record_without_pods_is_measured_by_its_jobs():
    record = busy_run(200)
    bare = RunRecord(record.name, record.capacity, record.nodes, record.jobs, end=record.end)
    assert summary(bare)["utilisation"] == pytest.approx(summary(record)["utilisation"])


def test_max_min_shares_meet_small_demands_and_halve_the_rest():
    assert max_min(np.array([0.1, 0.9, 0.9])) == pytest.approx([0.1, 0.45, 0.45])
    assert max_min(np.array([0.1, 0.2, 0.3])) == pytest.approx([0.1, 0.2, 0.3])
    assert max_min(np.array([[2.0, 2.0], [0.0, 2.0]])) == pytest.approx(np.array([[0.5, 0.5], [0, 1]]))


def test_the_mean_over_a_cell_is_exact():
    start, end, height = np.array([0.0, 2.5, -5.0]), np.array([1.5, 20.0, 100.0]), np.array([1.0, 2.0, 4.0])
    means = Cells(0, 4, 4).means(start, end, height)
    assert means == pytest.approx(np.array([[5, 4.5, 4 + 2 * 0.5, 6]]))
    by_group = Cells(0, 4, 4).means(start, end, height, np.array([0, 1, 1]), 2)
    assert by_group.sum(axis=0) == pytest.approx(means[0])


def test_a_hundred_thousand_jobs_are_measured_in_seconds():
    record = busy_run(2_000)
    record.jobs *= 50
    before = time.process_time()
    assert summary(record)["jobs"] == 100_000
    assert time.process_time() - before < 10
