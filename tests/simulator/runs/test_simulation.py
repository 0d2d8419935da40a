"""A workload runs in virtual time: jobs start when there is room and end when their time is over."""

from __future__ import annotations

import msgspec
import pytest

from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.runs import run_recorder
from stromboli.simulator.runs.run_record import SUCCEEDED, RunRecord
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.submitted_jobs import Workload
from stromboli.simulator.workloads.workload_errors import WorkloadError
from tests.simulator.runs.small_runs import BATCH, CATALOG, job, named, run, times


def test_jobs_start_at_once_where_there_is_room_and_end_after_their_run_time() -> None:
    record = run(job("a", at=5, run=10), job("b", at=7, run=2))
    assert times(record) == {"a": (5, 15), "b": (7, 9)}
    assert [(pod.pod, pod.node, pod.started, pod.ended, pod.outcome) for pod in record.pods] == [
        ("b-0", "n1", 7, 9, SUCCEEDED),
        ("a-0", "n1", 5, 15, SUCCEEDED),
    ]
    assert record.end == 15


def test_jobs_wait_for_others_to_end() -> None:
    record = run(job("a", run=10, cpu=3), job("b", run=10, cpu=3), job("c", at=1, run=10, cpu=4))
    assert times(record) == {"a": (0, 10), "b": (10, 20), "c": (20, 30)}


def test_jobs_of_the_same_moment_start_in_the_order_of_the_workload() -> None:
    record = run(job("job-9", cpu=4), job("job-10", cpu=4), job("job-1", cpu=4))
    assert times(record) == {"job-9": (0, 10), "job-10": (10, 20), "job-1": (20, 30)}


def test_a_gang_starts_when_its_minimum_fits_and_ends_with_its_last_pod() -> None:
    gang = job("gang", at=1, run=10, pods=4, minimum=2)
    record = run(job("first", run=5, cpu=2), gang)
    assert times(record)["gang"] == (1, 15)
    assert sorted(pod.started for pod in record.pods if pod.job == 1) == [1, 1, 5, 5]


def test_a_pod_without_end_stays() -> None:
    record = run(job("for-ever", run=float("inf")), job("b", at=3))
    assert times(record) == {"for-ever": (0, None), "b": (3, 13)}
    assert [pod.outcome for pod in record.pods] == ["Succeeded", "Running"]


def test_jobs_that_can_never_run_are_told_and_the_simulation_ends() -> None:
    record = run(job("large", cpu=5), job("b", at=1), job("lost", queue="nowhere"))
    assert times(record) == {"large": (None, None), "b": (1, 11), "lost": (None, None)}
    assert record.notes == [
        "1 job never started: nodes are unavailable: Insufficient cpu; no node is large enough: "
        "request less cpu per pod or add larger nodes (large)",
        '1 job never started: queue "nowhere" does not exist; create it, or set spec.queue of the PodGroup (lost)',
    ]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (job("a", at=-1), "submit_time: -1"),
        (job("a", run=float("nan")), "run_time: nan"),
        (job("a", pods=0), "pods: 0 pods"),
        (job("a", pods=10**9), "at most 100000"),
        (job("a", minimum=2), "minimum: 2 of 1 pods"),
        (job("a", cpu="much"), "much"),  # type: ignore[arg-type]
        (job("no name!" * 99), "is not a name"),
        (job("b", at=2), "another job has its name"),
    ],
)
def test_a_job_that_cannot_be_used_is_left_out_and_told(bad, why: str) -> None:  # type: ignore[no-untyped-def]
    record = run(job("b"), bad)
    assert record.jobs[0].ended == 10
    assert record.jobs[1].dropped
    assert len(record.notes) == 1
    assert why in record.notes[0]


def test_jobs_that_fit_nowhere_leave_where_they_do_so() -> None:
    record = run(job("a", run=float("inf"), cpu=3), job("b", at=1, cpu=2), job("c", at=2), drop_misfits=True)
    assert [each.dropped for each in record.jobs] == [False, True, False]
    assert named(record, "c").started == 2


def test_cycles_follow_the_period_if_asked_for() -> None:
    jobs = [job("a", at=1, run=10, cpu=4), job("b", at=2, run=3, cpu=4)]
    record = run(*jobs, on_every_event=False, period=4)
    assert times(record) == {"a": (4, 14), "b": (16, 19)}


def test_the_same_seed_gives_the_same_record() -> None:
    def again() -> bytes:
        jobs = [
            job(f"job-{number}", at=number * 3, run=7 + number % 5, cpu=1 + number % 4)
            for number in range(30)
        ]
        return msgspec.json.encode(run(*jobs))

    first = again()
    assert first == again()
    assert msgspec.json.decode(first, type=RunRecord).jobs[29].ended is not None


def test_measures_are_exact() -> None:
    record = run(job("a", at=10, run=10, cpu=2), job("b", at=12, run=4, cpu=4))
    assert record.measures["used_cpu_s"] == 2 * 10 + 4 * 4
    assert record.measures["available_cpu_s"] == 4 * (24 - 10)
    assert record.measures["waiting_jobs_s"] == 8


@pytest.mark.parametrize("period", [0.1, 0.3, 7.0])
def test_time_goes_on_whatever_the_period(period: float) -> None:
    jobs = [job(f"job-{number}", at=number * 0.3, run=1.1, cpu=3) for number in range(10)]
    record = run(*jobs, on_every_event=False, period=period)
    assert not record.failed
    assert all(each.ended is not None for each in record.jobs)


def test_an_interrupt_leaves_what_happened_until_then() -> None:
    def interrupt(done: int, now: float) -> None:
        if now >= 10:
            raise KeyboardInterrupt

    workload = Workload("small", (job("a", run=10), job("b", at=5, run=50)), tuple(nodes("n1 cpu=4")))
    record = simulate(workload, [], load_policy(BATCH, CATALOG), CATALOG, progress=interrupt)
    assert record.partial
    assert times(record) == {"a": (0, 10), "b": (5, None)}
    assert [pod.outcome for pod in record.pods] == ["Succeeded", "Running"]


def test_samples_are_thinned_out_and_measures_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(f"job-{number}", at=number * 5, run=7) for number in range(60)]
    exact = run(*jobs)
    monkeypatch.setattr(run_recorder, "MOST_SAMPLES", 20)
    thinned = run(*jobs)
    assert len(exact.samples) > 60
    assert len(thinned.samples) <= 21
    assert thinned.samples[-1].time == thinned.end
    assert thinned.measures == exact.measures


def test_a_node_that_cannot_be_used_is_told() -> None:
    with pytest.raises(WorkloadError, match=r"small: .*cpu"):
        run(job("a"), nodes="n1 cpu=much")
