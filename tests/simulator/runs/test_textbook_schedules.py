"""A simulation starts every job when the textbook's scheduler does: FCFS, EASY and conservative backfill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from stromboli.cli.main import app
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob
from tests.number_of_examples import scaled
from tests.simulator.runs.small_runs import run
from tests.simulator.textbook_backfill import RigidJob, measures, read_trace, schedule
from tests.simulator.traces_at_hand import EXAMPLES

PROCESSORS = 8
BACKFILLS = ("none", "easy", "conservative")
POLICY = """\
actions: "allocate"
tiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {{name: backfill-reservation, arguments: {{mode: {}}}}}]}}]
"""

Rigid = tuple[int, int, int, int]
"""Submission, run time, processors, and by how much the estimate is too long."""
EXACT = st.tuples(st.integers(0, 20), st.integers(1, 20), st.integers(1, PROCESSORS), st.just(0))
ESTIMATED = st.tuples(
    st.integers(0, 20), st.integers(1, 20), st.integers(1, PROCESSORS), st.sampled_from([0, 0, 5, 30])
)


def textbook_starts(jobs: list[Rigid], backfill: str) -> list[float]:
    rigid = [
        RigidJob(number, submit, run, size, run + more)
        for number, (submit, run, size, more) in enumerate(jobs)
    ]
    schedule(rigid, PROCESSORS, backfill)
    return [job.start for job in rigid]


def simulated_starts(jobs: list[Rigid], backfill: str, nodes: str, gangs: bool) -> list[float | None]:
    submitted = [
        SubmittedJob(
            f"job-{number}",
            submit,
            length,
            pods=size if gangs else 1,
            requests={"cpu": 1 if gangs else size},
            time_limit=length + more,
        )
        for number, (submit, length, size, more) in sorted(enumerate(jobs), key=lambda each: each[1][0])
    ]
    record = run(*submitted, nodes=nodes, policy=POLICY.format(backfill))
    starts = {job.name: job.started for job in record.jobs}
    return [starts[f"job-{number}"] for number in range(len(jobs))]


@pytest.mark.parametrize("backfill", BACKFILLS)
@settings(max_examples=scaled(25))
@given(jobs=st.lists(EXACT, min_size=1, max_size=10))
@example(jobs=[(0, 10, 6, 0), (1, 5, 10 - 2, 0), (2, 8, 2, 0), (3, 9, 2, 0)])
@example(jobs=[(0, 1, 1, 0), (0, 1, 1, 0), (0, 1, 7, 0), (0, 1, 1, 0), (1, 1, 1, 0)])
def test_random_jobs_on_a_machine(backfill, jobs):
    assert simulated_starts(jobs, backfill, "n cpu=8", gangs=False) == textbook_starts(jobs, backfill)


@pytest.mark.parametrize("backfill", BACKFILLS)
@settings(max_examples=scaled(25))
@given(jobs=st.lists(ESTIMATED, min_size=1, max_size=10))
def test_random_jobs_that_may_end_before_their_estimate(backfill, jobs):
    assert simulated_starts(jobs, backfill, "n cpu=8", gangs=False) == textbook_starts(jobs, backfill)


@settings(max_examples=scaled(15))
@given(jobs=st.lists(EXACT, min_size=1, max_size=8))
def test_gangs_of_single_processors_on_many_nodes_are_rigid_jobs(jobs):
    """With backfill they are not quite: a reservation is of certain nodes, and room on others is no help there."""
    assert simulated_starts(jobs, "none", "a cpu=3; b cpu=1; c cpu=4", gangs=True) == textbook_starts(
        jobs, "none"
    )


# -- the command, on excerpts of traces


JOBS = 150
"""Of each excerpt: the benchmark runs whole traces."""


def simulated(trace: Path, tmp_path: Path, *options: str) -> tuple[dict[str, float], list[float]]:
    """The measures of a run, and the start of each job in the order of the trace, as the trace has it."""
    saved = tmp_path / "record.json"
    command = ["simulate", "--swf", str(trace), "--jobs", str(JOBS), *options]
    result = CliRunner().invoke(app, [*command, "-q", "-o", "json", "--save", str(saved)])
    assert result.exit_code == 0, result.output
    first = min(job.submit for job in read_trace(trace)[0])
    starts = [job["started"] + first for job in json.loads(saved.read_text())["jobs"]]
    return json.loads(result.stdout), starts


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("name", ["lublin-300", "hpc2n-300"])
def test_the_command_gives_the_textbook_schedule_of_a_trace(name, backfill, tmp_path):
    jobs, processors = read_trace(EXAMPLES / f"{name}.swf")
    jobs = schedule(jobs[:JOBS], processors, backfill)
    figures, starts = simulated(EXAMPLES / f"{name}.swf", tmp_path, "--backfill", backfill)
    assert starts == [job.start for job in jobs]
    expected = measures(jobs, processors)
    for field in ("jobs", "utilisation", "mean_wait_s", "mean_bounded_slowdown", "makespan_s"):
        assert figures[field] == pytest.approx(getattr(expected, field), rel=1e-9)
