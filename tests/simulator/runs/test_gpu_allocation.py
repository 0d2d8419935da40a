"""GPU allocation at a load: the mean over the arrivals at which so much was asked for."""

from __future__ import annotations

import pytest

from stromboli.simulator.runs.gpu_allocation import gpu_allocation, gpu_measures
from stromboli.simulator.runs.run_record import JobRecord, RunRecord, Sample


def test_allocation_is_the_mean_over_arrivals_at_that_whole_percentage() -> None:
    arrived = [500, 994, 995, 1004, 1005, 1014]
    allocated = [500, 700, 800, 900, 900, 901]
    assert gpu_allocation(arrived, allocated, 1000, 1.0) == pytest.approx((0.8 + 0.9) / 2)
    assert gpu_allocation(arrived, allocated, 1000, 1.3) == pytest.approx(0.9005), "it comes to 101 %"


def test_where_a_large_pod_steps_over_the_load_the_last_arrival_before_counts() -> None:
    assert gpu_allocation([57, 200], [57, 200], 200, 0.9) == 0.285, "which is 29 %, halves upwards"
    assert gpu_allocation([500], [100], 200, 0.9) == 0.5
    assert gpu_allocation([57, 200], [57, 190], 200, 0) == 0.95


def test_without_gpus_or_arrivals_nothing_is_allocated() -> None:
    assert gpu_allocation([], [], 1000, 1.0) == 0
    assert gpu_allocation([0], [0], 0, 1.0) == 0


def test_each_part_is_rounded_to_a_hundredth_of_a_percent_as_published() -> None:
    assert gpu_allocation([3], [1], 3, 1.0) == 0.3333


def test_what_never_started_counts_as_arrived_and_a_load_out_of_reach_as_the_last_one_reached() -> None:
    def job(number: int, part: int, started: float | None) -> JobRecord:
        requests = {"volcano.sh/vgpu-number": number, "volcano.sh/vgpu-memory": part}
        return JobRecord("job", 0.0, 1, requests, started)

    record = RunRecord(
        "run",
        {"volcano.sh/vgpu-memory": 4000},
        {},
        [job(2, 1000, 0.0), job(1, 500, None), job(1, 1000, 1.0)],
        samples=[Sample(0.0, {}, fragmentation=0.5), Sample(1.0, {}, fragmentation=0.125)],
    )
    assert gpu_measures(record, 0.5) == {"gpu_allocation": 0.5, "fragmentation": 0.125}
    assert gpu_measures(record, 1.3) == {"gpu_allocation": 0.75, "fragmentation": 0.125}
