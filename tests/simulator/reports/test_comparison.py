"""Configurations side by side: statistics by the book, pairs by seed, grouping by settings."""

from __future__ import annotations

import tracemalloc
from itertools import product
from math import gamma
from pathlib import Path

import numpy as np
import pytest

from stromboli.simulator.reports.comparison.configurations import Configuration, Run
from stromboli.simulator.reports.comparison.difference_texts import difference_text, mean_text
from stromboli.simulator.reports.comparison.record_groups import RecordFile, configurations_of
from stromboli.simulator.reports.comparison.run_comparison import Entry, compare, document
from stromboli.simulator.reports.comparison.significance import (
    TestKind as Kind,
)
from stromboli.simulator.reports.comparison.significance import (
    holm,
    paired_difference,
    unpaired_difference,
)
from stromboli.simulator.reports.comparison.student_t import quantile, two_sided_p
from stromboli.simulator.reports.measure_titles import MEASURES
from stromboli.simulator.reports.page.comparison_page import comparison_page
from stromboli.simulator.reports.record_files import save_record
from tests.simulator.reports.run_records import busy_run
from tests.simulator.reports.test_run_page import Page

WAIT = next(measure for measure in MEASURES if measure.key == "mean_wait_s")
UTILISATION = next(measure for measure in MEASURES if measure.key == "utilisation")


def configuration(name: str, waits: dict[int, float] | list[float], **settings) -> Configuration:
    """Runs by seed, or with the seeds 100, 101, and so on."""
    by_seed = waits if isinstance(waits, dict) else {100 + place: wait for place, wait in enumerate(waits)}
    runs = tuple(Run(seed, {"mean_wait_s": wait, "jobs": 3}) for seed, wait in by_seed.items())
    return Configuration(name, runs, settings)


def tail(t: float, freedom: float) -> float:
    """The probability beyond t on both sides, by summing up the density."""
    steps = np.linspace(0, t, 200_001)
    density = (1 + steps**2 / freedom) ** (-(freedom + 1) / 2)
    whole = np.sqrt(freedom * np.pi) * gamma(freedom / 2) / gamma((freedom + 1) / 2)
    return 1 - 2 * float(((density[1:] + density[:-1]) / 2).sum() * (t / 200_000)) / whole


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    [(0.95, 1, 12.7062), (0.95, 4, 2.77645), (0.95, 9, 2.26216), (0.99, 29, 2.75639), (0.9, 1000, 1.64638)],
)
def test_quantiles_are_those_of_the_tables(confidence, freedom, t):
    assert quantile(confidence, freedom) == pytest.approx(t, rel=1e-5)
    assert two_sided_p(t, freedom) == pytest.approx(1 - confidence, rel=1e-4)


def test_paired_runs_are_tested_by_their_differences():
    pairs = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    told = paired_difference(pairs, 0.95, Kind.T)
    assert told.mean == 3
    assert told.p == pytest.approx(0.0132, abs=1e-4), "t = 4.2426 with 4 degrees of freedom"
    assert (told.low, told.high) == pytest.approx((1.0368, 4.9632), abs=1e-4)


def test_unpaired_runs_are_tested_after_welch():
    first, second = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 6.0, 8.0, 10.0, 12.0])
    told = unpaired_difference(first, second, 0.95, Kind.T)
    assert told.mean == 5.5
    freedom = (5 / 12 + 2) ** 2 / ((5 / 12) ** 2 / 3 + 2**2 / 4)
    assert told.p == pytest.approx(tail(5.5 / (5 / 12 + 2) ** 0.5, freedom), rel=1e-5)


def test_the_permutation_test_counts_every_way_where_they_are_few():
    pairs = np.array([3.0, 1.0, 4.0, 1.5])
    flips = [abs(np.dot(signs, pairs)) >= pairs.sum() - 1e-9 for signs in product((1, -1), repeat=4)]
    assert paired_difference(pairs, 0.95, Kind.PERMUTATION).p == sum(flips) / 16 == 2 / 16
    first, second = np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0, 9.0])
    assert unpaired_difference(first, second, 0.95, Kind.PERMUTATION).p == 2 / 20


def test_the_permutation_test_draws_where_there_are_many_and_the_same_each_time():
    random = np.random.default_rng(1)
    first, second = random.normal(0, 1, 40), random.normal(1, 1, 40)
    told = unpaired_difference(first, second, 0.95, Kind.PERMUTATION)
    assert 0 < told.p < 0.01
    assert told == unpaired_difference(first, second, 0.95, Kind.PERMUTATION)
    pairs = second - first
    assert 0 < paired_difference(pairs, 0.95, Kind.PERMUTATION).p < 0.01


def test_the_permutation_test_needs_no_more_memory_for_many_runs():
    values = np.random.default_rng(1).normal(0, 1, 300)
    tracemalloc.start()
    try:
        assert paired_difference(values + 1, 0.95, Kind.PERMUTATION).p < 0.001
        assert unpaired_difference(values[:140], values[140:], 0.95, Kind.PERMUTATION).p > 0.001
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


def test_a_difference_of_nothing_is_significant_as_often_as_the_level_says():
    random = np.random.default_rng(7)
    hits = [unpaired_difference(*random.normal(0, 1, (2, 6)), 0.95, Kind.T).p < 0.05 for _ in range(200)]
    assert 2 <= sum(hits) <= 25


def test_differences_that_all_agree_are_certain_and_those_of_nothing_are_not_tested():
    assert paired_difference(np.array([2.0, 2.0]), 0.95, Kind.T).p == 0
    assert paired_difference(np.zeros(3), 0.95, Kind.T).p is None
    assert unpaired_difference(np.ones(3), np.ones(3), 0.95, Kind.T).p is None
    assert unpaired_difference(np.ones(3), np.ones(1), 0.95, Kind.T).p is None


def test_holm_holds_the_smallest_to_all_and_the_next_to_all_but_one():
    assert holm([0.01, None, 0.04, 0.03, 0.005]) == pytest.approx(
        [0.03, None, 0.06, 0.06, 0.02], abs=1e-12, nan_ok=True
    )
    assert holm([None, 0.9, 0.8]) == [None, 1.0, 1.0]
    assert holm([]) == []


def test_runs_with_the_same_seeds_are_compared_in_pairs():
    noisy = {seed: 100.0 * seed for seed in range(1, 7)}
    better = {seed: wait - 5 - seed for seed, wait in noisy.items()}
    entry = compare([configuration("a", noisy), configuration("b", better)]).entries[WAIT][1]
    assert entry.difference.paired
    assert entry.is_significant(0.95)
    moved = {seed + 50: wait for seed, wait in better.items()}
    entry = compare([configuration("a", noisy), configuration("b", moved)]).entries[WAIT][1]
    assert not entry.difference.paired
    assert not entry.is_significant(0.95), "the seeds differ by more than the configurations"


def test_seeds_that_both_have_make_the_pairs_and_a_seed_twice_makes_none():
    first = configuration("a", {1: 10.0, 2: 20.0, 3: 33.0})
    assert (
        compare([first, configuration("b", {2: 21.0, 3: 35.0, 9: 500.0})]).entries[WAIT][1].difference.mean
        == 1.5
    )
    twice = Configuration("c", tuple(Run(1, {"mean_wait_s": wait}) for wait in (5.0, 6.0)))
    assert not compare([first, twice]).entries[WAIT][1].difference.paired


def test_with_one_run_each_nothing_is_tested_and_that_is_said():
    comparison = compare([configuration("a", [10.0]), configuration("b", [5.0])])
    entry = comparison.entries[WAIT][1]
    assert (entry.difference.mean, entry.difference.p, entry.corrected_p) == (-5, None, None)
    assert comparison.notes == [
        "One run each: nothing can be tested. Give runs with several seeds of each configuration."
    ]
    mixed = compare([configuration("a", [10.0, 11.0]), configuration("b", [5.0])])
    assert mixed.notes == ["One run only, so it cannot be tested: b."]


def test_counts_that_are_neither_good_nor_bad_are_shown_and_not_tested():
    comparison = compare([configuration("a", [1.0, 2.0]), configuration("b", [3.0, 5.0])])
    told = document(comparison)["measures"]
    assert told["jobs"]["b"]["p"] is None
    assert told["mean_wait_s"]["b"]["p"] is not None
    assert list(told["mean_wait_s"]) == ["a", "b"]
    assert "fragmentation" not in told, "no run has it"


def test_different_workloads_and_interrupted_runs_are_told():
    partial = Configuration("b", (Run(1, {}, partial=True), Run(2, {})), {"workload": "y"})
    notes = compare([configuration("a", [1.0, 2.0], workload="x"), partial]).notes
    assert notes == ["The runs are of different workloads: x, y.", "b: 1 of 2 runs were interrupted."]


def test_differences_over_some_of_the_seeds_and_failed_runs_are_told():
    more = configuration("b", {1: 3.0, 2: 4.0, 3: 9.0})
    assert compare([configuration("a", {1: 1.0, 2: 2.5}), more]).notes == [
        "b: differences are of the 2 seeds that it shares with a, means of all runs."
    ]
    failed = Configuration("c", (Run(1, {"mean_wait_s": 3.0}, failed=True), Run(2, {"mean_wait_s": 4.0})))
    assert compare([configuration("a", {1: 1.0, 2: 2.5}), failed]).notes == [
        "c: something failed in 1 of 2 runs."
    ]


def test_runs_that_are_the_same_whatever_the_seed_are_not_tested():
    comparison = compare([configuration("a", {1: 5.0, 2: 5.0}), configuration("b", {1: 3.0, 2: 3.0})])
    entry = comparison.entries[WAIT][1]
    assert (entry.corrected_p, entry.is_significant(0.95), comparison.is_tested) == (None, False, False)
    assert comparison.notes == [
        "Seeds make no difference to these runs: differences are exact, and there is nothing to test."
    ]


def test_means_and_deviations_are_in_one_unit():
    assert mean_text(Entry(2.9 * 3600, 1.7 * 3600, 5), WAIT) == "2.9 ± 1.7 h"
    assert mean_text(Entry(0.593, 0.094, 5), UTILISATION) == "59.3 ± 9.4 %"
    assert mean_text(Entry(None, None, 0), WAIT) == "-"


def test_a_single_run_that_agrees_with_the_first_is_the_same():
    comparison = compare([configuration("a", {1: 5.0}), configuration("b", {1: 5.0})])
    assert difference_text(*comparison.entries[WAIT], WAIT, 0.95) == "the same"


def test_records_belong_together_if_their_settings_differ_by_the_seed_alone(tmp_path):
    files = []
    for backfill, seed in product(("none", "easy"), (1, 2)):
        path = tmp_path / f"{backfill}-{seed}.json"
        settings = {"backfill": backfill, "seed": seed, "workload": "w"}
        save_record(busy_run(20, seed=seed, settings=settings, name="w"), path)
        files.append(RecordFile(path))
    configurations = configurations_of(files)
    assert [configuration.name for configuration in configurations] == ["backfill=none", "backfill=easy"]
    assert [[run.seed for run in configuration.runs] for configuration in configurations] == [[1, 2], [1, 2]]
    named = configurations_of([RecordFile(file.path, "all") for file in files])
    assert [(configuration.name, len(configuration.runs)) for configuration in named] == [("all", 4)]
    apart = configurations_of([files[0], files[2]])
    assert [configuration.name for configuration in apart] == ["none-1", "easy-1"]


def test_the_page_of_a_comparison_is_whole_and_escapes_names(tmp_path: Path):
    path = tmp_path / "run.json"
    save_record(busy_run(30), path)
    hostile = "<script>alert(1)</script>"
    configurations = configurations_of([RecordFile(path, "a"), RecordFile(path, hostile)])
    page = Page(comparison_page(compare(configurations)))
    assert page.depth == 0
    assert "script" not in page.elements
    assert page.elements.count("svg") == 5
    nothing = [configuration("a", {}), configuration("b", {})]
    assert Page(comparison_page(compare(nothing))).depth == 0
