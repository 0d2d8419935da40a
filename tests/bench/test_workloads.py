"""A tiny size of every workload runs and decides what it should."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from bench import worlds
from bench.measure import NOW, Measurement, load, measure
from bench.run import missing, problem_of, report, summary, with_bases
from bench.targets import CORNER, GUARANTEED, TARGETS
from bench.workload import Workload
from bench.workloads import WORKLOADS, custom
from stromboli.extensions import load_catalog

Returned = TypeVar("Returned")

TINY = 0.01
DIGESTS: dict[str, str] = json.loads(Path(__file__).with_name("digests.json").read_text())
"""What each workload decides at the tiny size: a change of the code that is no change of policy keeps these."""


def run(workload: Workload, folder: Path, cycles: int = 2) -> Measurement:
    path = folder / "case.json"
    path.write_bytes(workload.encoded())
    return measure(str(path), cycles=cycles, arriving=workload.arriving)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_tiny_size_decides_what_the_full_one_would(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name].scaled(TINY)
    if missing(workload, load_catalog()):
        pytest.skip("needs an action or plugin that is not there yet")
    seen = run(workload, tmp_path)
    assert problem_of(workload, seen) == ""
    assert seen.cycle > 0
    assert seen.digest == DIGESTS[name]
    assert set(seen.phases) == {"open", *workload.actions, "close"}


def calls(function: Callable[[], Returned]) -> tuple[int, Returned]:
    """How many functions are called, which is the cost on any machine, and the result."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return count, result


def costs(workload: Workload, folder: Path) -> list[int]:
    """The costs of the load and of three cycles."""
    path = folder / "case.json"
    path.write_bytes(workload.encoded())
    spent, ready = calls(partial(load, str(path)))
    all_spent = [spent]
    for number in range(3):
        if workload.arriving and number:
            ready.arrive(number)
        spent, _ = calls(partial(ready.engine.cycle, ready.intake.cluster, NOW + number))
        all_spent.append(spent)
    return all_spent


GUARANTEED_NAMES = [name for name in WORKLOADS if "-guaranteed" in name]


@pytest.mark.parametrize("name", GUARANTEED_NAMES)
def test_guaranteed_pods_are_placed_as_others_are(name: str) -> None:
    assert DIGESTS[name] == DIGESTS[WORKLOADS[name].base]


@pytest.mark.parametrize(
    "name",
    [
        "W2-500x20-1000n-guaranteed",
        "W4-idle-5000n-50000p-arriving-guaranteed",
        "W6-preempt-1000n-50x20-guaranteed",
        "U-2000x20-20000n-arriving-guaranteed",
        "U-2000x20-20000n-evict-arriving-guaranteed",
        "U-2000x20-20000n-arriving-guaranteed-numa",
        "U-2000x20-20000n-evict-arriving-guaranteed-numa",
    ],
)
def test_guaranteed_pods_cost_no_more_than_others(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name].scaled(TINY)
    base = costs(WORKLOADS[workload.base].scaled(TINY), tmp_path)
    for cost, plain in zip(costs(workload, tmp_path), base, strict=True):
        assert cost <= GUARANTEED * plain


def test_sizes_are_those_a_real_volcano_was_timed_on() -> None:
    counts = {
        name: (workload.sizes.nodes, workload.sizes.pending_pods, workload.sizes.running_pods)
        for name, workload in WORKLOADS.items()
        if not workload.base
    }
    assert counts["W1-1x10000-1000n"] == (1000, 10_000, 0)
    assert counts["W3-10000x1-5000n"] == (5000, 10_000, 0)
    assert counts["W5f-fragmented-5000n-500x20"] == (5000, 10_000, 50_000)
    assert counts["W9-gpu-tiers-5000n"] == (5000, 2384, 2496)
    assert counts["W9f-gpu-tiers-5000n-300-gangs"][1] == 11_040
    assert counts["M-5000n-100000p"] == (5000, 0, 100_000)


def test_corners_of_the_policy_may_cost_twice_their_plain_workload() -> None:
    corners = [name for name, target in TARGETS.items() if target.factor == CORNER and name.startswith("C-")]
    assert len(corners) == 4
    assert with_bases(corners)[:2] == ["W2-500x20-1000n", "C-capacity-500-queues-500x20-1000n"]
    assert all(WORKLOADS[name].base in WORKLOADS for name in corners)
    assert set(TARGETS) <= set(WORKLOADS)


def test_later_cycles_are_compared_where_nothing_happens(tmp_path: Path) -> None:
    base, corner = (
        WORKLOADS[name].scaled(TINY) for name in ("W4-idle-5000n-50000p-arriving", "C-shuffle-5000n-50000p")
    )
    plain, busy = run(base, tmp_path), run(corner, tmp_path)
    plain.later, busy.later = [0.001, 0.002], [0.004, 0.008]
    compared = summary(corner, [busy], 1.0, summary(base, [plain], 1.0, None))
    assert compared.factor == pytest.approx(4.0)
    assert compared.speed == "MISSED by 100%"


def test_a_pod_that_comes_between_cycles_must_be_bound(tmp_path: Path) -> None:
    workload = WORKLOADS["U-2000x20-20000n-arriving"].scaled(TINY)
    assert problem_of(workload, run(workload, tmp_path, cycles=4)) == ""
    no_room = replace(workload, build=lambda sizes, seed: worlds.pending(sizes))
    assert problem_of(no_room, run(no_room, tmp_path)) == "cycle 2 bound 0 pods instead of 1"


def test_evictions_are_counted_and_so_is_who_is_held_for_room(tmp_path: Path) -> None:
    """With the plain tiers as many go as in Volcano, with the arguments of a preset fewer, and gangs go whole."""
    plain, gentle = (WORKLOADS[f"W6-preempt-1000n-50x20{end}"].scaled(TINY) for end in ("", "-gentle"))
    assert plain.clears.most(1000) == 500
    assert gentle.clears.most(1000) == 340
    seen = run(plain, tmp_path)
    assert (seen.evictions, seen.held) == (10, 20)
    seen.evictions += 1
    assert problem_of(plain, seen) == "evicted 11 pods instead of 10"
    seen.evictions, seen.held = 10, 19
    assert problem_of(plain, seen) == "19 pods are held for room being freed instead of 20"
    seen.evictions = 21
    assert problem_of(gentle, seen) == "evicted 21 pods instead of at most 20"


def test_a_mixed_world_is_the_same_for_the_same_seed() -> None:
    mixed = WORKLOADS["W2-500x20-1000n-mixed"].scaled(TINY)
    assert mixed.encoded() == mixed.encoded()
    kinds = {pod["metadata"]["labels"]["app"] for pod in mixed.manifests() if pod["kind"] == "Pod"}
    assert len(kinds) == 10


def test_growth_has_room_for_what_is_pending(tmp_path: Path) -> None:
    workload = custom(nodes=10, pending=60, running=100)
    assert run(workload, tmp_path).binds == 60


def test_the_report_shows_every_workload_and_what_went_wrong(tmp_path: Path) -> None:
    workload = WORKLOADS["W2-500x20-1000n"].scaled(TINY)
    seen = run(workload, tmp_path)
    seen.binds -= 1
    text = report([summary(workload, [seen], TINY, None)])
    assert "W2-500x20-1000n" in text
    assert "PROBLEM: W2-500x20-1000n: bound 99 pods instead of 100" in text
